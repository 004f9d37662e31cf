"""The thesis' finding on the sample models: does optimising for one target make another one slower?"""

from __future__ import annotations

import sys
from typing import Any

from explorer.runtime import Measurer, Progress, Target
from explorer.session.portability import Plan, portability

MODELS = ("squeezenet1_1", "mobilenet_v3_small", "resnet18", "shufflenet_v2_x1_0", "efficientnet_b0")
TARGETS = ("ort:level=all", "ort:level=disable", "openvino")
BUDGET = 30


def run() -> dict[str, Any]:
    """Five samples, three targets and the first one's operator sum; hours on two cores, resumable."""
    targets = tuple(Target.parse(spec) for spec in TARGETS)
    plan = Plan(MODELS, targets, BUDGET, sums=targets[:1])
    with Measurer() as measurer:
        return portability(plan, measurer, _say).to_json()


def _say(progress: Progress) -> None:
    if ": " in progress.text:
        sys.stderr.write(f"[{progress.done}/{progress.total}] {progress.text}\n")

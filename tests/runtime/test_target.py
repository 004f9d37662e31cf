from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from explorer.errors import TargetError
from explorer.runtime import Target


@pytest.mark.parametrize(
    ("spec", "canonical"),
    [
        ("ort", "ort:level=all,threads=1"),
        ("ort:", "ort:level=all,threads=1"),
        (" ort: threads=4 , level=basic ", "ort:level=basic,threads=4"),
        ("ort:level=disable", "ort:level=disable,threads=1"),
        ("ort:threads=02", "ort:level=all,threads=2"),
        (
            "ort:disabled=ReshapeFusion+GeluFusionL2+ReshapeFusion",
            "ort:level=all,threads=1,disabled=GeluFusionL2+ReshapeFusion",
        ),
        ("ort:disabled=", "ort:level=all,threads=1"),
    ],
)
def test_specs_become_canonical(spec, canonical):
    target = Target.parse(spec)
    assert str(target) == canonical
    assert Target.parse(canonical) == target
    assert hash(Target.parse(canonical)) == hash(target)


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("", ["''", "not a known runtime", "ort"]),
        ("tensorrt:threads=1", ["'tensorrt'", "ort"]),
        ("ort:level=fast", ["'level=fast'", "level=disable|basic|extended|all"]),
        ("ort:level", ["'level='", "level=disable|basic|extended|all"]),
        ("ort:threads=0", ["'threads=0'", "threads=1..256"]),
        ("ort:threads=-1", ["'threads=-1'", "threads=1..256"]),
        ("ort:threads=257", ["'threads=257'", "threads=1..256"]),
        ("ort:threads=²", ["threads=1..256"]),
        ("ort:threads=two", ["'threads=two'"]),
        ("ort:batch=3", ["no option 'batch'", "threads=1..256", "disabled=NameA+NameB"]),
        ("ort:level=all,level=all", ["'level' is given twice"]),
        ("ort:disabled=A-B", ["'disabled=A-B'", "there is no 'A-B'"]),
    ],
)
def test_bad_specs_are_refused_in_one_sentence_that_lists_what_is_allowed(spec, parts):
    with pytest.raises(TargetError) as caught:
        Target.parse(spec)
    message = str(caught.value)
    for part in parts:
        assert part in message
    assert message.endswith(".")
    assert message.count(". ") == 0


def test_fields():
    target = Target.parse("ort:level=extended,threads=3,disabled=GeluFusionL2+CastElimination")
    assert target.runtime == "ort"
    assert target.level == "extended"
    assert target.threads == 3
    assert target.disabled == ("CastElimination", "GeluFusionL2")
    assert target.label == ("ONNX Runtime, level extended, 3 threads, without CastElimination, GeluFusionL2")
    assert Target.parse("ort").label == "ONNX Runtime, level all, 1 thread"


def test_a_target_built_by_hand_is_validated_too():
    assert Target("ort") == Target.parse("ort:level=all,threads=1")
    with pytest.raises(TargetError, match="level=disable"):
        Target("ort", (("level", "none"),))


def test_replace_changes_some_options():
    target = Target.parse("ort:threads=2").replace(level="disable")
    assert str(target) == "ort:level=disable,threads=2"
    with pytest.raises(TargetError):
        target.replace(threads=0)


def test_targets_survive_pickling_and_are_frozen():
    target = Target.parse("ort:threads=2")
    assert pickle.loads(pickle.dumps(target)) == target
    with pytest.raises(AttributeError):
        target.runtime = "other"
    assert Target.parse(target) is target


def test_parsing_loads_no_runtime():
    code = (
        "import sys; from explorer.runtime import Target; Target.parse('ort:threads=2').label; "
        "print([m for m in ('onnxruntime', 'openvino', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_optimiser_with_a_typo_is_noticed_and_the_right_name_offered():
    with pytest.raises(
        TargetError, match=r"there is no 'SkipLayerNormFusoin'; the most similar are SkipLayerNormFusion"
    ):
        Target.parse("ort:disabled=SkipLayerNormFusoin")

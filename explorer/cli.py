"""The command line: thin over ``Session``; JSON to stdout, progress to stderr, errors in one line.

Exit codes: 0 fine, 1 failed, 2 bad input. ``EXPLORER_STRICT=1`` lets unexpected errors through.
"""

from __future__ import annotations

import argparse
import errno
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from explorer import __version__
from explorer.errors import ExplorerError, InputError

DEFAULT_TARGET = "ort:level=all,threads=1"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, exit code 2."""
        sys.stderr.write(f"explorer: {message} (try `{self.prog} --help`)\n")
        raise SystemExit(2)


if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[_Parser]  # noqa: SLF001 (argparse has no public name)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    _replace_closed_streams()
    arguments = build_parser().parse_args(argv)
    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
    except ExplorerError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail("stopped.", 1)
    except BrokenPipeError:
        _discard_output()
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
            _discard_output()
            return _fail(f"the output cannot be written: {error.strerror}.", 1)
        if os.environ.get("EXPLORER_STRICT"):
            raise
        return _fail(f"unexpected {type(error).__name__}: {error}; please report this with the model.", 1)
    return code


def _replace_closed_streams() -> None:
    """Whoever closes a stream does not want what goes there; Python sets it to None."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 (open until the end)


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"explorer: {' '.join(message.split())}\n")
    return code


def build_parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    parser = _Parser(prog="explorer", description="Explore and rewrite deep-learning computation graphs.")
    parser.add_argument("--version", action="version", version=f"explorer {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    _add_servers(commands)
    _add_looking(commands)
    _add_targets(commands)
    _add_changing(commands)
    _add_fusion(commands)
    _add_tables(commands)
    return parser


def _add_servers(commands: Commands) -> None:
    for name, text in (("lab", "open JupyterLab on the app"), ("app", "show the app as a page of its own")):
        parser = commands.add_parser(name, help=text, description=text)
        parser.add_argument("model", nargs="?", help="a path or the name of a sample")
        parser.add_argument("--port", type=int, help="port on loopback (default: the first free one)")
        parser.add_argument("--no-browser", action="store_true", help="only print the address")
        parser.set_defaults(run=_serve)


def _serve(arguments: argparse.Namespace) -> int:
    from explorer import launch

    start = launch.lab if arguments.command == "lab" else launch.app
    return start(arguments.model, arguments.port, not arguments.no_browser)


def _add_looking(commands: Commands) -> None:
    from explorer import commands as run

    parser = _model_command(commands, "inspect", "nodes, operators, parameters, FLOPs, inputs and outputs")
    parser.set_defaults(run=run.inspect)

    parser = _model_command(commands, "candidates", "every place where a rule applies")
    _add_target(parser)
    parser.add_argument("--predict", action="store_true", help="predict by isolated operator times")
    parser.add_argument("--measure", action="store_true", help="measure each candidate (screening)")
    parser.add_argument("--rejections", action="store_true", help="also near misses, with reasons")
    parser.add_argument("--rule", action="append", help="only this rule (repeatable)")
    parser.add_argument("--switches", action="store_true", help="instead: settings of the runtime to try")
    _add_opt_in(parser)
    parser.set_defaults(run=_candidates)

    parser = _command(commands, "measure", "time of a model, or of B against A")
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B", nargs="?")
    _add_target(parser)
    _add_filling(parser)
    parser.add_argument("--screening", action="store_true", help="3 rounds instead of 10")
    text = "time a switch of the runtime, such as switch:level=extended, against the target"
    parser.add_argument("--switch", metavar="PLACE", help=text)
    parser.set_defaults(run=_measure)


def _candidates(arguments: argparse.Namespace) -> int:
    from explorer import commands, switch_commands

    if not arguments.switches:
        return commands.candidates(arguments)
    if arguments.rule or arguments.predict or arguments.rejections:
        raise InputError("--switches lists no rules: leave out --rule, --predict and --rejections.")
    return switch_commands.candidates(arguments)


def _measure(arguments: argparse.Namespace) -> int:
    from explorer import commands, switch_commands

    if arguments.switch is None:
        return commands.measure(arguments)
    if arguments.b is not None:
        raise InputError("--switch compares a model with itself: give one model.")
    return switch_commands.measure(arguments)


def _add_targets(commands: Commands) -> None:
    from explorer import target_commands as run

    parser = _model_command(commands, "profile", "which node costs what on a target")
    _add_target(parser)
    parser.add_argument("--top", type=_positive, default=15, help="kernels to list (default 15)")
    parser.add_argument("--roofs", action="store_true", help="also measure what the target reaches at best")
    parser.set_defaults(run=run.profile)

    parser = _model_command(commands, "runtime-view", "the graph as the runtime executes it")
    _add_target(parser)
    parser.add_argument("--absorbed", action="store_true", help="also which candidates it does already")
    _add_opt_in(parser)
    parser.set_defaults(run=run.runtime_view)

    parser = _command(commands, "portability", "optimise for each target, measure on every one")
    parser.add_argument("models", nargs="+", metavar="MODEL", help="paths or names of samples")
    parser.add_argument("--targets", nargs="*", default=[], metavar="T", help="what to optimise for: rows")
    parser.add_argument(
        "--columns", nargs="+", default=[], metavar="T", help="what to measure on (default: the same)"
    )
    parser.add_argument(
        "--sums", nargs="*", metavar="T", help="rows by operator sums (default: first target)"
    )
    parser.add_argument("--budget", type=_positive, default=30, help="comparisons per search (default 30)")
    parser.add_argument(
        "--sum-budget", type=_positive, help="comparisons per search by operator sums, which are cheap"
    )
    parser.add_argument("--screening", action="store_true", help="measure cells by screening")
    parser.add_argument("--report", metavar="FILE.html", help="also write a heat map as a page of its own")
    parser.add_argument("--fill-weights", type=int, metavar="SEED", help="as for other commands")
    _add_device(parser)
    _add_opt_in(parser)
    parser.set_defaults(run=run.portability)

    parser = _command(commands, "calibrate", "how often verdicts are false, and what they can see")
    _add_target(parser)
    parser.add_argument("--models", nargs="+", metavar="MODEL", help="default: five quick samples")
    parser.add_argument("--pairs", type=_positive, default=200, help="A/A pairs (default 200)")
    parser.add_argument("--planted", type=int, default=20, help="pairs per planted difference (default 20)")
    parser.add_argument("--mode", choices=["validated", "screening", "adaptive"], default="validated")
    parser.add_argument("--record", metavar="FILE", help="JSON lines to write and to go on with")
    parser.set_defaults(run=run.calibrate)

    parser = _command(commands, "exchange", "carry measurements from one machine to another")
    parser.add_argument("direction", choices=["export", "import"])
    parser.add_argument("file", metavar="FILE.jsonl")
    parser.set_defaults(run=run.exchange)


def _add_changing(commands: Commands) -> None:
    from explorer import commands as run

    parser = _model_command(commands, "apply", "apply candidates and write the checked result")
    parser.add_argument("--candidate", action="append", required=True, metavar="ID", help="repeatable")
    parser.add_argument("--out", required=True, metavar="OUT.onnx")
    parser.add_argument("--measure", action="store_true", help="measure the result against the original")
    _add_target(parser)
    parser.set_defaults(run=run.apply)

    parser = _model_command(commands, "optimize", "search for a faster graph")
    parser.add_argument("--strategy", default="greedy", choices=["greedy"])
    parser.add_argument(
        "--cost",
        default="measured",
        metavar="NAME",
        help="what to optimise by: measured (default) or operator-sum",
    )
    parser.add_argument(
        "--scout",
        metavar="NAME",
        help="look ahead by a predicted cost, and measure first the whole way it finds: operator-sum",
    )
    _add_target(parser)
    parser.add_argument("--budget", type=_positive, default=30, help="comparisons (default 30)")
    parser.add_argument("--seed", type=int, default=0, help="recorded; greedy search draws nothing")
    parser.add_argument("--out", metavar="OUT.onnx")
    parser.add_argument("--trajectory", metavar="T.json")
    _add_opt_in(parser)
    parser.set_defaults(run=run.optimize)

    parser = _command(commands, "replay", "walk a trajectory again and check where it ends")
    parser.add_argument("trajectory", metavar="T.json")
    parser.add_argument("--model", help="the model, if it is no longer where the trajectory says")
    parser.add_argument("--out", metavar="OUT.onnx")
    parser.set_defaults(run=run.replay)


def _add_fusion(commands: Commands) -> None:
    from explorer import fuse_commands as run

    parser = _model_command(commands, "fuse", "fusion groups that fit a buffer, and their DRAM traffic")
    parser.add_argument("--scheme", choices=run.SCHEME_NAMES, help="default lbdf")
    parser.add_argument("--buffer-kb", type=_number, metavar="N", help="KB of 1024 bytes (default 256)")
    parser.add_argument("--search", choices=run.SEARCH_NAMES, help="default exact")
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="TENSOR=1x8x8",
        help="a shape that cannot be inferred, for example behind an unknown operator",
    )
    parser.add_argument(
        "--plan",
        metavar="PLAN.json",
        help="show what a written plan costs, with its own settings where none are given",
    )
    parser.add_argument(
        "--explainer", default="none", choices=["none"], help="what splits groups that do not fit"
    )
    parser.add_argument("--budget", type=_positive, default=1000, help="plans to propose (default 1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the search")
    parser.add_argument("--element-bytes", type=int, choices=[1, 2, 4], help="default 2")
    parser.add_argument(
        "--time-limit", type=_seconds, default=60, metavar="S", help="seconds for the optimum (default 60)"
    )
    parser.add_argument("--out", metavar="PLAN.json", help="write the plan")
    parser.set_defaults(run=run.fuse)


def _add_tables(commands: Commands) -> None:
    from explorer import commands as run

    parser = _command(commands, "rules", "the rule library")
    parser.add_argument("--markdown", action="store_true", help="as the table in docs/rules.md")
    parser.set_defaults(run=run.rules)

    parser = _command(commands, "bench", "benchmarks, as ratios measured in one run")
    parser.add_argument("name", choices=sorted(run.BENCHMARKS))
    parser.set_defaults(run=run.bench)


def _command(commands: Commands, name: str, text: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("--json", action="store_true", help="print JSON to stdout")
    return parser


def _model_command(commands: Commands, name: str, text: str) -> argparse.ArgumentParser:
    parser = _command(commands, name, text)
    parser.add_argument("model", help="a path or the name of a sample")
    _add_filling(parser)
    return parser


def _add_filling(parser: argparse.ArgumentParser) -> None:
    text = "fill float weights that are graph inputs with seeded values"
    parser.add_argument("--fill-weights", type=int, metavar="SEED", help=text)
    parser.add_argument(
        "--dim",
        action="append",
        default=[],
        type=_dimension,
        metavar="NAME=SIZE",
        help="size of a dynamic dim",
    )


def _add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", default=DEFAULT_TARGET, help=f"default {DEFAULT_TARGET}")
    _add_device(parser)


def _add_device(parser: argparse.ArgumentParser) -> None:
    text = "measure on another machine: a dask scheduler's address"
    parser.add_argument("--scheduler", metavar="ADDRESS", help=text)
    parser.add_argument("--device", metavar="NAME", help="the tag of the workers to measure on")


def _add_opt_in(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--opt-in", action="store_true", help="also rules of class D and A")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, at least 1, not '{text}'")
    return int(text)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a finite number, not '{text}'")
    return value


def _seconds(text: str) -> float:
    value = _number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"must be more than 0, not {text}")
    return value


def _dimension(text: str) -> tuple[str, int]:
    name, _, size = text.partition("=")
    if not name or not size.isdigit() or int(size) < 1:
        raise argparse.ArgumentTypeError(f"must look like N=4, not '{text}'")
    return name, int(size)


if __name__ == "__main__":
    sys.exit(main())

"""The import arrow, the homes of heavy libraries, and the size of files, read from the sources.

``INSIDE`` and ``HOMES`` are the table itself; CONTRIBUTING.md refers to them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 60

_VALUES = {"errors", "records", "graph", "rewrite", "runtime", "cost", "search", "fusion", "explain"}
# What each package of explorer may import of the others.
INSIDE: dict[str, set[str]] = {
    "errors": set(),
    "records": {"errors"},
    "graph": {"errors"},
    "rewrite": {"errors", "graph"},
    "runtime": {"errors", "records", "graph"},
    "cost": {"errors", "records", "graph", "rewrite", "runtime"},
    "search": {"errors", "records", "graph", "rewrite", "cost"},
    "fusion": {"errors", "records", "graph"},
    "explain": {"errors", "graph", "fusion"},
    "session": _VALUES,
    "ui": {*_VALUES, "session"},
    "bench": {*_VALUES, "session", "ui"},
    "launch": {"errors", "graph"},
    "printing": {*_VALUES, "session"},
    "commands": {*_VALUES, "session", "bench", "printing"},
    "target_commands": {*_VALUES, "session", "bench", "commands", "printing"},
    "switch_commands": {*_VALUES, "session", "bench", "commands", "printing"},
    "fuse_commands": {"errors", "records", "graph", "fusion", "printing"},
    "cli": {
        *_VALUES,
        "session",
        "bench",
        "launch",
        "commands",
        "target_commands",
        "switch_commands",
        "fuse_commands",
    },
    "__main__": {"cli"},
    "__init__": {"graph", "session", "ui"},
}
# Where heavy or replaceable libraries may be imported: packages, or single modules.
HOMES: dict[str, set[str]] = {
    # Rewriting builds nodes. A runtime's worker reads the file it was given and the one the runtime
    # wrote as they stand, without the repairs that explorer.graph makes.
    "onnx": {"explorer.graph", "explorer.runtime"},
    "onnx_ir": {"explorer.graph", "explorer.rewrite", "explorer.runtime"},
    "onnxruntime": {"explorer.runtime"},
    "openvino": {"explorer.runtime"},
    "tvm": {"explorer.runtime"},
    "distributed": {"explorer.runtime"},
    "dask": {"explorer.runtime"},
    "torch": {"explorer.cost", "explorer.explain", "explorer.search.ppo"},
    "torch_geometric": {"explorer.cost", "explorer.explain"},
    "networkx": {"explorer.fusion", "explorer.ui.graphview"},  # layout wants an acyclic graph
    "ortools": {"explorer.fusion"},
    "pymoo": {"explorer.fusion"},
    "ipywidgets": {"explorer.ui"},
    "anywidget": {"explorer.ui"},
    "plotly": {"explorer.ui"},
    "jupyterlab": {"explorer.launch"},
    "voila": {"explorer.launch"},
}
# Imported inside functions, so that opening the app (session, ui) waits for none of them.
LAZY = {
    "onnxruntime",
    "openvino",
    "tvm",
    "distributed",
    "dask",
    "torch",
    "torch_geometric",
    "ortools",
    "pymoo",
}


@dataclass(frozen=True)
class Import:
    """One imported module: ``at_load`` if it happens when the importing module is loaded."""

    module: str
    line: int
    at_load: bool


def imports(source: str, module: str, is_package: bool = False) -> list[Import]:
    """All imports of a module, relative ones made absolute."""
    return list(_imports_below(ast.parse(source), module, is_package, at_load=True))


def _imports_below(node: ast.AST, module: str, is_package: bool, at_load: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, at_load) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = _absolute(child, module, is_package)
            for alias in child.names:
                yield Import(f"{base}.{alias.name}", child.lineno, at_load)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from _imports_below(child, module, is_package, at_load=False)
        else:
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _imports_below(child, module, is_package, at_load and not is_function)


def _absolute(statement: ast.ImportFrom, module: str, is_package: bool) -> str:
    if not statement.level:
        return statement.module or ""
    parts = module.split(".")
    kept = parts[: len(parts) - statement.level + is_package]
    return ".".join(filter(None, [*kept, statement.module]))


def package_of(module: str) -> str:
    """``explorer.graph.load`` -> ``graph``; ``explorer`` itself -> ``__init__``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def is_inside(module: str, place: str) -> bool:
    """Whether ``module`` is ``place`` or below it."""
    return module == place or module.startswith(f"{place}.")


def arrow_violations(module: str, found: list[Import]) -> list[str]:
    """Imports of explorer packages that the table does not allow."""
    home = package_of(module)
    allowed = INSIDE[home] | {home}
    return [
        f"line {item.line}: {home} may not import {item.module}"
        for item in found
        if item.module.startswith("explorer.")
        and package_of(item.module) in INSIDE
        and package_of(item.module) not in allowed
    ]


def home_violations(module: str, found: list[Import]) -> list[str]:
    """Imports of a library outside its home."""
    return [
        f"line {item.line}: {library} belongs in {', '.join(sorted(homes))}"
        for item in found
        for library, homes in HOMES.items()
        if is_inside(item.module, library) and not any(is_inside(module, home) for home in homes)
    ]


def long_functions(source: str) -> list[str]:
    """Functions over the limit, decorators not counted."""
    return [
        f"line {node.lineno}: {node.name} has {length} lines"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION_LINES
    ]


def undocumented(source: str) -> list[str]:
    """Public classes, functions and methods, and modules, without a docstring."""
    tree = ast.parse(source)
    missing = [] if ast.get_docstring(tree) else ["line 1: the module"]
    return missing + list(_undocumented_in(tree))


def _undocumented_in(parent: ast.Module | ast.ClassDef) -> Iterator[str]:
    for node in parent.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        exempt = any(
            "overload" in ast.unparse(d) or ".setter" in ast.unparse(d) or "override" in ast.unparse(d)
            for d in node.decorator_list
        )
        if not node.name.startswith("_") and not exempt and not ast.get_docstring(node):
            yield f"line {node.lineno}: {node.name}"
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _undocumented_in(node)


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    names = {}
    for path in sorted((REPOSITORY / "explorer").rglob("*.py")):
        parts = path.relative_to(REPOSITORY).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


MODULES = modules()
every_module = pytest.mark.parametrize("module", MODULES)


def read(module: str) -> tuple[str, list[Import]]:
    """A module's source and imports."""
    path = MODULES[module]
    source = path.read_text(encoding="utf-8")
    return source, imports(source, module, path.name == "__init__.py")


def loaded_with(start: str) -> dict[str, str]:
    """Modules that loading ``start`` loads, each with the module that asks for it."""
    asked_by = {start: start}
    queue = [start]
    while queue:
        module = queue.pop()
        for item in read(module)[1] if module in MODULES else []:
            for name in _module_and_parents(item.module) if item.at_load else []:
                if name not in asked_by:
                    asked_by[name] = module
                    queue.append(name)
    return asked_by


def _module_and_parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


@every_module
def test_imports_follow_the_arrow(module: str) -> None:
    assert arrow_violations(module, read(module)[1]) == []


@every_module
def test_libraries_stay_in_their_home(module: str) -> None:
    assert home_violations(module, read(module)[1]) == []


@every_module
def test_files_and_functions_stay_short(module: str) -> None:
    source, _ = read(module)
    assert len(source.splitlines()) <= MAX_FILE_LINES
    assert long_functions(source) == []


@every_module
def test_what_is_public_is_described(module: str) -> None:
    assert undocumented(read(module)[0]) == []


@pytest.mark.parametrize(
    "module", [m for m in MODULES if package_of(m) in {"session", "ui", "cli", "launch"}]
)
def test_opening_the_app_loads_no_runtime_and_no_learning_library(module: str) -> None:
    asked_by = loaded_with(module)
    assert {name: asked_by[name] for name in sorted(LAZY & asked_by.keys())} == {}


def test_every_package_has_a_row_in_the_table() -> None:
    assert {package_of(module) for module in MODULES} <= INSIDE.keys()


class TestTheChecksThemselves:
    def test_relative_imports_are_made_absolute(self) -> None:
        source = "from . import load\nfrom ..errors import InputError"
        names = [item.module for item in imports(source, "explorer.graph.shapes")]
        assert names == ["explorer.graph.load", "explorer.errors.InputError"]
        from_package = imports("from .load import read", "explorer.graph", is_package=True)
        assert [item.module for item in from_package] == ["explorer.graph.load.read"]

    def test_functions_and_type_checking_do_not_count_as_loading(self) -> None:
        source = (
            "import a\ndef f():\n    import b\n"
            "if TYPE_CHECKING:\n    import c\ntry:\n    import d\nfinally:\n    pass"
        )
        found = imports(source, "explorer.x")
        assert {item.module for item in found if item.at_load} == {"a", "d"}
        assert {item.module for item in found} == {"a", "b", "c", "d"}

    @pytest.mark.parametrize("source", ["import explorer.session", "from explorer import session"])
    def test_the_wrong_direction_is_found(self, source: str) -> None:
        found = imports(source, "explorer.graph.load")
        assert len(arrow_violations("explorer.graph.load", found)) == 1
        assert arrow_violations("explorer.ui.app", found) == []

    def test_a_library_outside_its_home_is_found_even_inside_a_function(self) -> None:
        found = imports("def f():\n    from onnxruntime import InferenceSession", "explorer.ui")
        assert home_violations("explorer.ui", found) == ["line 2: onnxruntime belongs in explorer.runtime"]
        assert home_violations("explorer.runtime.ort", found) == []

    def test_a_home_may_be_one_module(self) -> None:
        found = imports("import torch.nn", "explorer.search.greedy")
        assert home_violations("explorer.search.ppo", found) == []
        assert len(home_violations("explorer.search.greedy", found)) == 1

    def test_onnx_does_not_stand_for_onnxruntime(self) -> None:
        found = imports("import onnxruntime", "explorer.runtime.ort")
        assert home_violations("explorer.runtime.ort", found) == []

    def test_long_functions_are_found(self) -> None:
        body = "    x = 1\n" * MAX_FUNCTION_LINES
        assert long_functions(f"def f():\n{body}") == ["line 1: f has 61 lines"]
        assert long_functions(f"def f():\n{body[:-10]}") == []

    def test_missing_docstrings_are_found(self) -> None:
        source = '"""M."""\nclass A:\n    """A."""\n    def f(self): ...\n    def _g(self): ...'
        assert undocumented(source) == ["line 4: f"]
        assert undocumented("x = 1") == ["line 1: the module"]


def test_matchers_walk_through_the_graph_only_by_steps_that_are_noted():
    """What they ask ``Value`` itself, an incremental scan does not know of (see ``explorer.rewrite.walk``)."""
    home = REPOSITORY / "explorer/rewrite"
    found = [
        f"{path.relative_to(REPOSITORY)}:{node.lineno} .{node.func.attr}()"
        for path in [*sorted((home / "rules").glob("*.py")), home / "legality.py"]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"producer", "uses", "consumers", "predecessors", "successors"}
    ]
    assert not found

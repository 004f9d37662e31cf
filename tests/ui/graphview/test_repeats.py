from __future__ import annotations

from explorer.ui.graphview.repeats import repeated_stretches

BLOCK = ["MatMul", "Add", "Softmax", "MatMul", "Gelu"]


def spans(labels: list[str], pairs: list[tuple[int, int]] | None = None) -> list[tuple[int, int]]:
    joins = pairs if pairs is not None else [(i, i + 1) for i in range(len(labels) - 1)]
    found = repeated_stretches(labels, range(len(labels)), joins)
    return [(stretch.start, stretch.stop) for stretch in found]


def test_equal_stretches_are_found_between_other_operators() -> None:
    labels = ["Gather", "Cast", *BLOCK * 3, "Tanh"]
    assert spans(labels) == [(2, 7), (7, 12), (12, 17)]


def test_stretches_are_numbered() -> None:
    labels = BLOCK * 4
    titles = [s.title for s in repeated_stretches(labels, range(len(labels)), [])]
    assert titles == ["Block 1 of 4", "Block 2 of 4", "Block 3 of 4", "Block 4 of 4"]


def test_two_rows_of_repeats_get_letters() -> None:
    other = ["Conv", "Relu", "Pool", "Slice"]
    labels = BLOCK * 3 + ["Reshape"] + other * 3
    titles = [s.title for s in repeated_stretches(labels, range(len(labels)), [])]
    assert titles == [*(f"Block A {i} of 3" for i in (1, 2, 3)), *(f"Block B {i} of 3" for i in (1, 2, 3))]


def test_cuts_are_where_one_tensor_crosses() -> None:
    # Each stretch ends with an Add of the residual that starts it: cut after the Add only.
    labels = ["Norm", "MatMul", "Gelu", "Add"] * 4
    pairs = [(i, i + 1) for i in range(15)]
    pairs += [(4 * k - 1, 4 * k + 3) for k in range(1, 4)]
    assert spans(["Embed", *labels], [(a + 1, b + 1) for a, b in pairs] + [(0, 1), (0, 4)])[0] == (1, 5)


def test_one_operator_again_and_again_is_no_block() -> None:
    assert spans(["Relu"] * 40) == []


def test_no_repeats_no_blocks() -> None:
    assert spans([f"Op{i}" for i in range(40)]) == []
    assert spans([]) == []

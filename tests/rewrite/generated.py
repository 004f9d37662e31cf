"""Small random graphs of movement and element-wise operators, for property tests. The same seed, the same graph."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper, numpy_helper

_INPUT = ("x", (2, 4, 6))
_MOST_ELEMENTS = 3000
_UNARY = ("Abs", "Floor", "Identity", "Neg", "Relu", "Sigmoid", "Tanh", "Dropout")
Shape = tuple[int, ...]


class Maker:
    """Adds nodes one by one, each to one of the latest values."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.values: dict[str, Shape] = dict([_INPUT])

    def weight(self, values: object) -> str:
        """A new initializer; returns its name."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, op: str, inputs: list[str], *shapes: Shape | None, **attributes: object) -> list[str]:
        """A new node; its results become values where their shape is given and not too large."""
        names = [f"{op.lower()}_{len(self.nodes)}_{i}" for i in range(len(shapes))]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        for name, shape in zip(names, shapes, strict=True):
            if shape is not None and np.prod(shape) <= _MOST_ELEMENTS:
                self.values[name] = shape
        return names

    def step(self) -> None:
        """One random node (or a few that belong together) on one of the last five values."""
        name = self.chance.choice(list(self.values)[-5:])
        self.chance.choice(_STEPS)(self, name, self.values[name])


def _unary(make: Maker, name: str, shape: Shape) -> None:
    make.node(make.chance.choice(_UNARY), [name], shape)


def _neutral(make: Maker, name: str, shape: Shape) -> None:
    op, value = make.chance.choice([("Mul", 1), ("Add", 0), ("Div", 1), ("Sub", 0)])
    ones = (1,) * make.chance.randint(0, len(shape))
    make.node(op, [name, make.weight(np.full(ones, value, "f4"))], shape)


def _constant(make: Maker, name: str, shape: Shape) -> None:
    dims = [size if make.chance.random() < 0.6 else 1 for size in shape]
    weight = make.numbers.uniform(0.5, 2, dims[make.chance.randint(0, len(dims)) :]).astype("f4")
    operands = [name, make.weight(weight)]
    op = make.chance.choice(["Add", "Mul", "Div"])
    make.node(op, operands if op == "Div" or make.chance.random() < 0.5 else operands[::-1], shape)


def _binary(make: Maker, name: str, shape: Shape) -> None:
    others = [(other, _broadcast(size, shape)) for other, size in make.values.items()]
    other, result = make.chance.choice([(o, r) for o, r in others if r is not None])
    operands = [name, other] if make.chance.random() < 0.5 else [other, name]
    make.node(make.chance.choice(["Add", "Mul", "Sub", "Max"]), operands, result)


def _transpose(make: Maker, name: str, shape: Shape) -> None:
    perm = list(range(len(shape)))
    make.chance.shuffle(perm)
    make.node("Transpose", [name], tuple(shape[axis] for axis in perm), perm=perm)


def _reshape(make: Maker, name: str, shape: Shape) -> None:
    rest, dims = int(np.prod(shape)), []
    for size in (2, 3, 4):
        if rest % size == 0 and make.chance.random() < 0.6:
            dims.append(size)
            rest //= size
    dims.append(rest)
    make.chance.shuffle(dims)
    target = list(dims)
    if make.chance.random() < 0.5:
        target[make.chance.randrange(len(target))] = -1
    make.node("Reshape", [name, make.weight(np.array(target))], tuple(dims))


def _computed_reshape(make: Maker, name: str, shape: Shape) -> None:
    (size,) = make.node("Shape", [name], None)
    ends = [make.weight([len(shape) - 1]), make.weight([len(shape)])]
    (last,) = make.node("Slice", [size, *ends], None)
    (target,) = make.node("Concat", [make.weight([-1]), last], None, axis=0)
    make.node("Reshape", [name, target], (int(np.prod(shape[:-1])), shape[-1]))


def _unsqueeze(make: Maker, name: str, shape: Shape) -> None:
    axis = make.chance.randint(0, len(shape))
    written = axis if make.chance.random() < 0.5 else axis - len(shape) - 1
    make.node("Unsqueeze", [name, make.weight([written])], (*shape[:axis], 1, *shape[axis:]))


def _squeeze(make: Maker, name: str, shape: Shape) -> None:
    if 1 in shape:
        axis = shape.index(1)
        make.node("Squeeze", [name, make.weight([axis])], (*shape[:axis], *shape[axis + 1 :]))


def _concat(make: Maker, name: str, shape: Shape) -> None:
    axis = make.chance.randrange(len(shape))
    fitting = [o for o, s in make.values.items() if _without(s, axis) == _without(shape, axis)]
    parts = [*(make.chance.choice(fitting) for _ in range(make.chance.randint(0, 2))), name]
    total = sum(make.values[part][axis] for part in parts)
    written = axis if make.chance.random() < 0.7 else axis - len(shape)
    make.node("Concat", parts, (*shape[:axis], total, *shape[axis + 1 :]), axis=written)


def _split(make: Maker, name: str, shape: Shape) -> None:
    axis = make.chance.randrange(len(shape))
    if shape[axis] > 1:
        first = make.chance.randint(1, shape[axis] - 1)
        sizes = [first, shape[axis] - first]
        parts = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]
        make.node("Split", [name, make.weight(sizes)], *parts, axis=axis)


def _slice(make: Maker, name: str, shape: Shape) -> None:
    axis = make.chance.randrange(len(shape))
    start = make.chance.randint(0, shape[axis] - 1)
    end = make.chance.randint(start + 1, shape[axis])
    written = 2**40 if end == shape[axis] and make.chance.random() < 0.5 else end
    operands = [make.weight([start]), make.weight([written]), make.weight([axis])]
    make.node("Slice", [name, *operands], (*shape[:axis], end - start, *shape[axis + 1 :]))


def _gather(make: Maker, name: str, shape: Shape) -> None:
    axis = make.chance.randrange(len(shape))
    place = make.chance.randrange(shape[axis])
    if make.chance.random() < 0.5:
        make.node("Gather", [name, make.weight(place)], _without(shape, axis), axis=axis)
    else:
        result = (*shape[:axis], 2, *shape[axis + 1 :])
        make.node("Gather", [name, make.weight([place, 0])], result, axis=axis)


def _pad(make: Maker, name: str, shape: Shape) -> None:
    pads = [make.chance.choice([0, 0, 1]) for _ in range(2 * len(shape))]
    result = tuple(n + pads[i] + pads[i + len(shape)] for i, n in enumerate(shape))
    make.node("Pad", [name, make.weight(pads)], result)


def _reduce(make: Maker, name: str, shape: Shape) -> None:
    axis, keepdims = make.chance.randrange(len(shape)), make.chance.randint(0, 1)
    result = (*shape[:axis], 1, *shape[axis + 1 :]) if keepdims else _without(shape, axis)
    op = make.chance.choice(["ReduceMax", "ReduceMean"])
    make.node(op, [name], result, axes=[axis], keepdims=keepdims)


def _softmax(make: Maker, name: str, shape: Shape) -> None:
    make.node("Softmax", [name], shape, axis=make.chance.randrange(len(shape)))


def _casts(make: Maker, name: str, shape: Shape) -> None:
    (double,) = make.node("Cast", [name], None, to=onnx.TensorProto.DOUBLE)
    make.node("Cast", [double], shape, to=onnx.TensorProto.FLOAT)


def _clip(make: Maker, name: str, shape: Shape) -> None:
    low, high = np.float32(-make.chance.random()), np.float32(1 + make.chance.random())
    make.node("Clip", [name, make.weight(low), make.weight(high)], shape)


def _expand(make: Maker, name: str, shape: Shape) -> None:
    if len(shape) < 5:
        make.node("Expand", [name, make.weight([2, *shape])], (2, *shape))


def _repeat(make: Maker, name: str, shape: Shape) -> None:
    """The node that computes the value once more."""
    for original in make.nodes:
        if list(original.output) == [name]:
            attributes = {a.name: helper.get_attribute_value(a) for a in original.attribute}
            make.node(original.op_type, list(original.input), shape, **attributes)
            return


_ANY_RANK: tuple[Callable[[Maker, str, Shape], None], ...] = (
    _unary,
    _neutral,
    _constant,
    _binary,
    _reshape,
    _unsqueeze,
    _squeeze,
    _casts,
    _clip,
    _expand,
    _repeat,
)
_RANKED = (_transpose, _concat, _split, _slice, _gather, _pad, _reduce, _softmax, _computed_reshape)


def _if_ranked(step: Callable[[Maker, str, Shape], None]) -> Callable[[Maker, str, Shape], None]:
    return lambda make, name, shape: step(make, name, shape) if shape else None


_STEPS = (*_ANY_RANK, _unary, *(_if_ranked(step) for step in _RANKED), _if_ranked(_transpose))


def random_model(seed: int, steps: int = 10, *, dynamic: bool = False) -> onnx.ModelProto:
    """A model with one float input, ``dynamic`` in its first dim's declaration; every unread value is an output."""
    make = Maker(seed)
    while len(make.nodes) < steps:
        make.step()
    read = {name for node in make.nodes for name in node.input}
    outputs = [name for name in make.values if name != _INPUT[0] and name not in read]
    computed = [name for name in make.values if name != _INPUT[0]]
    inputs = [_info(_INPUT[0], ["N", *_INPUT[1][1:]] if dynamic else list(_INPUT[1]))]
    results = [_info(name, [None] * len(make.values[name])) for name in outputs or computed[-1:]]
    graph = helper.make_graph(make.nodes, "random", inputs, results, make.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _info(name: str, shape: list[int | str | None]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


def _broadcast(a: Shape, b: Shape) -> Shape | None:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])

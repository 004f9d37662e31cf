"""Tensors as they are stored in a file: the data must be there, whole, and of the declared type."""

from __future__ import annotations

from math import prod

import onnx
import onnx_ir as ir

from explorer.errors import ModelError
from explorer.graph.names import quoted

_FIELDS = {
    ir.DataType.FLOAT: "float_data",
    ir.DataType.COMPLEX64: "float_data",
    ir.DataType.DOUBLE: "double_data",
    ir.DataType.COMPLEX128: "double_data",
    ir.DataType.INT64: "int64_data",
    ir.DataType.UINT32: "uint64_data",
    ir.DataType.UINT64: "uint64_data",
    ir.DataType.STRING: "string_data",
}
_COMPLEX = {ir.DataType.COMPLEX64, ir.DataType.COMPLEX128}


def check_stored_tensor(tensor: onnx.TensorProto, place: str) -> None:
    """Refuse a tensor whose declared type and shape do not agree with the data that is stored.

    Args:
        tensor: a tensor of the file; one with external data has only its type and shape checked.
        place: the file and the tensor, as messages name them.

    Raises:
        ModelError: begins with ``place``.
    """
    try:
        dtype = ir.DataType(tensor.data_type)
    except ValueError:
        dtype = ir.DataType.UNDEFINED
    if dtype == ir.DataType.UNDEFINED:
        raise ModelError(
            f"{place} has an unknown element type (number {tensor.data_type}); export the model again."
        )
    if any(dim < 0 for dim in tensor.dims):
        raise ModelError(f"{place} has a negative dimension; export the model again.")
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        if dtype == ir.DataType.STRING:
            raise ModelError(f"{place} keeps strings in another file; save it with its strings inside.")
        _check_place(tensor, place)
        return
    stored, needed, unit = _sizes(tensor, dtype)
    if stored != needed:
        raise ModelError(
            f"{place} holds {stored} {unit} where its type and shape need {needed}; "
            "the file is damaged, download or export it again."
        )


def _check_place(tensor: onnx.TensorProto, place: str) -> None:
    for entry in tensor.external_data:
        if entry.key in {"offset", "length"} and not entry.value.isdecimal():
            raise ModelError(
                f"{place} keeps its data in another file at an impossible place "
                f"({entry.key} {quoted(entry.value)}); export the model again."
            )


def _sizes(tensor: onnx.TensorProto, dtype: ir.DataType) -> tuple[int, int, str]:
    """What is stored, what the type and shape need, and in which unit."""
    count = prod(tensor.dims)
    if dtype != ir.DataType.STRING and tensor.HasField("raw_data"):
        return len(tensor.raw_data), (count * dtype.bitwidth + 7) // 8, "bytes"
    per_field = 1
    if dtype != ir.DataType.STRING and dtype.bitwidth in {2, 4}:
        per_field = 8 // dtype.bitwidth
    needed = -(-count // per_field) * (2 if dtype in _COMPLEX else 1)
    return len(getattr(tensor, _FIELDS.get(dtype, "int32_data"))), needed, "values"

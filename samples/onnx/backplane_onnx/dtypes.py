# SPDX-License-Identifier: Apache-2.0
"""The correspondence between the element types of ONNX and the dtypes of NumPy and Backplane."""
import ml_dtypes
import numpy as np
from onnx import TensorProto

# {element type of ONNX: (dtype of Backplane, dtype of NumPy)}
_ROWS = {
    TensorProto.BOOL: ("bool", np.dtype(np.bool_)), TensorProto.UINT8: ("u8", np.dtype(np.uint8)), TensorProto.INT8: ("i8", np.dtype(np.int8)),
    TensorProto.INT32: ("i32", np.dtype(np.int32)), TensorProto.UINT32: ("u32", np.dtype(np.uint32)), TensorProto.INT64: ("i64", np.dtype(np.int64)),
    TensorProto.FLOAT16: ("f16", np.dtype(np.float16)), TensorProto.BFLOAT16: ("bf16", np.dtype(ml_dtypes.bfloat16)),
    TensorProto.FLOAT: ("f32", np.dtype(np.float32)), TensorProto.DOUBLE: ("f64", np.dtype(np.float64)),
}
# Integer types that Backplane does not have. A wider dtype of Backplane carries their values, and
# Builder.wrap() reduces the results of calls to the range of the type.
_CARRIED = {TensorProto.INT16: ("i32", np.dtype(np.int16)), TensorProto.UINT16: ("i32", np.dtype(np.uint16))}
_OF_ONNX = {kind: name for kind, (name, _) in {**_ROWS, **_CARRIED}.items()}
_OF_NUMPY = {array: name for name, array in _ROWS.values()}
_TO_NUMPY = {name: array for name, array in _ROWS.values()}
_TO_ONNX = {name: kind for kind, (name, _) in _ROWS.items()}

FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
SIGNED = frozenset({"i8", "i32", "i64"})
BYTES = {name: array.itemsize for name, array in _TO_NUMPY.items()}


def of_onnx(kind: int) -> "str | None":
    """Returns the name of the Backplane dtype for an element type, or None if there is none."""
    return _OF_ONNX.get(kind)


def is_carried(kind: int) -> bool:
    return kind in _CARRIED


def array_type(kind: int) -> "np.dtype | None":
    """Returns the NumPy dtype for an element type. Returns None if Backplane neither has nor carries the type."""
    found = _ROWS.get(kind) or _CARRIED.get(kind)
    return None if found is None else found[1]


def carried_array(array: np.ndarray) -> np.ndarray:
    """Returns the array itself, or converts it to the wider dtype if Backplane only carries its type."""
    found = next((name for name, own in _CARRIED.values() if own == array.dtype), None)
    return array if found is None else array.astype(_TO_NUMPY[found])


def of_numpy(dtype: np.dtype) -> "str | None":
    return _OF_NUMPY.get(dtype)


def to_numpy(name: str) -> np.dtype:
    return _TO_NUMPY[name]


def to_onnx(name: str) -> int:
    return _TO_ONNX[name]


def onnx_name(kind: int) -> str:
    """Returns the name of an element type in ONNX."""
    return TensorProto.DataType.Name(kind) if kind in TensorProto.DataType.values() else f"element type {kind}"


def limits_of(kind: int) -> "tuple[float, float]":
    """Returns the least and the greatest value of an integer element type of ONNX."""
    info = np.iinfo(array_type(kind))
    return int(info.min), int(info.max)


def limits(name: str) -> "tuple[float, float]":
    """Returns the least and the greatest value of a Backplane dtype."""
    if name == "bool":
        return 0, 1
    if name in FLOATS:
        return -np.inf, np.inf
    info = np.iinfo(_TO_NUMPY[name])
    return int(info.min), int(info.max)

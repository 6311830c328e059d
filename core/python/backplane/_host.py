# SPDX-License-Identifier: Apache-2.0
"""Conversion between Python's objects and bytes of tensors, without NumPy."""
import ctypes
import numbers
import struct
from typing import Any, Optional

from . import dtypes, errors
from ._library import library

_BITS = {1: "B", 2: "H", 4: "I", 8: "Q"}  # format of a dtype's bits, by the size in bytes


def encode(data: Any, dtype: Optional[str]) -> "tuple[Any, str, tuple[int, ...]]":
    """Returns a tuple: the data as contiguous bytes, the dtype, and the shape."""
    if dtype is not None:
        dtypes.checked(dtype, "tensor")
    if not isinstance(data, (list, tuple, int, float)):
        return _encode_array(data, dtype)
    shape, values = _flatten(data)
    if dtype is None:
        dtype = _dtype_of(values)
    return _packed(values, dtype), dtype, shape


def _encode_array(data, dtype):
    try:
        view = memoryview(data)
    except TypeError:
        raise errors.InvalidArgument(f"tensor: a {type(data).__name__} is neither a number, a sequence nor an array with the buffer protocol; "
                                     "convert it, or use from_dlpack") from None
    own = dtypes.of_format(view.format, view.itemsize)
    if own is None and dtype == "bf16" and view.format.lstrip("@=<") == "H":
        own = "bf16"
    if own is None:
        raise errors.InvalidArgument(f"tensor: no dtype corresponds to arrays of format {view.format!r} with {view.itemsize} bytes; convert the array "
                                     f"to one of {', '.join(dtypes.FORMAT)}")
    if dtype not in (None, own):
        raise errors.InvalidArgument(f"tensor: the array is {own}, and dtype is {dtype}; convert the array first, or use ops.cast on the device")
    direct = view.c_contiguous and not view.readonly
    return view if direct else view.tobytes(), own, tuple(view.shape)


def address_of(source: Any) -> "tuple[int | None, int, Any]":
    """Returns the address and the size of contiguous bytes, and an object that keeps the address valid."""
    if isinstance(source, bytes):
        keep: Any = ctypes.c_char_p(source)
        return ctypes.cast(keep, ctypes.c_void_p).value, len(source), keep
    if source.nbytes == 0:
        return None, 0, None
    keep = ctypes.c_char.from_buffer(source)
    return ctypes.addressof(keep), source.nbytes, keep


def _flatten(data):
    """Returns the shape and the numbers of nested sequences."""
    if not isinstance(data, (list, tuple)):
        return (), [data]
    parts = [_flatten(each) for each in data]
    if any(shape != parts[0][0] for shape, _ in parts):
        raise errors.InvalidArgument("tensor: the sequences have different lengths; make the nested sequences rectangular")
    inner = parts[0][0] if parts else ()
    return (len(parts), *inner), [value for _, values in parts for value in values]


def _dtype_of(values):
    if values and all(isinstance(value, bool) for value in values):
        return "bool"
    if values and all(isinstance(value, numbers.Integral) for value in values):
        return "i32"
    return "f32"


def _packed(values, dtype):
    try:
        if dtype in dtypes.FORMAT:
            return struct.pack(f"={len(values)}{dtypes.FORMAT[dtype]}", *values)
        convert, identity = library().bph_scalar_from_f64, dtypes.ID[dtype]
        return struct.pack(f"={len(values)}{_BITS[dtypes.BYTES[dtype]]}", *(convert(identity, value) for value in values))
    except (struct.error, OverflowError, TypeError, ctypes.ArgumentError) as failure:
        raise errors.InvalidArgument(f"tensor: a value does not fit {dtype}: {failure}; correct the value or state another dtype") from None


def decode(raw: Any, start: int, dtype: str, shape: "tuple[int, ...]", strides: "tuple[int, ...]") -> Any:
    """Returns nested lists of the values of a view whose element 0 is at byte `start`."""
    size = dtypes.BYTES[dtype]
    read = struct.Struct("=" + dtypes.FORMAT[dtype]).unpack_from if dtype in dtypes.FORMAT else _read_bf16

    def level(axis, place):
        if axis == len(shape):
            return read(raw, place)[0]
        return [level(axis + 1, place + i * strides[axis] * size) for i in range(shape[axis])]

    return level(0, start)


def _read_bf16(raw, place):
    """Reads a bf16 value, which is the upper half of an f32."""
    return struct.unpack("<f", b"\0\0" + bytes(raw[place:place + 2]))

# SPDX-License-Identifier: Apache-2.0
"""Views of device memory."""
import ctypes
import numbers
from typing import TYPE_CHECKING, Any, Optional, Sequence

from . import _host, constants, dtypes, errors
from ._library import error_record, invoke, library, check
from ._structs import bph_tensor
from .buffer import Buffer

if TYPE_CHECKING:
    from .device import Device
    from .stream import Stream

MAX_RANK = constants.BP_MAX_RANK


def dense_strides(shape: "Sequence[int]") -> "tuple[int, ...]":
    """Returns the strides of a contiguous row-major tensor, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def element_count(shape: "Sequence[int]") -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def bits_of(value: "float | numbers.Real", dtype: str, what: str) -> int:
    """Returns the bits of a number in a dtype. Raises InvalidArgument for a fraction if the dtype is not a float."""
    if not isinstance(value, numbers.Real):
        raise errors.InvalidArgument(f"{what} is of type {type(value).__name__}; pass a number")
    if not isinstance(value, numbers.Integral):
        if dtypes.KIND[dtype] != "FLOAT":
            raise errors.InvalidArgument(f"{what} is {value!r}, and the dtype is {dtype}; pass an integer, or cast the tensor to a float dtype")
        return library().bph_scalar_from_f64(dtypes.ID[dtype], float(value))
    number = int(value)
    if dtypes.KIND[dtype] == "FLOAT":
        return library().bph_scalar_from_f64(dtypes.ID[dtype], float(number))
    if not -2**63 <= number < 2**63:
        raise errors.InvalidArgument(f"{what} is {number}, which exceeds 64 bits; pass a smaller number")
    return library().bph_scalar_from_i64(dtypes.ID[dtype], number)


class Tensor:
    """A view with value semantics: a buffer, an offset, a dtype, a shape and strides in elements.

    `device.empty`, `device.tensor` and `device.from_dlpack` create tensors. The methods that return a tensor make a
    view and copy nothing."""

    __slots__ = ("_view", "_buffer", "shape", "dtype", "__weakref__")

    def __init__(self, buffer: Optional[Buffer], dtype: str, shape: "Sequence[int]", strides: "Optional[Sequence[int]]" = None,
                 offset: int = 0) -> None:
        shape = tuple(shape)
        if len(shape) > MAX_RANK:
            raise errors.InvalidArgument(f"Tensor: the shape {shape} has rank {len(shape)}; the most is {MAX_RANK}: merge dimensions")
        if any(extent < 0 for extent in shape):
            raise errors.InvalidArgument(f"Tensor: the shape {shape} has a negative extent; extents are 0 or more")
        self.shape: "tuple[int, ...]" = shape
        self.dtype = dtypes.checked(dtype, "Tensor")
        self._buffer = buffer
        self._view = view = bph_tensor(None if buffer is None else buffer.handle, offset, 0, dtypes.ID[dtype], len(shape))
        view.shape[:len(shape)] = shape
        view.strides[:len(shape)] = dense_strides(shape) if strides is None else strides

    @classmethod
    def empty(cls, stream: "Stream", shape: "Sequence[int] | int", dtype: str, kind: str = "device") -> "Tensor":
        """Allocates a contiguous tensor with undefined contents."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        found = _layouts.get((shape, dtype))
        if found is None:
            found = _remembered(shape, dtype)
        bytes, template = found
        tensor = cls.__new__(cls)
        tensor.shape, tensor.dtype = shape, dtype
        tensor._buffer = buffer = Buffer.create(stream, bytes, kind)
        tensor._view = view = bph_tensor.from_buffer_copy(template)
        view.buffer = buffer._value
        return tensor

    @classmethod
    def from_host(cls, stream: "Stream", data: Any, dtype: Optional[str] = None, kind: str = "device") -> "Tensor":
        """Allocates a tensor and copies data from the host. Device.tensor describes the parameters."""
        source, dtype, shape = _host.encode(data, dtype)
        out = cls.empty(stream, shape, dtype, kind)
        out._copy_in(source, stream)
        return out

    # ---- Properties ----

    @property
    def buffer(self) -> Buffer:
        if self._buffer is None:
            raise errors.InvalidArgument("Tensor: a scalar has no memory; fill a tensor with the value: ops.fill(value=..., out=...)")
        return self._buffer

    @property
    def stream(self) -> "Stream":
        """The stream on which the memory was allocated. Calls use this stream unless they name another one."""
        return self.buffer.stream

    @property
    def device(self) -> "Device":
        return self.buffer.stream.device

    @property
    def strides(self) -> "tuple[int, ...]":
        return tuple(self._view.strides[:len(self.shape)])

    @property
    def offset(self) -> int:
        """Bytes from the buffer's start to element 0."""
        return self._view.offset

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return element_count(self.shape)

    @property
    def is_contiguous(self) -> bool:
        return self.size == 0 or all(extent == 1 or stride == dense for extent, stride, dense in
                                     zip(self.shape, self.strides, dense_strides(self.shape)))

    def __repr__(self) -> str:
        place = self.device.name if self._buffer is not None else "scalar"
        return f"<Tensor {self.dtype} {self.shape} on {place}>"

    # ---- Views ----

    def _with(self, shape, strides, offset=0) -> "Tensor":
        return Tensor(self.buffer, self.dtype, shape, strides, self.offset + offset * dtypes.BYTES[self.dtype])

    def reshape(self, *shape: int) -> "Tensor":
        """Returns a view of a contiguous tensor with another shape. One extent may be -1. Raises InvalidArgument for
        other strides."""
        wanted = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
        if wanted.count(-1) == 1:
            rest = -element_count(wanted)
            wanted = tuple((self.size // rest if rest else 0) if extent == -1 else extent for extent in wanted)
        if element_count(wanted) != self.size or min(wanted, default=0) < 0:
            raise errors.InvalidArgument(f"reshape: {self.shape} has {self.size} elements, and {shape} has another number; correct the shape")
        if not self.is_contiguous:
            raise errors.InvalidArgument(f"reshape: the tensor has strides {self.strides} and is not contiguous; copy it first: ops.copy(x)")
        return self._with(wanted, None)

    def permute(self, *order: int) -> "Tensor":
        """Returns a view whose dimension i is dimension order[i] of this tensor."""
        if sorted(order) != list(range(self.rank)):
            raise errors.InvalidArgument(f"permute: {order} does not contain each dimension of {self.shape} once; correct the order")
        return self._with([self.shape[d] for d in order], [self.strides[d] for d in order])

    def transpose(self, first: int = -1, second: int = -2) -> "Tensor":
        """Returns a view with two dimensions exchanged, by default the last two."""
        order = list(range(self.rank))
        try:
            order[first], order[second] = order[second], order[first]
        except IndexError:
            raise errors.InvalidArgument(f"transpose: dimensions {first} and {second} of shape {self.shape}; correct the dimensions") from None
        return self.permute(*order)

    def broadcast_to(self, shape: "Sequence[int]") -> "Tensor":
        """Returns a view of the given shape, in which repeated dimensions have stride 0."""
        shape = tuple(shape)
        added = len(shape) - self.rank
        if added < 0 or any(own not in (1, extent) for own, extent in zip(self.shape, shape[max(added, 0):])):
            raise errors.InvalidArgument(f"broadcast_to: {self.shape} cannot be broadcast to {shape}; each extent must be equal or 1")
        strides = [0] * added + [0 if own == 1 and extent != 1 else stride for own, extent, stride in
                                 zip(self.shape, shape[added:], self.strides)]
        if self._buffer is None:
            view = scalar(0, self.dtype, shape)
            view._view.immediate = self._view.immediate
            return view
        return self._with(shape, strides)

    def __getitem__(self, index: Any) -> "Tensor":
        """Returns a view. An index consists of integers, slices with any step, None for a new dimension, and one
        `...`."""
        parts = index if isinstance(index, tuple) else (index,)
        used = sum(part is not None and part is not Ellipsis for part in parts)
        if used > self.rank or sum(part is Ellipsis for part in parts) > 1:
            raise IndexError(f"index {index!r} of shape {self.shape}: too many dimensions or more than one '...'; correct the index")
        if Ellipsis not in parts:
            parts = (*parts, Ellipsis)
        shape, strides, offset, axis = [], [], 0, 0
        own = self.strides
        for part in parts:
            if part is None:
                shape.append(1)
                strides.append(0)
            elif part is Ellipsis:
                rest = self.rank - used
                shape += self.shape[axis:axis + rest]
                strides += own[axis:axis + rest]
                axis += rest
            elif isinstance(part, slice):
                start, stop, step = part.indices(self.shape[axis])
                count = len(range(start, stop, step))
                shape.append(count)
                strides.append(own[axis] * step)
                offset += start * own[axis] if count else 0
                axis += 1
            else:
                place = part.__index__() if hasattr(part, "__index__") else None
                extent = self.shape[axis]
                if place is None or not -extent <= place < extent:
                    raise IndexError(f"index {part!r} of dimension {axis} with extent {extent}: pass an integer from {-extent} to {extent - 1}, or a slice")
                offset += (place % extent) * own[axis]
                axis += 1
        return self._with(shape, strides, offset)

    def __iter__(self):
        raise TypeError("a tensor is not iterable, because each element would be one copy; use numpy() or tolist()")

    # ---- Copies ----

    def _extent(self) -> "tuple[int, int]":
        """Returns the range (begin, end) of the view's bytes, relative to element 0."""
        spans = [(extent - 1) * stride for extent, stride in zip(self.shape, self.strides)]
        size = dtypes.BYTES[self.dtype]
        return sum(min(span, 0) for span in spans) * size, (sum(max(span, 0) for span in spans) + 1) * size

    def _copy_in(self, source, stream) -> None:
        """Copies host memory to a contiguous tensor. The source is free when the call returns."""
        address, bytes, _keep = _host.address_of(source)
        if bytes:
            invoke("bph_copy_in", stream.handle, self.buffer.handle, self.offset, address, bytes, constants.BPH_COPY_SOURCE_FREE)

    def copy_from(self, data: Any, *, stream: "Optional[Stream]" = None) -> None:
        """Copies data of the same shape and dtype from the host to this contiguous tensor."""
        source, dtype, shape = _host.encode(data, self.dtype)
        if shape != self.shape or not self.is_contiguous:
            raise errors.InvalidArgument(f"copy_from: the data has shape {shape}, and the tensor has shape {self.shape} and strides {self.strides}; "
                                         "the shapes must be equal and the tensor contiguous")
        self._copy_in(source, stream or self.stream)

    def _raw(self, stream: "Optional[Stream]") -> "tuple[bytearray, int]":
        """Copies the bytes that the view touches to the host, and returns them with the offset of element 0. Waits for
        the copy."""
        if self.size == 0:
            return bytearray(), 0
        low, high = self._extent()
        raw = bytearray(high - low)
        record = error_record()
        target = (ctypes.c_char * len(raw)).from_buffer(raw)
        check(library().bph_copy_out((stream or self.stream).handle, ctypes.addressof(target), self.buffer.handle, self.offset + low, len(raw), 0,
                                     record), record)
        return raw, -low

    def numpy(self, *, stream: "Optional[Stream]" = None):
        """Copies the values to a new NumPy array, and waits for the copy. NumPy has no bf16: cast to f32 first."""
        if self.dtype not in dtypes.FORMAT:
            raise errors.Unsupported(f"numpy: NumPy has no dtype for {self.dtype}; cast first: ops.cast(x, dtype=\"f32\").numpy()")
        import numpy
        raw, start = self._raw(stream)
        kind = numpy.dtype(dtypes.FORMAT[self.dtype])
        if not raw:
            return numpy.empty(self.shape, kind)
        array: Any = numpy.ndarray(self.shape, kind, raw, start, [stride * kind.itemsize for stride in self.strides])
        return array if self.is_contiguous else array.copy()

    def tolist(self, *, stream: "Optional[Stream]" = None) -> Any:
        """Copies the values to nested lists, or to a number if the rank is 0, and waits for the copy."""
        raw, start = self._raw(stream)
        return _host.decode(raw, start, self.dtype, self.shape, self.strides)

    def item(self, *, stream: "Optional[Stream]" = None) -> "int | float | bool":
        """Returns the value of a tensor with one element, and waits for the copy."""
        if self.size != 1:
            raise errors.InvalidArgument(f"item: the tensor has shape {self.shape}; use tolist() for more than one element")
        value = self.tolist(stream=stream)
        while isinstance(value, list):
            value = value[0]
        return value

    # ---- DLPack ----

    def __dlpack__(self, *, stream: Any = None, max_version: "Optional[tuple[int, int]]" = None, dl_device: "Optional[tuple[int, int]]" = None,
                   copy: Optional[bool] = None) -> Any:
        """Exports the view. Waits for the work of this tensor's stream, unless `stream` is -1.

        Shares the memory, except in two cases: `copy` is True, or `dl_device` is the host, (1, 0), and the host cannot
        access the memory. In these cases the result is a copy, which is complete when the call returns. Raises a
        BufferError that is also an Unsupported for a tensor that DLPack cannot represent."""
        from ._dlpack import export_tensor
        return export_tensor(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> "tuple[int, int]":
        from ._dlpack import device_of
        return device_of(self)


class PackedTensor(Tensor):
    """An operand that `pack` wrote in a layout of the plugin. Only calls that read this layout accept it, and it has no
    views and no values on the host."""

    __slots__ = ()

    @classmethod
    def of(cls, plain: Tensor, buffer: Buffer, view: bph_tensor) -> "PackedTensor":
        packed = cls(buffer, plain.dtype, plain.shape)
        packed._view = view
        return packed

    @property
    def is_contiguous(self) -> bool:
        return False

    def _refuse(self) -> errors.InvalidArgument:
        return errors.InvalidArgument(f"the tensor of shape {self.shape} is packed, so only calls that read its layout accept it; use the tensor from which "
                                      "it was packed")

    def _with(self, shape, strides, offset=0) -> Tensor:
        raise self._refuse()

    def _raw(self, stream: "Optional[Stream]") -> "tuple[bytearray, int]":
        raise self._refuse()

    def __dlpack__(self, **_: Any) -> Any:
        raise self._refuse()


# {(shape, dtype): (bytes, view without a buffer)} of contiguous tensors. The dictionary makes repeated allocations
# faster.
_layouts: dict = {}
_LAYOUTS_LIMIT = 4096


def _remembered(shape, dtype):
    view = Tensor(None, dtype, shape)._view
    if len(_layouts) >= _LAYOUTS_LIMIT:
        _layouts.clear()
    found = _layouts[shape, dtype] = (element_count(shape) * dtypes.BYTES[dtype], view)
    return found


def scalar(value: "float | numbers.Real", dtype: str, shape: "Sequence[int]" = (), what: str = "scalar: the value") -> Tensor:
    """Returns an operand without device memory: every element is `value`. The value may change at every call without a
    new plan."""
    tensor = Tensor(None, dtype, shape, [0] * len(tuple(shape)))
    tensor._view.immediate = bits_of(value, dtype, what)
    tensor._view.flags = constants.BPH_TENSOR_IMMEDIATE
    return tensor

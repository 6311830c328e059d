# SPDX-License-Identifier: Apache-2.0
"""Exchange of tensors through DLPack, versions 0 and 1. The structs are those of dlpack.h, whose layout is frozen.

The package has no compiled code, so it cannot offer the table of C functions `__dlpack_c_exchange_api__`. A function of
this table sets a Python exception before it returns to C, and a callback of ctypes cannot do this."""
import ctypes
import os
import sys
import threading
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any

from . import dtypes, errors
from ._library import invoke
from ._structs import bph_tensor
from .buffer import Buffer
from .tensor import Tensor

if TYPE_CHECKING:
    from .device import Device
    from .stream import Stream

CPU = (1, 0)  # kDLCPU
_VERSION = (1, 0)
# Bits of _Versioned.flags: the memory is read-only; the memory is a copy that only the consumer uses.
_READ_ONLY, _COPIED = 1, 2
_NO_WAIT = -1  # value of the parameter `stream` with which an export does not wait


class _Tensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8),
                ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _Managed(Structure):
    """DLManagedTensor, which versions before 1.0 exchange."""

    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class _Versioned(Structure):
    """DLManagedTensorVersioned of version 1."""

    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p), ("flags", c_uint64), ("tensor", _Tensor)]


_NAMES = {_Managed: b"dltensor", _Versioned: b"dltensor_versioned"}
_USED = {kind: b"used_" + name for kind, name in _NAMES.items()}  # names after a consumer took the tensor
_Deleter = ctypes.CFUNCTYPE(None, c_void_p)

_new = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_rename = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))

# {address: (struct, address of the other side's struct)} of structs whose deleter has not run.
_living: dict = {}
_capsules: list = []  # [capsule, kind] of each export since the last sweep
_lock = threading.RLock()  # the garbage collector may run a deleter while this thread holds the lock


def _new_lock() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_new_lock)  # another thread of the parent may hold the lock


def _delete(address, kind):
    """Calls the deleter of the struct at `address`, if the struct has a deleter. The caller must own the struct."""
    deleter = kind.from_address(address).deleter
    if deleter:
        _Deleter(deleter)(address)


def _end(address, kind):
    with _lock:
        found = _living.pop(address, None)
    if found is not None:
        _delete(found[1], kind)


# The callbacks have the lifetime of the process, because other libraries keep their addresses.
@_Deleter
def _end_export(address):
    """The deleter of a DLManagedTensor that wraps a DLManagedTensorVersioned."""
    _end(address, _Versioned)


@_Deleter
def _end_import(address):
    """The deleter of a DLManagedTensorVersioned that wraps a DLManagedTensor."""
    _end(address, _Managed)


# Nothing frees these objects, because a callback may run at the end of the process, and a capsule stores the address of
# its name.
for _each in (_end_export, _end_import, *_NAMES.values(), *_USED.values()):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_each))


def _wrap(kind, other, other_address, deleter):
    """Returns a new struct of `kind` over the tensor of the struct `other`. The deleter of the new struct deletes both
    structs."""
    own = kind(tensor=other.tensor, deleter=ctypes.cast(deleter, c_void_p).value)
    with _lock:
        _living[ctypes.addressof(own)] = (own, other_address)
    return own


def _capsule(address, kind):
    """Returns a capsule without a destructor. A destructor in Python would lose an exception that a consumer has just
    set."""
    capsule = _new(address, _NAMES[kind], None)
    with _lock:
        _capsules.append([capsule, kind])
    return capsule


def sweep() -> None:
    """Ends the exports whose capsule was never used and is no longer referenced. export_tensor and import_tensor call
    this function first."""
    unused = []
    with _lock:
        for entry in list(_capsules):
            if sys.getrefcount(entry[0]) <= 2:  # only the entry and getrefcount's argument refer to the capsule
                _capsules.remove(entry)
                unused.append(entry)
    for capsule, kind in unused:
        if _is_valid(id(capsule), _NAMES[kind]):  # a consumer would have renamed the capsule
            _delete(_pointer(id(capsule), _NAMES[kind]), kind)


class NotExportable(errors.Unsupported, BufferError):
    """DLPack cannot represent the tensor. The class derives from BufferError, because consumers expect a
    BufferError."""


def device_of(tensor: Tensor) -> "tuple[int, int]":
    """Returns the DLPack device of a tensor. Raises NotExportable if the memory has none."""
    kind = tensor.buffer.kind
    found = tensor.device.info.dlpack.get(kind)
    if found is None:
        raise NotExportable(f"DLPack: {tensor.device.name} names no DLPack device for {kind} memory; use numpy(), which copies, "
                            "or dl_device=(1, 0)")
    return found


_MAPPED = ("host", "shared")  # the kinds of memory that the host can access


def _on_host(tensor: Tensor) -> Tensor:
    """Returns a copy of a tensor in memory that the host can access. Does not wait."""
    from . import ops
    kind = next((kind for kind in _MAPPED if kind in tensor.device.info.memory_kinds), None)
    if kind is None:
        raise NotExportable(f"__dlpack__: {tensor.device.name} has no memory that the host can access; use numpy(), which copies")
    dense = tensor if tensor.is_contiguous else ops.copy(tensor)
    out = Tensor.empty(tensor.stream, tensor.shape, tensor.dtype, kind)
    bytes = tensor.size * dtypes.BYTES[tensor.dtype]
    if bytes:
        invoke("bph_copy", tensor.stream.handle, out.buffer.handle, 0, dense.buffer.handle, dense.offset, bytes, 0)
    return out


def _copied(tensor: Tensor) -> Tensor:
    """Returns a copy of a tensor in memory of the same kind. Does not wait."""
    from . import ops
    kind = tensor.buffer.kind
    if kind != "host":
        return ops.copy(tensor, out=Tensor.empty(tensor.stream, tensor.shape, tensor.dtype, kind))
    if tensor.size == 0:
        return _on_host(tensor)
    # A copy from HOST to HOST memory is illegal, and operators of some devices accept no HOST memory. Therefore the
    # bytes that the view touches pass through DEVICE memory.
    low, high = tensor._extent()
    staged = Buffer.create(tensor.stream, high - low)
    invoke("bph_copy", tensor.stream.handle, staged.handle, 0, tensor.buffer.handle, tensor.offset + low, high - low, 0)
    return _on_host(Tensor(staged, tensor.dtype, tensor.shape, tensor.strides, -low))


def _to_export(tensor: Tensor, wanted, copy) -> "tuple[Tensor, bool]":
    """Returns the tensor to export to the device `wanted`, and whether it is a copy."""
    kind = tensor.buffer.kind
    if wanted is None or wanted == tensor.device.info.dlpack.get(kind) or wanted == CPU and kind in _MAPPED:
        return (_copied(tensor), True) if copy else (tensor, False)
    if wanted != CPU:
        raise NotExportable(f"__dlpack__: the memory is on device {device_of(tensor)}, and dl_device is {wanted}; pass this device, or {CPU} for the host")
    if copy is False:
        raise NotExportable("__dlpack__: the host needs a copy of this memory, which copy=False forbids; omit copy")
    return _on_host(tensor), True


def export_tensor(tensor: Tensor, stream, max_version, dl_device, copy) -> Any:
    """Returns a DLPack capsule of the tensor. Raises NotExportable for memory that other libraries cannot use."""
    sweep()
    if stream is not None and not isinstance(stream, int):
        raise errors.InvalidArgument(f"__dlpack__: stream is {stream!r}; pass None, -1, or the number of a stream")
    wanted = None if dl_device is None else tuple(dl_device)
    out = c_void_p()
    try:
        source, copied = _to_export(tensor, wanted, copy)
        producer = None if stream == _NO_WAIT and not copied else source.stream.handle
        invoke("bph_dlpack_export", source._view, producer, None, out)
    except errors.Unsupported as failure:
        raise NotExportable(str(failure), failure.vendor_code, failure.op) from None
    managed = _Versioned.from_address(out.value or 0)
    managed.flags |= _COPIED if copied else 0
    if wanted is not None:  # the plugin may state another device type for memory that the host can access
        managed.tensor.device_type, managed.tensor.device_id = wanted
    if max_version is not None and tuple(max_version) >= _VERSION:
        return _capsule(out.value, _Versioned)
    if managed.flags & _READ_ONLY:
        _delete(out.value, _Versioned)
        raise NotExportable("__dlpack__: the tensor is read-only, which DLPack before 1.0 cannot say; pass copy=True")
    own = _wrap(_Managed, managed, out.value, _end_export)
    return _capsule(ctypes.addressof(own), _Managed)


def _exported(source):
    """Calls `__dlpack__` of another library's object. Passes the version that this module supports, if the method has
    the parameter max_version."""
    if not hasattr(source, "__dlpack__"):
        raise errors.InvalidArgument(f"from_dlpack: a {type(source).__name__} has no __dlpack__; use tensor(), which copies")
    try:
        return source.__dlpack__(max_version=_VERSION)
    except TypeError:
        return source.__dlpack__()


def import_tensor(device: "Device", source: Any, stream: "Stream") -> Tensor:
    """Returns a tensor over the memory of `source`."""
    sweep()
    capsule = _exported(source)
    kind = next((kind for kind, name in _NAMES.items() if _is_valid(id(capsule), name)), None)
    if kind is None:
        raise errors.InvalidArgument("from_dlpack: __dlpack__ returned no unused capsule of DLPack; pass the object that owns the tensor")
    address = _pointer(id(capsule), _NAMES[kind])
    if kind is _Managed:
        own = _wrap(_Versioned, _Managed.from_address(address), address, _end_import)
        own.major, own.minor = _VERSION
        versioned = ctypes.addressof(own)
    else:
        versioned = address
    view = bph_tensor()
    try:
        invoke("bph_dlpack_import", device.handle, versioned, stream.handle, view)
    except errors.Error:
        with _lock:
            _living.pop(versioned, None)
        raise  # the capsule still owns the tensor
    # The capsule's destructor ignores a capsule of this name.
    _rename(id(capsule), _USED[kind])
    buffer = Buffer(view.buffer, stream, 0)
    buffer.bytes = buffer._info().bytes
    return Tensor(buffer, dtypes.NAME[view.dtype], view.shape[:view.rank], view.strides[:view.rank], view.offset)

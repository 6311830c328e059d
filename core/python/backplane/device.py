# SPDX-License-Identifier: Apache-2.0
"""Open devices."""
import ctypes
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Sequence

from . import constants, errors
from ._handle import Handle
from ._library import invoke
from ._structs import bp_device_info, bp_memory_info, bph_device_desc, bph_stats
from .buffer import KINDS, kind_of
from .stream import Event, Stream
from .tensor import Tensor

if TYPE_CHECKING:
    from .registry import Registry

_FALLBACKS = {"error": constants.BPH_FALLBACK_ERROR, "warn": constants.BPH_FALLBACK_WARN, "allow": constants.BPH_FALLBACK_ALLOW}
_TYPES = {constants.BP_DEVICE_CPU: "cpu", constants.BP_DEVICE_GPU: "gpu", constants.BP_DEVICE_NPU: "npu"}
_CAPABILITIES = {name[len("BP_CAP_"):].lower(): value for name, value in vars(constants).items() if name.startswith("BP_CAP_")}


class DeviceInfo(NamedTuple):
    """Properties of a device."""

    name: str
    driver: str
    type: str  # "cpu", "gpu", "npu" or "other"
    uuid: bytes
    alignment: int
    max_buffer_bytes: int
    memory_kinds: "tuple[str, ...]"
    capabilities: "tuple[str, ...]"
    dlpack: "dict[str, tuple[int, int]]"  # DLPack device of each memory kind that has one

    @classmethod
    def of(cls, info) -> "DeviceInfo":
        dlpack = {name: (info.dlpack_type[kind], info.dlpack_id if name == "device" else 0) for name, kind in KINDS.items()
                  if info.dlpack_type[kind]}
        return cls(info.name.decode("utf-8", "replace"), info.driver.decode("utf-8", "replace"), _TYPES.get(info.type, "other"),
                   bytes(info.uuid), info.alignment, info.max_buffer_bytes,
                   tuple(name for name, kind in KINDS.items() if info.memory_kinds >> kind & 1),
                   tuple(name for name, bit in _CAPABILITIES.items() if info.capabilities & bit), dlpack)


class MemoryInfo(NamedTuple):
    """Size of a device's memory."""

    total_bytes: int
    free_bytes: int


class Device(Handle):
    """An open device. `backplane.open` returns one."""

    __slots__ = ("registry", "name", "_stream", "_lock")
    _release = "bph_device_release"

    def __init__(self, value: Optional[int], registry: "Registry") -> None:
        super().__init__(value)
        self.registry = registry
        text = ctypes.create_string_buffer(128)
        invoke("bph_device_name", value, text, len(text))
        self.name = text.value.decode()
        self._stream: Optional[Stream] = None
        self._lock = threading.Lock()

    @property
    def stream(self) -> Stream:
        """The stream of calls that name no stream. The first use creates the stream."""
        self.require()
        if self._stream is None:
            with self._lock:
                if self._stream is None:
                    self._stream = Stream(self)
        return self._stream

    def create_stream(self, priority: int = 0) -> Stream:
        """Creates another stream. Positive priorities are more urgent."""
        return Stream(self, priority)

    def create_event(self, timing: bool = False) -> Event:
        return Event(self, timing)

    def close(self) -> None:
        """Releases the device and its stream. The device closes when its other streams, events and buffers are
        released."""
        if self._stream is not None:
            self._stream.close()
        super().close()

    @property
    def info(self) -> DeviceInfo:
        info = bp_device_info(struct_size=ctypes.sizeof(bp_device_info))
        invoke("bph_device_get_info", self.handle, info)
        return DeviceInfo.of(info)

    def memory_info(self, kind: str = "device") -> MemoryInfo:
        info = bp_memory_info(struct_size=ctypes.sizeof(bp_memory_info))
        invoke("bph_device_memory_info", self.handle, kind_of(kind), info)
        return MemoryInfo(info.total_bytes, info.free_bytes)

    def stats(self) -> "dict[str, int]":
        """Returns the counters since the device was opened. The names are those of the C struct bph_stats."""
        stats = bph_stats(struct_size=ctypes.sizeof(bph_stats))
        invoke("bph_device_stats", self.handle, stats)
        return {field[0]: getattr(stats, field[0]) for field in bph_stats._fields_ if field[0] not in ("struct_size", "reserved")}

    def trim(self, plans: bool = False) -> int:
        """Frees cached memory, and returns the number of bytes that the plugin got back. With `plans`, also destroys
        cached plans."""
        out = ctypes.c_uint64()
        invoke("bph_device_trim", self.handle, 1 if plans else 0, out)
        return out.value

    def empty(self, shape: "Sequence[int]", dtype: str = "f32", *, stream: Optional[Stream] = None, kind: str = "device") -> Tensor:
        """Allocates a contiguous tensor with undefined contents."""
        return Tensor.empty(stream or self.stream, shape, dtype, kind)

    def tensor(self, data: Any, dtype: Optional[str] = None, *, stream: Optional[Stream] = None, kind: str = "device") -> Tensor:
        """Allocates a tensor and copies data from the host: a number, nested sequences, or an array such as NumPy's.

        Numbers become f32, i32 or bool unless `dtype` states another dtype. An array keeps its dtype; if `dtype` states
        another dtype, the call raises InvalidArgument. Exception: with `dtype` "bf16", a uint16 array contains the bits
        of the values."""
        return Tensor.from_host(stream or self.stream, data, dtype, kind)

    from_numpy = tensor

    def from_dlpack(self, source: Any, *, stream: Optional[Stream] = None) -> Tensor:
        """Imports an object that has `__dlpack__`, without a copy. Raises Unsupported if the device cannot reach the
        memory. A tensor over read-only memory can be an input, but no call writes to it.

        If the memory is not memory of the CPU, first wait for the other library's work on this memory."""
        from ._dlpack import import_tensor
        return import_tensor(self, source, stream or self.stream)

    def __repr__(self) -> str:
        return f"<Device {self.name}{', released' if self.closed else ''}>"


def open_device(opened, registry: "Registry", *, fallback: str = "error", fallback_device: Optional[str] = None,
                native_composites: Optional[bool] = None, plan_cache_entries: int = 0, options: Optional[str] = None) -> Device:
    """Opens a device with the function `opened(desc, out)`. backplane.open describes the parameters."""
    if fallback not in _FALLBACKS:
        raise errors.InvalidArgument(f"open: fallback is {fallback!r}; use one of {', '.join(_FALLBACKS)}")
    desc = bph_device_desc(struct_size=ctypes.sizeof(bph_device_desc), fallback=_FALLBACKS[fallback], plan_cache_entries=plan_cache_entries)
    desc.fallback_device = None if fallback_device is None else fallback_device.encode()
    desc.native_composites = 0 if native_composites is None else 1 if native_composites else 2
    desc.options = None if options is None else options.encode()
    out = ctypes.c_void_p()
    opened(desc, out)
    return Device(out.value, registry)

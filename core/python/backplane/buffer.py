# SPDX-License-Identifier: Apache-2.0
"""Spans of device memory."""
import ctypes
from typing import TYPE_CHECKING, Optional

from . import constants, errors
from ._handle import Handle
from ._library import invoke
from ._structs import bph_buffer_desc, bph_buffer_info

if TYPE_CHECKING:
    from .stream import Stream

KINDS = {"device": constants.BP_MEMORY_DEVICE, "host": constants.BP_MEMORY_HOST, "shared": constants.BP_MEMORY_SHARED}


def kind_of(name: str) -> int:
    """Returns the number of a memory kind. Raises InvalidArgument for an unknown name."""
    if name not in KINDS:
        raise errors.InvalidArgument(f"memory kind {name!r} is unknown; use one of {', '.join(KINDS)}")
    return KINDS[name]


class Buffer(Handle):
    """Memory for the work of a stream. After the buffer is released, its memory is reused only after the pending work
    of that stream and of each stream that `record` added."""

    __slots__ = ("stream", "bytes")
    _release = "bph_buffer_release"

    def __init__(self, value: Optional[int], stream: "Stream", bytes: int) -> None:
        super().__init__(value)
        self.stream = stream
        self.bytes = bytes

    @classmethod
    def create(cls, stream: "Stream", bytes: int, kind: str = "device", alignment: int = 0) -> "Buffer":
        """Allocates memory with undefined contents. Raises OutOfMemory, and Unsupported for a kind that the device
        lacks."""
        desc = bph_buffer_desc(ctypes.sizeof(bph_buffer_desc), kind_of(kind), bytes, alignment, 0, 0, stream.handle)
        out = ctypes.c_void_p()
        invoke("bph_buffer_create", stream.device.handle, desc, out)
        return cls(out.value, stream, bytes)

    def record(self, stream: "Stream") -> None:
        """Records that another stream uses the memory."""
        invoke("bph_buffer_record", self.handle, stream.handle)

    @property
    def kind(self) -> str:
        return next(name for name, kind in KINDS.items() if kind == self._info().kind)

    @property
    def address(self) -> Optional[int]:
        """The address of byte 0, or None if the buffer has no bytes. Kernels can use the address if it is native."""
        return self._info().address or None

    @property
    def address_is_native(self) -> bool:
        return bool(self._info().flags & constants.BPH_BUFFER_ADDRESS_NATIVE)

    @property
    def read_only(self) -> bool:
        """Whether calls refuse to write to the memory, because it was imported as read-only."""
        return bool(self._info().flags & constants.BPH_BUFFER_READ_ONLY)

    def _info(self):
        info = bph_buffer_info(struct_size=ctypes.sizeof(bph_buffer_info))
        invoke("bph_buffer_get_info", self.handle, info)
        return info

# SPDX-License-Identifier: Apache-2.0
"""Streams and events."""
import ctypes
from typing import TYPE_CHECKING, Optional

from . import constants, errors
from ._handle import Handle
from ._library import invoke
from ._structs import bph_stream_desc

if TYPE_CHECKING:
    from .device import Device

_FOREVER = ctypes.c_uint64(constants.BP_WAIT_FOREVER).value


def _nanoseconds(timeout: Optional[float]) -> int:
    return _FOREVER if timeout is None else min(max(int(timeout * 1e9), 0), _FOREVER - 1)


def _wait(name: str, handle: Optional[int], timeout: Optional[float]) -> bool:
    try:
        invoke(name, handle, _nanoseconds(timeout))
    except errors.Timeout:
        return False
    return True


class Stream(Handle):
    """A queue of work. A call enqueues work and does not wait for the work. Any thread may use a stream, because the
    library locks it."""

    __slots__ = ("device",)
    _release = "bph_stream_release"

    def __init__(self, device: "Device", priority: int = 0) -> None:
        desc = bph_stream_desc(struct_size=ctypes.sizeof(bph_stream_desc), priority=priority, flags=constants.BPH_STREAM_SHARED)
        out = ctypes.c_void_p()
        invoke("bph_stream_create", device.handle, desc, out)
        super().__init__(out.value)
        self.device = device

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits for all work that was enqueued so far. Returns False after `timeout` seconds. Raises ExecutionFailed if
        the stream has failed."""
        return _wait("bph_stream_wait", self.handle, timeout)

    def revive(self) -> None:
        """Makes a failed stream usable again. The contents of memory that the failed work or later work of the
        stream wrote are undefined. If the stream has not failed, only waits for it."""
        invoke("bph_stream_revive", self.handle)

    def wait_event(self, event: "Event") -> None:
        """Makes later work of this stream wait until the event, as last recorded, has completed."""
        invoke("bph_stream_wait_event", self.handle, event.handle)

    def __repr__(self) -> str:
        return f"<Stream of {self.device.name}{', released' if self.closed else ''}>"


class Event(Handle):
    """A point in the work of a stream."""

    __slots__ = ("device",)
    _release = "bph_event_release"

    def __init__(self, device: "Device", timing: bool = False) -> None:
        out = ctypes.c_void_p()
        invoke("bph_event_create", device.handle, constants.BP_EVENT_TIMING if timing else 0, out)
        super().__init__(out.value)
        self.device = device

    def record(self, stream: Optional[Stream] = None) -> None:
        """Records the event on a stream, by default on the device's stream."""
        invoke("bph_event_record", self.handle, (stream or self.device.stream).handle)

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until the event, as last recorded, has completed. Returns False after `timeout` seconds."""
        return _wait("bph_event_wait", self.handle, timeout)

    def elapsed(self, end: "Event") -> float:
        """Returns the seconds of device time from this event to `end`. Raises NotReady until both events have
        completed."""
        out = ctypes.c_int64()
        try:
            invoke("bph_event_elapsed", self.handle, end.handle, out)
        except errors.NotReady:  # the library states no message for this status
            raise errors.NotReady("elapsed: both events must have completed; call wait() of the later one first") from None
        return out.value * 1e-9

# SPDX-License-Identifier: Apache-2.0
"""Graphs: calls that are recorded once and launched many times."""
import ctypes
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence

from . import constants, dtypes, errors
from ._handle import Handle
from ._library import error_record, invoke, library
from ._structs import bph_graph_binding, bph_graph_desc, bph_graph_info
from .tensor import Tensor

if TYPE_CHECKING:
    from .stream import Stream


def _ranges(tensors: "Sequence[Tensor]", call: str) -> Any:
    """Returns the range of bytes of each tensor, as an array for the library. Raises InvalidArgument for a tensor
    that is not contiguous or has no elements."""
    for each in tensors:
        if not isinstance(each, Tensor) or not each.is_contiguous or each.size == 0:
            raise errors.InvalidArgument(f"{call}: the binding {each!r} is not a contiguous tensor with elements; bind a tensor of device.empty(...)")
    return (bph_graph_binding * len(tensors))(*((each.buffer.handle, each.offset, each.size * dtypes.BYTES[each.dtype]) for each in tensors))


class Graph(Handle):
    """Recorded calls of a stream. `Graph.record` makes a graph, and `launch` enqueues all of its calls."""

    __slots__ = ("stream", "nodes", "device_bytes", "native", "_bindings")
    _release = "bph_graph_release"

    def __init__(self, value: Optional[int], stream: "Stream", info: bph_graph_info, bindings: "tuple[Tensor, ...]") -> None:
        super().__init__(value)
        self.stream = stream
        self.nodes: int = info.nodes  # recorded executions and copies; a decomposed composite has several
        self.device_bytes: int = info.device_bytes  # memory of the graph for temporaries and workspace
        self.native = bool(info.flags & constants.BPH_GRAPH_NATIVE)  # whether the plugin launches the graph
        self._bindings = bindings

    @classmethod
    def record(cls, stream: "Stream", body: "Callable[[], Any]", *, bindings: "Sequence[Tensor]" = (), native: bool = True) -> "Graph":
        """Records the calls that `body()` makes on the stream, and does not execute them.

        A launch may replace the tensors `bindings` with other tensors of the same dtype and shape. Until `body`
        returns, waits and copies between host and device raise InvalidArgument. If `body` raises an exception, the
        recording is discarded. With `native=False`, the library launches the calls even if the plugin has graphs of its
        own."""
        bindings = tuple(bindings)
        ranges = _ranges(bindings, "Graph.record")
        desc = bph_graph_desc(ctypes.sizeof(bph_graph_desc), 0 if native else constants.BPH_GRAPH_NO_NATIVE,
                              ctypes.addressof(ranges) if bindings else None, len(bindings), 0)
        invoke("bph_graph_begin", stream.handle, desc)
        out, info = ctypes.c_void_p(), bph_graph_info(struct_size=ctypes.sizeof(bph_graph_info))
        try:
            body()
        except BaseException:
            library().bph_graph_end(stream.handle, out, info, error_record())
            if out.value:
                library().bph_graph_release(out)
            raise
        invoke("bph_graph_end", stream.handle, out, info)
        return cls(out.value, stream, info, bindings)

    def launch(self, *bindings: Tensor, stream: "Optional[Stream]" = None) -> None:
        """Enqueues all recorded calls, by default on the stream of the recording. `bindings` is empty, or has one
        tensor for each binding of `record`. Order launches of one graph on several streams with events."""
        for place, (each, recorded) in enumerate(zip(bindings, self._bindings)):
            if isinstance(each, Tensor) and (each.dtype, each.shape) != (recorded.dtype, recorded.shape):
                raise errors.InvalidArgument(f"Graph.launch: binding {place} is {each.dtype} {each.shape}, and the recorded tensor is {recorded.dtype} "
                                             f"{recorded.shape}; pass a tensor of this dtype and shape, or record another graph")
        target = stream or self.stream
        ranges = _ranges(bindings, "Graph.launch")
        invoke("bph_graph_launch", target.handle, self.handle, ranges if bindings else None, len(bindings))
        for each in bindings:
            if each.stream is not target:
                each.buffer.record(target)

    def __repr__(self) -> str:
        return f"<Graph of {self.nodes} nodes{', released' if self.closed else ''}>"

# SPDX-License-Identifier: Apache-2.0
"""The interface through which a mapping reads one node of a model."""
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Sequence

import numpy as np
from onnx import NodeProto, helper

from . import dtypes
from .builder import Builder, Refusal
from .errors import NeedsHostValue
from .values import Value
from .views import View

if TYPE_CHECKING:
    from .trace import Tracer

MAX_HOST_ELEMENTS = 4096  # maximum size of an input tensor whose value the host reads

Result = "View | Value | np.ndarray | list | None"


class _Attributes(dict):
    """The attributes of a node. `unread` contains the names of the attributes that the mapping has not read."""

    def __init__(self, items) -> None:
        super().__init__(items)
        self.unread = set(self)

    def get(self, name, default=None):
        self.unread.discard(name)
        return super().get(name, default)

    def __getitem__(self, name):
        self.unread.discard(name)
        return super().__getitem__(name)

    def __contains__(self, name) -> bool:
        self.unread.discard(name)
        return super().__contains__(name)


class Node:
    """A node with the values of its inputs. `opset` is the version of its operator's domain."""

    def __init__(self, proto: NodeProto, inputs: "Sequence[Any]", opset: int, tracer: "Tracer") -> None:
        self.proto, self.inputs, self.opset, self.tracer = proto, list(inputs), opset, tracer
        self.attributes = _Attributes((each.name, each) for each in proto.attribute)
        self.b: Builder = tracer.builder

    def fail(self, reason: str) -> NoReturn:
        raise Refusal(reason)

    # ---- Attributes ----

    def attr(self, name: str, default: Any = None) -> Any:
        """Returns the value of an attribute: str for a string, and an array for a tensor."""
        found = self.attributes.get(name)
        if found is None:
            return default
        value = helper.get_attribute_value(found)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if hasattr(value, "dims") and hasattr(value, "data_type"):
            return self.tracer.model.array(value)
        return list(value) if found.ints or found.floats or found.strings else value

    # ---- Inputs ----

    def has(self, place: int) -> bool:
        return place < len(self.inputs) and self.inputs[place] is not None

    @property
    def outputs(self) -> "list[bool]":
        """Returns a list that states for each output whether the model uses it."""
        return [bool(name) for name in self.proto.output]

    def wants(self, place: int) -> bool:
        return place < len(self.proto.output) and bool(self.proto.output[place])

    def value(self, place: int) -> Value:
        if not self.has(place):
            self.fail(f"input {place} is missing")
        found = self.inputs[place]
        if not isinstance(found, Value):
            self.fail(f"input {place} is a sequence, and a tensor is expected")
        return found

    def view(self, place: int) -> View:
        """Returns an input as a tensor on the device. If the input is a constant, the trace makes only one copy
        on the device."""
        return self.tracer.view(self.value(place))

    def views(self) -> "list[View]":
        return [self.view(place) for place in range(len(self.inputs))]

    def optional(self, place: int) -> "Optional[View]":
        return self.view(place) if self.has(place) else None

    def shape(self, place: int) -> "tuple[int, ...]":
        return self.value(place).shape

    def dtype(self, place: int = 0) -> str:
        """Returns the Backplane dtype of an input. Raises Refusal if there is none for its element type."""
        kind = self.value(place).kind
        name = dtypes.of_onnx(kind)
        return name if name is not None else self.fail(f"Backplane has no dtype for {dtypes.onnx_name(kind)}")

    def host(self, place: int) -> np.ndarray:
        """Returns the value of an input on which a shape or a parameter depends. The host may not know it,
        although it depends only on inputs of the graph. Then the trace starts again with the values of these
        inputs, and the program is valid only for these values."""
        found = self.value(place)
        if found.host is not None:
            return found.host
        if not found.origin:
            self.fail(f"the shape of a result depends on the value of {found.name!r}, which the device computes")
        raise NeedsHostValue(found.origin)

    def ints(self, place: int) -> "list[int]":
        return [int(each) for each in self.host(place).reshape(-1)]

    def number(self, place: int) -> "int | float | View":
        """Returns an input with one element: a number if the host knows the value, otherwise the tensor."""
        found = self.value(place)
        if found.host is not None and found.host.size == 1:
            return found.host.reshape(-1)[0].item() if found.host.dtype.kind in "biuf" else float(found.host.reshape(-1)[0])
        return self.view(place)

    def parameter(self, name: str, place: int, default: "Optional[list[int]]" = None) -> "Optional[list[int]]":
        """Returns a list of integers that is the attribute `name` in early opsets, and the input `place` in
        later ones."""
        if name in self.attributes:
            found = self.attr(name)
            return list(found) if isinstance(found, (list, tuple)) else [int(found)]
        return self.ints(place) if self.has(place) else default

    def axis(self, default: int, rank: Optional[int] = None, name: str = "axis") -> int:
        """Returns the attribute `name` as a number from 0 to rank - 1."""
        rank = len(self.shape(0)) if rank is None else rank
        axis = self.attr(name, default)
        if not -rank <= axis < max(rank, 1):
            self.fail(f"the axis {axis} is outside a tensor of rank {rank}")
        return axis % rank if rank else 0

# SPDX-License-Identifier: Apache-2.0
"""Values of a trace: tensors on the device, and tensors whose contents the host knows."""
from typing import Optional

import numpy as np

from . import dtypes
from .views import View


class Value:
    """A tensor of the model during a trace.

    `host` is the tensor's value if the host knows it, for example because it is a constant of the model or the
    result of shape arithmetic. `view` is the tensor on the device. `origin` is the set of graph inputs from
    which the host could compute the value, or None if only the device can compute it. `kind` is the element
    type of ONNX."""

    __slots__ = ("name", "kind", "shape", "host", "view", "origin")

    def __init__(self, name: str, kind: int, shape: "tuple[int, ...]", *, host: "Optional[np.ndarray]" = None, view: "Optional[View]" = None,
                 origin: "Optional[frozenset[str]]" = None) -> None:
        self.name, self.kind, self.shape, self.host, self.view, self.origin = name, kind, tuple(shape), host, view, origin

    @classmethod
    def of_array(cls, name: str, array: np.ndarray) -> "Value":
        from onnx import helper
        try:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        except (KeyError, ValueError, TypeError):
            kind = 0
        return cls(name, kind, array.shape, host=array)

    @classmethod
    def of_view(cls, name: str, view: View, origin: "Optional[frozenset[str]]" = None) -> "Value":
        return cls(name, dtypes.to_onnx(view.dtype), view.shape, view=view, origin=origin)


class Sequence(list):
    """A sequence of ONNX. Its length is known during the trace. `kind` is the element type of its tensors."""

    kind: int = 0



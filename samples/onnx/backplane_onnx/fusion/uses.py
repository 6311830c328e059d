# SPDX-License-Identifier: Apache-2.0
"""Helpers that find the call that computes an operand."""
from typing import Any, Iterable, Optional, Sequence

from ..builder import Immediate, Step
from ..views import Storage, View


class Uses:
    """The calls that write and read each storage. A pattern adds the calls that it has replaced to `gone`."""

    def __init__(self, steps: "Sequence[Step]", outputs: "Iterable[Storage]") -> None:
        self.gone: "set[Step]" = set()
        self._writers: "dict[Storage, list[Step]]" = {}
        self._readers: "dict[Storage, int]" = {}
        for step in steps:
            for view in step.outputs:
                if isinstance(view, View):
                    self._writers.setdefault(view.storage, []).append(step)
            for view in step.inputs:
                if isinstance(view, View):
                    self._readers[view.storage] = self._readers.get(view.storage, 0) + 1
        for storage in outputs:
            self._readers[storage] = self._readers.get(storage, 0) + 1

    def source(self, view: Any, *ops: str) -> "Optional[Step]":
        """Returns the call that computes exactly the elements of `view`, if its operator is one of `ops`.
        Returns None if another call or an output of the program also needs these elements."""
        if not isinstance(view, View) or self._readers.get(view.storage) != 1:
            return None
        writers = self._writers.get(view.storage, ())
        if len(writers) != 1 or writers[0].op not in ops or len(writers[0].outputs) != 1:
            return None
        written = writers[0].outputs[0]
        return writers[0] if same(view, written) or view.is_contiguous and written.is_contiguous and view.size == written.size else None


def same(a: Any, b: Any) -> bool:
    """Returns whether two operands are views of the same elements in the same order."""
    return isinstance(a, View) and isinstance(b, View) and \
        (a.storage, a.dtype, a.offset, a.shape, a.strides) == (b.storage, b.dtype, b.offset, b.shape, b.strides)


def other(step: Step, first: Any) -> Any:
    """Returns the operand of a call with two inputs that is not the object `first`."""
    return step.inputs[1] if step.inputs[0] is first else step.inputs[0]


def number(operand: Any) -> "Optional[float]":
    """Returns the value of an immediate, or of a constant with one element. Returns None for other operands."""
    if isinstance(operand, Immediate):
        return float(operand.value)
    array = operand.storage.array if isinstance(operand, View) else None
    return float(array.item()) if array is not None and array.size == 1 else None


def near(value: "Optional[float]", wanted: float) -> bool:
    """Returns whether `value` is near `wanted`: equal after rounding to f32, or to the number of digits that
    exporters write."""
    return value is not None and abs(value - wanted) <= 1e-5 * abs(wanted)

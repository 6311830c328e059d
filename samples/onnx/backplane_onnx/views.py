# SPDX-License-Identifier: Apache-2.0
"""Views of memory that is not allocated yet. A trace makes views, and the module `memory` later gives each
storage its place."""
from math import prod
from typing import Any, Optional, Sequence

from . import dtypes


class Storage:
    """Contiguous memory for one tensor.

    `array` is the value of a constant. `role` is "constant" (copied from the model), "input" (copied at each
    run), or "computed". The module `memory` sets the other members."""

    __slots__ = ("bytes", "role", "label", "array", "fixed", "offset")

    def __init__(self, size: int, role: str, label: str = "", array: Any = None) -> None:
        self.bytes, self.role, self.label, self.array = size, role, label, array
        self.fixed = role == "constant"  # computed once, before the first run
        self.offset: Optional[int] = None


def dense_strides(shape: "Sequence[int]") -> "tuple[int, ...]":
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


class View:
    """A part of a storage: an offset in bytes, a dtype, a shape, and strides in elements. The methods return
    new views, and copy no elements."""

    __slots__ = ("storage", "dtype", "shape", "strides", "offset")

    def __init__(self, storage: Storage, dtype: str, shape: "Sequence[int]", strides: "Optional[Sequence[int]]" = None, offset: int = 0) -> None:
        self.storage, self.dtype, self.shape, self.offset = storage, dtype, tuple(int(extent) for extent in shape), offset
        self.strides = dense_strides(self.shape) if strides is None else tuple(strides)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        return self.size == 0 or all(extent == 1 or stride == dense for extent, stride, dense in
                                     zip(self.shape, self.strides, dense_strides(self.shape)))

    def _with(self, shape, strides, elements=0) -> "View":
        return View(self.storage, self.dtype, shape, strides, self.offset + elements * dtypes.BYTES[self.dtype])

    def permute(self, order: "Sequence[int]") -> "View":
        return self._with([self.shape[d] for d in order], [self.strides[d] for d in order])

    def transpose(self, first: int = -1, second: int = -2) -> "View":
        order = list(range(self.rank))
        order[first], order[second] = order[second], order[first]
        return self.permute(order)

    def broadcast_to(self, shape: "Sequence[int]") -> "View":
        added = len(shape) - self.rank
        strides = [0] * added + [0 if own == 1 and extent != 1 else stride for own, extent, stride in zip(self.shape, shape[added:], self.strides)]
        return self._with(shape, strides)

    def slice(self, axis: int, start: int, count: int, step: int = 1) -> "View":
        """Returns a view of the elements start, start + step, ... along an axis. The step may be negative."""
        axis %= self.rank
        shape, strides = list(self.shape), list(self.strides)
        elements = start * strides[axis] if count else 0
        shape[axis], strides[axis] = count, strides[axis] * step
        return self._with(shape, strides, elements)

    def select(self, axis: int, index: int) -> "View":
        """Returns a view of the elements at one index of an axis, without this axis."""
        axis %= self.rank
        part = self.slice(axis, index, 1)
        return part._with(part.shape[:axis] + part.shape[axis + 1:], part.strides[:axis] + part.strides[axis + 1:])

    def flip(self, axis: int) -> "View":
        axis %= self.rank
        return self.slice(axis, self.shape[axis] - 1, self.shape[axis], -1) if self.shape[axis] else self

    def unsqueeze(self, axis: int) -> "View":
        """Returns a view with a new dimension of extent 1 at the position `axis`."""
        return self._with(self.shape[:axis] + (1,) + self.shape[axis:], self.strides[:axis] + (0,) + self.strides[axis:])

    def squeeze(self, axes: "Sequence[int]") -> "View":
        keep = [d for d in range(self.rank) if d not in set(axes)]
        return self._with([self.shape[d] for d in keep], [self.strides[d] for d in keep])

    def reinterpret(self, dtype: str) -> "View":
        """Returns a view of the same bits with another dtype of the same size."""
        return View(self.storage, dtype, self.shape, self.strides, self.offset)


def broadcast_shape(shapes: "Sequence[Sequence[int]]") -> "Optional[tuple[int, ...]]":
    """Returns the shape to which all shapes are broadcast, or None if there is none."""
    rank = max(map(len, shapes), default=0)
    result = []
    for extents in zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in shapes)):
        wide = {extent for extent in extents if extent != 1}
        if len(wide) > 1:
            return None
        result.append(wide.pop() if wide else 1)
    return tuple(result)

# SPDX-License-Identifier: Apache-2.0
"""Sequences and optionals. They exist only during the trace: a sequence is a list of tensors, and its length is
known."""
import numpy as np

from ..node import Node
from ..registry import maps
from ..values import Sequence, Value
from .copy import split_at


def sequence_of(n: Node, place: int) -> Sequence:
    found = n.inputs[place] if place < len(n.inputs) else None
    if not isinstance(found, Sequence):
        n.fail(f"input {place} is not a sequence")
    return found


@maps("SequenceConstruct")
def construct(n: Node):
    return [Sequence(n.inputs)]


@maps("SequenceEmpty")
def empty(n: Node):
    n.attr("dtype")  # read, but not used, because an empty sequence contains no tensor
    return [Sequence([])]


@maps("SequenceInsert")
def insert(n: Node):
    items = list(sequence_of(n, 0))
    place = int(n.host(2).reshape(-1)[0]) if n.has(2) else len(items)
    if not -len(items) <= place <= len(items):
        n.fail(f"the position {place} is outside a sequence of {len(items)}")
    items.insert(place, n.value(1))
    return [Sequence(items)]


@maps("SequenceErase")
def erase(n: Node):
    items = list(sequence_of(n, 0))
    del items[int(n.host(1).reshape(-1)[0]) if n.has(1) else -1]
    return [Sequence(items)]


@maps("SequenceAt")
def at(n: Node):
    return sequence_of(n, 0)[int(n.host(1).reshape(-1)[0])]


@maps("SequenceLength")
def length(n: Node):
    return np.asarray(len(sequence_of(n, 0)), np.int64)


@maps("SplitToSequence")
def split(n: Node):
    x, axis = n.view(0), n.axis(0)
    extent, keep = x.shape[axis], n.attr("keepdims", 1)
    if n.has(1):
        size = n.host(1)
        sizes = [int(each) for each in size] if size.ndim else [min(int(size), extent - place) for place in range(0, extent, int(size))]
        keep = 1
    else:
        sizes = [1] * extent
    parts = split_at(n, x, axis, sizes)
    return [Sequence([Value.of_view("part", part if keep else part.squeeze([axis])) for part in parts])]


@maps("ConcatFromSequence")
def concat(n: Node):
    parts = [n.tracer.view(each) for each in sequence_of(n, 0)]
    axis = n.attr("axis")
    if n.attr("new_axis", 0):
        axis %= parts[0].rank + 1
        parts = [each.unsqueeze(axis) for each in parts]
    return n.b.concat(parts, axis)


@maps("Optional")
def optional(n: Node):
    return n.inputs[0] if n.inputs else None


@maps("OptionalHasElement")
def has_element(n: Node):
    return np.asarray(bool(n.inputs) and n.inputs[0] is not None)


@maps("OptionalGetElement")
def get_element(n: Node):
    return n.inputs[0] if n.inputs[0] is not None else n.fail("the optional is empty")

# SPDX-License-Identifier: Apache-2.0
"""Divides a program into calls that run once and calls that each run repeats, and places the tensors in one
buffer."""
from typing import Iterable, Sequence

import backplane as bp

from .builder import Step
from .views import Storage, View

ALIGNMENT = 256  # bytes


def storages(views: "Iterable[object]") -> "list[Storage]":
    return [each.storage for each in views if isinstance(each, View)]


def divide(steps: "Sequence[Step]") -> "tuple[list[Step], list[Step]]":
    """Returns two lists: the calls that use only constants, and all other calls. Sets storage.fixed for the
    storages that only calls of the first list write."""
    writers = {storage: storage for step in steps for storage in storages(step.outputs)}
    for storage in writers:
        storage.fixed = True
    changed = True
    while changed:
        changed = False
        for step in steps:
            outputs = storages(step.outputs)
            if all(each.fixed for each in storages(step.inputs)) and all(each.fixed for each in outputs):
                continue
            for each in outputs:
                changed |= each.fixed
                each.fixed = False
    once = [step for step in steps if all(each.fixed for each in storages(step.outputs))]
    return once, [step for step in steps if not all(each.fixed for each in storages(step.outputs))]


def place(steps: "Sequence[Step]", inputs: "Iterable[Storage]", outputs: "Iterable[Storage]") -> int:
    """Gives each storage of the calls an offset in one buffer, and returns the size of this buffer in bytes.
    Storages with disjoint lifetimes share memory. Inputs live from the start, and outputs live to the end. An
    elementwise call overwrites an input that no later call reads."""
    first: "dict[Storage, int]" = {}
    last: "dict[Storage, int]" = {}
    for storage in inputs:
        first[storage] = last[storage] = -1
    for index, step in enumerate(steps):
        for storage in storages(step.inputs) + storages(step.outputs):
            if not storage.fixed:
                first.setdefault(storage, index)
                last[storage] = index
    for storage in outputs:
        if not storage.fixed:
            first.setdefault(storage, len(steps))
            last[storage] = len(steps)
    owner = _overwritten(steps, first, last)  # {storage: the input whose memory it uses}
    for storage in owner:
        last[_root(storage, owner)] = max(last[_root(storage, owner)], last[storage])
    starting: "dict[int, list[Storage]]" = {}
    for storage, index in first.items():
        if storage in owner:
            continue
        starting.setdefault(index, []).append(storage)
    free: "list[tuple[int, int]]" = []  # holes (offset, bytes), sorted by offset; adjacent holes are merged
    ending: "dict[int, list[Storage]]" = {}
    end = 0
    for index in range(-1, len(steps) + 1):
        for storage in sorted(starting.get(index, ()), key=lambda each: -each.bytes):
            size = _rounded(storage.bytes)
            fit = min((hole for hole in free if hole[1] >= size), key=lambda hole: hole[1], default=None)
            if fit is None:
                storage.offset, end = end, end + size
            else:
                free.remove(fit)
                storage.offset = fit[0]
                if fit[1] > size:
                    free.append((fit[0] + size, fit[1] - size))
            ending.setdefault(last[storage], []).append(storage)
        for storage in ending.get(index, ()):
            free = _merged(free, (storage.offset, _rounded(storage.bytes)))
    for storage in owner:
        storage.offset = _root(storage, owner).offset
    return end


def _overwritten(steps, first, last):
    """Returns {output of an elementwise call: the input whose memory the output uses}."""
    owner: "dict[Storage, Storage]" = {}
    for index, step in enumerate(steps):
        out = step.outputs[0]
        if len(step.outputs) != 1 or bp.operator(step.op).shape_rule != "elementwise" or first[out.storage] != index:
            continue
        for storage in storages(step.inputs):
            views = [each for each in step.inputs if isinstance(each, View) and each.storage is storage]
            if not storage.fixed and last[storage] == index and storage.bytes == out.storage.bytes and all(_same_place(each, out) for each in views):
                owner[out.storage] = storage
                break
    return owner


def _same_place(a, b):
    return (a.dtype, a.shape, a.strides, a.offset) == (b.dtype, b.shape, b.strides, b.offset)


def _root(storage, owner):
    while storage in owner:
        storage = owner[storage]
    return storage


def _rounded(size: int) -> int:
    return max(-(-size // ALIGNMENT), 1) * ALIGNMENT


def _merged(free, hole):
    out = []
    for each in sorted(free + [hole]):
        if out and out[-1][0] + out[-1][1] == each[0]:
            out[-1] = (out[-1][0], out[-1][1] + each[1])
        else:
            out.append(each)
    return out

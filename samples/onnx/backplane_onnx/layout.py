# SPDX-License-Identifier: Apache-2.0
"""Stores images in the order N, spatial dimensions, C (channels-last), if the convolutions of the device prefer
this order.

The shapes of views do not change, only their strides. If a convolution of the device converts dense images to
channels-last images, its plan needs more workspace for dense images. Results do not depend on the order."""
from math import prod
from typing import Callable, Iterable, Optional

import backplane as bp

from . import dtypes, memory
from .builder import Step
from .views import Storage, View, dense_strides

CONVOLUTIONS = ("conv", "conv_transpose")
# Operators that are fastest if all images of a call have the same order. Elementwise calls have the same
# property.
FOLLOWERS = ("max_pool", "avg_pool", "batch_norm", "group_norm")


def channels_last(shape: "tuple[int, ...]") -> "tuple[int, ...]":
    """Returns the strides of an image [N, C, ..] whose channels are the innermost dimension in memory."""
    strides = dense_strides((shape[0], *shape[2:], shape[1]))
    return (strides[0], strides[-1], *strides[1:-1])


def choose(steps: "list[Step]", outputs: "Iterable[Storage]", prefers: "Callable[[Step, list, list], bool]") -> "list[Storage]":
    """Stores images channels-last if convolutions prefer this order, and returns the storages of these images.
    The storages in `outputs` keep their order. `prefers(step, inputs, outputs)` returns whether the convolution
    `step` prefers these views to its own views."""
    images = _images(steps, set(outputs))
    chosen: "set[Storage]" = set()
    pending: "list[Storage]" = []
    for step in steps:
        own = [each.storage for each in (step.inputs[0], step.outputs[0]) if each.storage in images] if step.op in CONVOLUTIONS else []
        if own and prefers(step, [_moved(each, images) for each in step.inputs], [_moved(each, images) for each in step.outputs]):
            pending += own
    related = _related(steps, images)
    while pending:
        storage = pending.pop()
        if storage not in chosen:
            chosen.add(storage)
            pending += related.get(storage, ())
    kept = {storage: images[storage] for storage in chosen}
    for step in steps:
        step.inputs = [_moved(each, kept) for each in step.inputs]
        step.outputs = [_moved(each, kept) for each in step.outputs]
    return list(chosen)


def _images(steps: "list[Step]", outputs: "set[Storage]") -> "dict[Storage, tuple[int, ...]]":
    """Returns {storage: shape} for each storage that contains exactly one image, and all of whose views are
    parts of this image."""
    shapes: "dict[Storage, tuple[int, ...]]" = {}
    views = [each for step in steps for each in step.inputs + step.outputs if isinstance(each, View)]
    for view in views:
        storage = view.storage
        if storage.role == "computed" and not storage.fixed and storage not in outputs and 3 <= view.rank <= 5 and storage not in shapes and \
                view.is_contiguous and view.size * dtypes.BYTES[view.dtype] == storage.bytes:
            shapes[storage] = view.shape
    for view in views:
        if view.storage in shapes and _strides(view, shapes[view.storage]) is None:
            del shapes[view.storage]
    return shapes


def _strides(view: View, shape: "tuple[int, ...]") -> "Optional[tuple[list[int], int]]":
    """For a view of a dense image, returns the strides and the offset, in elements, that the view has if the
    image becomes channels-last. Returns None if this is not possible, for example because the view joins two
    dimensions."""
    before, after = dense_strides(shape), channels_last(shape)
    size = dtypes.BYTES[view.dtype]
    if view.offset % size or prod(shape) * size != view.storage.bytes:
        return None
    element, first = view.offset // size, []
    for extent, stride in zip(shape, before):
        first.append(element // stride if extent > 1 else 0)
        element -= first[-1] * stride
    strides, free = [], {stride: d for d, (extent, stride) in enumerate(zip(shape, before)) if extent > 1}
    for extent, stride in zip(view.shape, view.strides):
        place = free.pop(stride, None) if extent > 1 else None
        if extent > 1 and (place is None or first[place] + extent > shape[place]):
            return None
        strides.append(0 if place is None else after[place])
    return strides, sum(start * stride for start, stride in zip(first, after))


def _moved(view, images):
    if not isinstance(view, View) or view.storage not in images:
        return view
    found = _strides(view, images[view.storage])
    assert found is not None
    return View(view.storage, view.dtype, view.shape, found[0], found[1] * dtypes.BYTES[view.dtype])


def _related(steps, images):
    """Returns, for each image, the set of images that should have the same order, because one call uses them."""
    found: "dict[Storage, set[Storage]]" = {}
    for step in steps:
        if step.op in FOLLOWERS:
            views = [step.inputs[0], step.outputs[0]]
        elif bp.operator(step.op).shape_rule == "elementwise":
            views = [each for each in step.inputs + step.outputs if isinstance(each, View) and each.shape == step.outputs[0].shape]
        else:
            continue
        own = [storage for storage in memory.storages(views) if storage in images]
        for storage in own:
            found.setdefault(storage, set()).update(own)
    return found

# SPDX-License-Identifier: Apache-2.0
"""Interpolation. Resize is separable: the trace computes a matrix of weights for each axis, and the device
multiplies the axis by this matrix. GridSample gathers the neighbours of positions that the device computes."""
import itertools
import math
from typing import Any

import numpy as np

from .. import dtypes
from ..builder import Builder
from ..node import Node
from ..registry import maps
from ..views import View


# ---- Resize --------------------------------------------------------------------------------------

def sources(mode: str, scale: float, extent: int, count: int, roi) -> np.ndarray:
    """Returns, for each element of the output, its position in the input, as the specification of Resize
    defines it."""
    x = np.arange(count, dtype=np.float64)
    length = scale * extent
    if mode == "align_corners":
        return x * (extent - 1) / (length - 1) if length != 1 else np.zeros(count)
    if mode == "asymmetric":
        return x / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        if length == 1:
            return np.full(count, (start + end) * (extent - 1) / 2)
        return start * (extent - 1) + x * (end - start) * (extent - 1) / (length - 1)
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    if mode == "pytorch_half_pixel" and length == 1:
        return np.full(count, -0.5)
    offset = extent / 2 * (1 - count / length) if mode == "half_pixel_symmetric" else 0.0
    return offset + (x + 0.5) / scale - 0.5


def coefficients(mode: str, ratio: float, scale: float, antialias: bool, a: float) -> np.ndarray:
    """Returns the weights of the neighbours of a position. There are equally many neighbours on each side.
    `ratio` is the distance of the position from the nearest neighbour on its left, in (0, 1]."""
    reach = min(scale, 1.0) if antialias else 1.0
    half = 1 if mode == "linear" else 2
    start = int(math.floor(-half / reach) + 1)
    distance = np.abs((np.arange(start, 2 - start if half == 2 else 2 - start) - ratio) * reach)
    if mode == "linear":
        weights = np.clip(1 - distance, 0, 1)
    else:
        near = (a + 2) * distance**3 - (a + 3) * distance**2 + 1
        far = a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a
        weights = np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))
    return weights / weights.sum() if antialias else weights


def matrix(mode: str, places: np.ndarray, extent: int, scale: float, antialias: bool, a: float, exclude: bool) -> np.ndarray:
    """Returns the matrix [output, input] of the weights of an axis."""
    out = np.zeros((len(places), extent))
    for row, place in enumerate(places):
        last = math.ceil(place)
        ratio = place - (last - 1)
        weights = coefficients(mode, ratio, scale, antialias, a)
        columns = np.arange(len(weights)) + last - len(weights) // 2
        if exclude:
            weights = np.where((columns >= 0) & (columns < extent), weights, 0)
            weights = weights / weights.sum()
        np.add.at(out[row], np.clip(columns, 0, extent - 1), weights)
    return out


def nearest(places: np.ndarray, extent: int, mode: str) -> np.ndarray:
    rounded = {"round_prefer_floor": np.ceil(places - 0.5), "round_prefer_ceil": np.floor(places + 0.5), "floor": np.floor(places),
               "ceil": np.ceil(places)}[mode]
    return np.clip(rounded, 0, extent - 1).astype(np.int64)


def sizes_of(n: Node, x: View, axes):
    """Returns {axis: (scale, extent of the output)} for each axis."""
    place = 1 if n.opset < 11 else 2
    if n.has(3) and n.value(3).shape != (0,):
        wanted = n.ints(3)
        policy = n.attr("keep_aspect_ratio_policy", "stretch")
        if policy == "stretch":
            return {axis: (count / x.shape[axis], count) for axis, count in zip(axes, wanted)}
        scale = (min if policy == "not_larger" else max)(count / x.shape[axis] for axis, count in zip(axes, wanted))
        return {axis: (scale, int(math.floor(scale * x.shape[axis] + 0.5))) for axis in axes}
    scales = [float(each) for each in (n.attr("scales") if "scales" in n.attributes else n.host(place))]
    return {axis: (scale, int(math.floor(x.shape[axis] * scale))) for axis, scale in zip(axes, scales)}


def along(b: Builder, weights: np.ndarray, x: View, axis: int) -> View:
    """Multiplies x along an axis by a matrix [output, input] of weights."""
    kind = x.dtype if x.dtype in dtypes.FLOATS else "f32"
    moved = b.cast(x, kind).transpose(axis, -1) if axis != x.rank - 1 else b.cast(x, kind)
    out = b.matmul(b.dense(moved) if moved.rank > 2 else moved, b.constant(weights.T, kind))
    return out.transpose(axis, -1) if axis != x.rank - 1 else out


@maps("Resize", "Upsample")
def resize(n: Node):
    b, x = n.b, n.view(0)
    kind, mode = x.dtype, n.attr("mode", "nearest")
    axes = [axis % x.rank for axis in n.attr("axes") or range(x.rank)]
    transform = n.attr("coordinate_transformation_mode", "half_pixel") if n.opset >= 11 else "asymmetric"
    roi = {}
    if transform == "tf_crop_and_resize":
        values = [float(each) for each in n.host(1)]
        roi = {axis: (values[place], values[place + len(axes)]) for place, axis in enumerate(axes)}
    exclude, a = bool(n.attr("exclude_outside", 0)), n.attr("cubic_coeff_a", -0.75)
    outside: "list[tuple[int, np.ndarray]]" = []
    for axis, (scale, count) in sizes_of(n, x, axes).items():
        if scale == 1 and count == x.shape[axis] and transform != "tf_crop_and_resize":
            continue
        if count <= 0 or scale <= 0:
            n.fail(f"the scale {scale} of axis {axis} is not positive, or the result is empty")
        extent = x.shape[axis]
        places = sources(transform, scale, extent, count, roi.get(axis))
        if transform == "tf_crop_and_resize":
            wrong = (places < 0) | (places > extent - 1)
            places = np.clip(places, 0, extent - 1)
            if wrong.any():
                outside.append((axis, wrong))
        if mode == "nearest":
            rounding = n.attr("nearest_mode", "round_prefer_floor") if n.opset >= 11 else "floor"
            x = b.gather(x, b.constant(nearest(places, extent, rounding), "i64"), axis)
        else:
            x = along(b, matrix(mode, places, extent, scale, bool(n.attr("antialias", 0)), a, exclude), x, axis)
    for axis, wrong in outside:
        shape = [len(wrong) if d == axis else 1 for d in range(x.rank)]
        x = b.op("select", b.constant(wrong.reshape(shape)), n.attr("extrapolation_value", 0.0), x)
    if kind not in dtypes.FLOATS and x.dtype != kind:
        low, high = dtypes.limits(kind)
        x = b.op("min", b.op("max", b.op("rint", x), low), high)
    return b.cast(x, kind) if x.storage.role == "computed" else b.copy(x)


# ---- Samples at computed positions -----------------------------------------------------------------

def reflected(b: Builder, x: View, low: float, high: float) -> View:
    span = high - low
    if span <= 0:
        return b.op("mul", x, 0)
    moved = b.op("sub", x, low)
    period = b.op("sub", moved, b.op("mul", b.op("floor", b.op("div", moved, 2 * span)), 2 * span))
    return b.op("add", b.op("min", period, b.op("sub", 2 * span, period)), low)


def weights_of(b: Builder, mode: str, place: View) -> "tuple[View, list[tuple[int, View | None]]]":
    """Returns the integer part of a position, and a list with the offset and the weight of each neighbour. A
    weight of None means 1."""
    if mode == "nearest":
        return b.op("rint", place), [(0, None)]
    base = b.op("floor", place)
    t = b.op("sub", place, base)
    if mode == "linear":
        return base, [(0, b.op("sub", 1, t)), (1, t)]
    a = -0.75

    def near(s):
        return b.op("add", b.op("mul", b.op("mul", b.op("sub", b.op("mul", s, a + 2), a + 3), s), s), 1)

    def far(s):
        inner = b.op("sub", b.op("mul", s, a), 5 * a)
        return b.op("sub", b.op("mul", b.op("add", b.op("mul", inner, s), 8 * a), s), 4 * a)

    rest = b.op("sub", 1, t)
    return base, [(-1, far(b.op("add", t, 1))), (0, near(t)), (1, near(rest)), (2, far(b.op("add", rest, 1)))]


def sampled(n: Node, image: View, grid: "list[View]", mode: str, padding: str, corners: bool) -> View:
    """Returns the samples [N, C, A, B] of an image [N, C, ...]. `grid` contains one tensor [N, A, B] for each
    spatial dimension, with the positions of the samples."""
    b, extents = n.b, image.shape[2:]
    limits = [(0.0, extent - 1.0) if corners else (-0.5, extent - 0.5) for extent in extents]
    parts = []
    for place, extent, (low, high) in zip(grid, extents, limits):
        if mode == "nearest":
            place = b.op("rint", place)
        if padding == "border":
            place = b.op("min", b.op("max", place, 0), extent - 1)
        elif padding == "reflection":
            place = reflected(b, place, low, high)
        parts.append(weights_of(b, mode, place))
    flat = b.reshape(image, (image.shape[0], image.shape[1], int(np.prod(extents))))
    shape = grid[0].shape
    total: Any = None
    for neighbours in itertools.product(*(each for _, each in parts)):
        index: Any = None
        weight: Any = None
        for (base, _), (offset, factor), extent, (low, high) in zip(parts, neighbours, extents, limits):
            place = b.op("add", base, offset) if offset else base
            if padding == "zeros":
                inside = b.cast(b.op("and", b.compare(place, 0, "GE"), b.compare(place, extent - 1, "LE")), image.dtype)
                factor = inside if factor is None else b.op("mul", factor, inside)
            elif padding == "reflection":
                place = b.op("rint", reflected(b, place, low, high))
            place = b.op("min", b.op("max", place, 0), extent - 1)
            place = b.cast(place, "i32")
            index = place if index is None else b.op("add", b.op("mul", index, extent), place)
            if factor is not None:
                weight = factor if weight is None else b.op("mul", weight, factor)
        positions = b.reshape(index, (shape[0], 1, int(np.prod(shape[1:])))).broadcast_to((shape[0], image.shape[1], int(np.prod(shape[1:]))))
        part = b.op("gather", flat, positions, dtype=image.dtype, shape=positions.shape, axis=2)
        if weight is not None:
            part = b.op("mul", part, b.reshape(weight, (shape[0], 1, int(np.prod(shape[1:])))))
        total = part if total is None else b.op("add", total, part)
    return b.reshape(total, (shape[0], image.shape[1], *shape[1:]))


@maps("GridSample")
def grid_sample(n: Node):
    b, x, grid = n.b, n.view(0), n.view(1)
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(n.attr("mode", "linear"), n.attr("mode", "linear"))
    corners = bool(n.attr("align_corners", 0))
    rank = x.rank - 2
    places = []
    for d in range(rank):
        extent, unit = x.shape[2 + d], b.op("add", grid.select(-1, rank - 1 - d), 1)
        place = b.op("mul", unit, (extent - 1) / 2) if corners else b.op("sub", b.op("mul", unit, extent / 2), 0.5)
        places.append(place)
    outer = grid.shape[1:-1]
    shape = (grid.shape[0], outer[0], int(np.prod(outer[1:])))
    places = [b.reshape(b.cast(each, x.dtype), shape) for each in places]
    out = sampled(n, x, places, mode, n.attr("padding_mode", "zeros"), corners)
    return b.reshape(out, (x.shape[0], x.shape[1], *outer))

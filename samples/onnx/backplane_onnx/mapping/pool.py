# SPDX-License-Identifier: Apache-2.0
"""Pooling."""
from math import prod

import numpy as np

from .. import dtypes
from ..node import Node
from ..registry import maps
from .window import window_of


@maps("MaxPool")
def max_pool(n: Node):
    b, x = n.b, n.view(0)
    window = window_of(n, x.shape[2:], n.attr("kernel_shape"))
    kind = x.dtype
    data = x if kind in dtypes.FLOATS else b.cast(x, "f32")
    shape = (*x.shape[:2], *window.out)
    parameters = window.attributes(kernel=window.kernel)
    if not n.wants(1):
        return b.cast(b.op("max_pool", data, shape=shape, **parameters), kind)
    out, index = b.new(data.dtype, shape), b.new("i64", shape)
    b.call("max_pool", [data], [out, index], **parameters)
    if n.attr("storage_order", 0):  # ONNX then expects column-major positions in a plane
        extents, rest = x.shape[2:], index
        place, factor, index = None, prod(extents), None
        for extent in reversed(extents):
            factor //= extent
            digit = b.op("mul", b.op("rem", rest, extent), factor)
            rest = b.op("div", rest, extent)
            place = digit if place is None else b.op("add", place, digit)
        index = place
    plane = b.op("mul", b.iota("i64", (x.shape[0] * x.shape[1],), 0), prod(x.shape[2:]))
    index = b.op("add", index, b.reshape(plane, x.shape[:2] + (1,) * len(window.out)))
    return [b.cast(out, kind), index]


@maps("AveragePool")
def average_pool(n: Node):
    b, x = n.b, n.view(0)
    window = window_of(n, x.shape[2:], n.attr("kernel_shape"))
    counted = n.attr("count_include_pad", 0)
    shape = (*x.shape[:2], *window.out)
    out = b.op("avg_pool", x, shape=shape, count_padding=counted, **window.attributes(kernel=window.kernel))
    if not counted or not any(window.extra):
        return out
    # The divisor does not count elements that only ceil_mode adds, so this constant corrects the average.
    counts = np.ones(())
    for d, extent in enumerate(window.out):
        seen = np.arange(extent)[:, None] * window.stride[d] + np.arange(window.kernel[d])[None, :] * window.dilation[d]
        counts = counts[..., None] * (seen < x.shape[2 + d] + window.before[d] + window.after[d] - window.extra[d]).sum(1)
    return b.op("mul", out, b.constant(prod(window.kernel) / counts, x.dtype))


@maps("LpPool", "GlobalLpPool")
def lp_pool(n: Node):
    b, x, p = n.b, n.view(0), n.attr("p", 2)
    power = b.op("pow", b.op("abs", x), p) if p not in (1, 2) else b.op("abs", x) if p == 1 else b.op("mul", x, x)
    if n.proto.op_type == "GlobalLpPool":
        total = b.reduce("reduce_sum", power, range(2, x.rank))
    else:
        window = window_of(n, x.shape[2:], n.attr("kernel_shape"))
        mean = b.op("avg_pool", power, shape=(*x.shape[:2], *window.out), count_padding=1, **window.attributes(kernel=window.kernel))
        total = b.op("mul", mean, prod(window.kernel))
    return total if p == 1 else b.op("sqrt", total) if p == 2 else b.op("pow", total, 1 / p)


@maps("MaxUnpool")
def max_unpool(n: Node):
    b, x, index = n.b, n.view(0), n.view(1)
    rank = x.rank - 2
    kernel, stride = n.attr("kernel_shape"), n.attr("strides") or [1] * rank
    pads = n.attr("pads") or [0] * (2 * rank)
    natural = [(x.shape[2 + d] - 1) * stride[d] + kernel[d] - pads[d] - pads[rank + d] for d in range(rank)]
    shape = (*x.shape[:2], *natural)
    flat = b.full(0, x.dtype, (prod(shape),))
    b.call("scatter", [b.reshape(index, (index.size,)), b.reshape(x, (x.size,))], [flat], axis=0, mode=0)
    out = b.reshape(flat, shape)
    if not n.has(2):
        return out
    wanted = n.ints(2)
    return b.pad(out, [0] * len(wanted), [want - own for want, own in zip(wanted, shape)], 0)


@maps("RoiAlign")
def roi_align(n: Node):
    """Averages bilinear samples of each bin. The device computes the positions of the samples, because they
    depend on data. The number of samples does not, because sampling_ratio determines it."""
    from .resize import sampled
    b, x, rois = n.b, n.view(0), n.view(1)
    ratio, scale = n.attr("sampling_ratio", 0), n.attr("spatial_scale", 1.0)
    if ratio <= 0:
        n.fail("sampling_ratio is 0, so the number of samples depends on data")
    extents = n.attr("output_height", 1), n.attr("output_width", 1)
    half = 0.5 if n.attr("coordinate_transformation_mode", "half_pixel" if n.opset >= 16 else "output_half_pixel") == "half_pixel" else 0.0
    count, (_, channels, height, width) = rois.shape[0], x.shape
    axes = []
    for d, image in ((0, height), (1, width)):
        low = b.op("sub", b.op("mul", rois.select(1, 1 - d), scale), half)
        high = b.op("sub", b.op("mul", rois.select(1, 3 - d), scale), half)
        size = b.op("sub", high, low)
        size = size if half else b.op("max", size, 1)
        steps = b.constant((np.arange(extents[d] * ratio) + 0.5) / (extents[d] * ratio), x.dtype)
        place = b.op("add", b.op("mul", size.unsqueeze(1), steps), low.unsqueeze(1))
        axes.append((place, image))
    shape = (count, axes[0][0].shape[1], axes[1][0].shape[1])
    grid = [axes[0][0].unsqueeze(2).broadcast_to(shape), axes[1][0].unsqueeze(1).broadcast_to(shape)]
    inside = None
    clamped = []
    for place, image in zip(grid, (height, width)):
        within = b.op("and", b.compare(place, -1, "GE"), b.compare(place, image, "LE"))
        inside = within if inside is None else b.op("and", inside, within)
        clamped.append(b.op("min", b.op("max", place, 0), image - 1))
    image = b.gather(x, b.cast(n.view(2), "i64"), 0)
    flat = (count, shape[1] * shape[2], 1)
    if n.attr("mode", "avg") == "max":
        n.fail("mode max takes the maximum of weighted neighbours")
    samples = sampled(n, image, [b.reshape(each, flat) for each in clamped], "linear", "border", True)
    samples = b.op("mul", b.reshape(samples, (count, channels, *shape[1:])), b.cast(inside, x.dtype).unsqueeze(1))
    bins = b.reshape(samples, (count, channels, extents[0], ratio, extents[1], ratio))
    return b.mean(bins, [3, 5], keep=False)

# SPDX-License-Identifier: Apache-2.0
"""Convolutions."""
from math import prod

import numpy as np

from ..node import Node
from ..registry import maps
from ..views import View
from .resize import sampled
from .window import window_of


def convolved(n: Node, x: View, w: View, bias) -> View:
    window = window_of(n, x.shape[2:], n.attr("kernel_shape") or w.shape[2:])
    return n.b.op("conv", x, w, bias, shape=(x.shape[0], w.shape[0], *window.out), groups=n.attr("group", 1), activation=0, precision=0,
                  **window.attributes())


@maps("Conv")
def conv(n: Node):
    return convolved(n, n.view(0), n.view(1), n.optional(2))


def minus(n: Node, x: View, zero: "View | None", axis: int, dtype: str) -> View:
    """Returns the difference of integers and their zero point, in the float dtype `dtype`, which represents it
    exactly."""
    x = n.b.cast(x, dtype)
    if zero is None:
        return x
    zero = n.b.cast(zero, dtype)
    if zero.size > 1:
        zero = n.b.reshape(zero, [zero.size if d == axis else 1 for d in range(x.rank)])
    return n.b.op("sub", x, zero)


def exact(w: View) -> str:
    """Returns the float dtype that represents all sums of a convolution of 8-bit integers with the weight `w`
    exactly."""
    return "f32" if prod(w.shape[1:]) * 255 * 255 <= 2**24 else "f64"


@maps("ConvInteger")
def conv_integer(n: Node):
    x, w = n.view(0), n.view(1)
    dtype = exact(w)
    return n.b.cast(convolved(n, minus(n, x, n.optional(2), 1, dtype), minus(n, w, n.optional(3), 0, dtype), None), "i32")


@maps("QLinearConv")
def quantized_conv(n: Node):
    b = n.b
    x, x_scale, w, w_scale, y_scale, zero = n.view(0), n.view(1), n.view(3), n.view(4), n.view(6), n.view(7)
    dtype = exact(w)
    out = convolved(n, minus(n, x, n.view(2), 1, dtype), minus(n, w, n.view(5), 0, dtype), None)
    if n.has(8):
        out = b.op("add", out, b.reshape(b.cast(n.view(8), dtype), (1, w.shape[0]) + (1,) * (out.rank - 2)))
    scale = b.op("mul", x_scale, w_scale)
    if scale.size > 1:
        scale = b.reshape(scale, (1, scale.size) + (1,) * (out.rank - 2))
    return requantized(n, b.op("mul", out, b.cast(scale, dtype)), y_scale, zero)


def requantized(n: Node, x: View, scale: View, zero: View) -> View:
    """Quantizes floats with a scale and a zero point. The final cast to integers saturates."""
    b = n.b
    whole = b.op("rint", b.op("div", x, b.cast(scale, x.dtype)))
    return b.cast(b.op("add", whole, b.cast(zero, x.dtype)), zero.dtype)


@maps("ConvTranspose")
def conv_transpose(n: Node):
    b, x, w = n.b, n.view(0), n.view(1)
    rank, groups = x.rank - 2, n.attr("group", 1)
    kernel = w.shape[2:]
    stride, dilation = n.attr("strides") or [1] * rank, n.attr("dilations") or [1] * rank
    pads, extra, wanted = n.attr("pads") or [0] * (2 * rank), n.attr("output_padding") or [0] * rank, n.attr("output_shape")
    auto = n.attr("auto_pad", "NOTSET")
    if not 1 <= rank <= 3:
        n.fail(f"the image has {rank} spatial dimensions; Backplane has 1 to 3")
    before, after, out = [], [], []
    for d in range(rank):
        full = stride[d] * (x.shape[2 + d] - 1) + extra[d] + (kernel[d] - 1) * dilation[d] + 1
        low, high = pads[d], pads[rank + d]
        if wanted or auto in ("SAME_UPPER", "SAME_LOWER"):
            extent = wanted[-rank:][d] if wanted else x.shape[2 + d] * stride[d]
            total = full - extent
            low, high = (total // 2, total - total // 2) if auto == "SAME_UPPER" else (total - total // 2, total // 2)
        before.append(low)
        after.append(high)
        out.append(full - low - high)
    # conv_transpose supports neither output padding nor negative padding. If a node has one of these,
    # conv_transpose computes the full result without padding. This result is then cropped or extended.
    shape = [stride[d] * (x.shape[2 + d] - 1) + (kernel[d] - 1) * dilation[d] + 1 for d in range(rank)]
    plain = all(low >= 0 and high >= 0 and more == 0 for low, high, more in zip(before, after, extra))
    bias = n.optional(2)
    parameters = dict(spatial_rank=rank, groups=groups, activation=0, stride=stride, dilation=dilation, precision=0)
    channels = w.shape[1] * groups
    if plain:
        return b.op("conv_transpose", x, w, bias, shape=(x.shape[0], channels, *out), pad_begin=before, pad_end=after, **parameters)
    whole = b.op("conv_transpose", x, w, None, shape=(x.shape[0], channels, *shape), pad_begin=[0] * rank, pad_end=[0] * rank, **parameters)
    low = [0, 0] + [-each for each in before]
    high = [0, 0] + [out[d] - shape[d] + before[d] for d in range(rank)]
    whole = b.pad(whole, low, high, 0)
    return whole if bias is None else b.op("add", whole, b.reshape(bias, (1, channels) + (1,) * rank))


@maps("Col2Im")
def col2im(n: Node):
    """Adds the columns of each kernel element to a strided view of the padded image."""
    b, x = n.b, n.view(0)
    image, block = n.ints(1), n.ints(2)
    rank = len(image)
    stride, dilation = n.attr("strides") or [1] * rank, n.attr("dilations") or [1] * rank
    pads = n.attr("pads") or [0] * (2 * rank)
    padded = [image[d] + pads[d] + pads[rank + d] for d in range(rank)]
    counts = [(padded[d] - dilation[d] * (block[d] - 1) - 1) // stride[d] + 1 for d in range(rank)]
    channels = x.shape[1] // int(np.prod(block))
    parts = b.reshape(x, (x.shape[0], channels, int(np.prod(block)), *counts))
    out = b.new(x.dtype, (x.shape[0], channels, *padded))
    b.call("fill", [], [out], value=0)
    for place, element in enumerate(np.ndindex(*block)):
        target = out
        for d in range(rank):
            target = target.slice(2 + d, element[d] * dilation[d], counts[d], stride[d])
        b.op("add", target, parts.select(2, place), out=target)
    for d in range(rank):
        out = out.slice(2 + d, pads[d], image[d])
    return out


@maps("DeformConv")
def deform_conv(n: Node):
    """Samples the image at the positions that `offset` moves, and multiplies the samples by the weight."""
    b, x, w, offset = n.b, n.view(0), n.view(1), n.view(2)
    if x.rank != 4:
        n.fail("the image does not have 2 spatial dimensions")
    bias, mask = n.optional(3), n.optional(4)
    groups, moved = n.attr("group", 1), n.attr("offset_group", 1)
    window = window_of(n, x.shape[2:], w.shape[2:])
    batch, channels, height, width = x.shape
    taps, (rows, columns) = int(np.prod(window.kernel)), window.out
    offset = b.reshape(offset, (batch, moved, taps, 2, rows, columns))
    grid = []
    for d in range(2):
        element = np.array([place[d] for place in np.ndindex(*window.kernel)]) * window.dilation[d] - window.before[d]
        steps = np.arange(window.out[d]) * window.stride[d]
        base = element[:, None, None] + (steps[:, None] if d == 0 else steps[None, :])
        grid.append(b.op("add", offset.select(3, d), b.constant(np.broadcast_to(base, (taps, rows, columns)), x.dtype)))
    image = b.reshape(x, (batch * moved, channels // moved, height, width))
    shape = (batch * moved, taps, rows * columns)
    samples = sampled(n, image, [b.reshape(each, shape) for each in grid], "linear", "zeros", True)
    samples = b.reshape(samples, (batch, moved, channels // moved, taps, rows * columns))
    if mask is not None:
        samples = b.op("mul", samples, b.reshape(mask, (batch, moved, 1, taps, rows * columns)))
    inner = channels // groups * taps
    left = b.reshape(w, (1, groups, w.shape[0] // groups, inner))
    out = b.matmul(left, b.reshape(samples, (batch, groups, inner, rows * columns)))
    out = b.reshape(out, (batch, w.shape[0], rows, columns))
    return out if bias is None else b.op("add", out, b.reshape(bias, (1, bias.size, 1, 1)))

# SPDX-License-Identifier: Apache-2.0
"""Quantisation."""
from .. import dtypes
from ..node import Node
from ..registry import maps
from ..values import Value
from ..views import View
from .conv import requantized
from .matmul import integers, of_rows


def spread(n: Node, x: View, parameter: View, axis: int) -> View:
    """Returns a scale or a zero point with a shape that can be broadcast to x. It has one element, or one for
    each position along the axis, or one for each block."""
    if parameter.size == 1:
        return n.b.reshape(parameter, (1,) * x.rank)
    block = n.attr("block_size", 0)
    if block and parameter.rank == x.rank:
        wide = parameter.unsqueeze(axis + 1).broadcast_to(parameter.shape[:axis + 1] + (block,) + parameter.shape[axis + 1:])
        shape = list(parameter.shape)
        shape[axis] *= block
        return n.b.reshape(wide, shape).slice(axis, 0, x.shape[axis])
    return n.b.reshape(parameter, [parameter.size if d == axis else 1 for d in range(x.rank)])


@maps("QuantizeLinear")
def quantize(n: Node):
    b, x = n.b, n.view(0)
    axis = n.axis(1) if x.rank > 1 or n.shape(1) else 0
    kind = n.value(2).kind if n.has(2) else n.attr("output_dtype", 0) or 2
    target = dtypes.of_onnx(kind)
    if target is None:
        n.fail(f"Backplane has no dtype for {dtypes.onnx_name(kind)}")
    scale = spread(n, x, n.view(1), axis)
    if x.dtype not in dtypes.FLOATS:
        x = b.cast(x, scale.dtype)
    zero = spread(n, x, n.view(2), axis) if n.has(2) else None
    whole = b.op("rint", b.op("div", x, b.cast(scale, x.dtype)))
    whole = whole if zero is None else b.op("add", whole, b.cast(zero, x.dtype))
    if not dtypes.is_carried(kind):
        return b.cast(whole, target)  # the cast saturates
    low, high = dtypes.limits_of(kind)
    out = b.cast(b.op("min", b.op("max", whole, low), high), target)
    return Value(n.proto.output[0], kind, out.shape, view=out)


@maps("DequantizeLinear")
def dequantize(n: Node):
    b, x = n.b, n.view(0)
    axis = n.axis(1) if x.rank > 1 or n.shape(1) else 0
    scale = spread(n, x, n.view(1), axis)
    zero = spread(n, x, n.view(2), axis) if n.has(2) else None
    # Differences of 32-bit integers are exact in f64, but not in f32.
    work = "f64" if x.dtype in ("i32", "u32") else "f32"
    value = b.cast(x, work)
    value = value if zero is None else b.op("sub", value, b.cast(zero, work))
    return b.cast(b.op("mul", value, b.cast(scale, work)), dtypes.of_onnx(n.attr("output_dtype", 0)) or scale.dtype)


@maps("QLinearMatMul")
def quantized_matmul(n: Node):
    b = n.b
    out = b.cast(integers(n, n.view(0), of_rows(n.view(2)), n.view(3), n.view(5)), "f32")
    scale = b.op("mul", b.cast(of_rows(n.view(1)), "f32"), b.cast(n.view(4), "f32"))
    return requantized(n, b.op("mul", out, scale), n.view(6), n.view(7))

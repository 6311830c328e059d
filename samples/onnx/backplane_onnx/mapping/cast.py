# SPDX-License-Identifier: Apache-2.0
"""Conversions of dtypes."""
from .. import dtypes
from ..node import Node
from ..registry import maps
from ..values import Value


@maps("Cast")
def cast(n: Node):
    return converted(n, n.attr("to"))


@maps("CastLike")
def cast_like(n: Node):
    return converted(n, n.value(1).kind)


def converted(n: Node, kind: int):
    target = dtypes.of_onnx(kind)
    if target is None:
        n.fail(f"Backplane has no dtype for {dtypes.onnx_name(kind)}")
    x = n.view(0)
    if x.dtype in dtypes.FLOATS and target in ("u8", "i8"):
        return n.b.cast(n.b.cast(x, "i64"), target)  # wraps as NumPy does, whereas a direct cast saturates
    out = n.b.copy(x) if x.dtype == target else n.b.cast(x, target)
    return Value(n.proto.output[0], kind, out.shape, view=n.b.wrap(out, kind)) if dtypes.is_carried(kind) else out


@maps("BitCast")
def bit_cast(n: Node):
    target = dtypes.of_onnx(n.attr("to"))
    x = n.view(0)
    if target is None:
        n.fail(f"Backplane has no dtype for {dtypes.onnx_name(n.attr('to'))}")
    if dtypes.is_carried(n.attr("to")) or dtypes.is_carried(n.value(0).kind):
        n.fail("a 16-bit integer, which i32 carries, has other bits")
    if dtypes.BYTES[target] != dtypes.BYTES[x.dtype]:
        n.fail(f"{x.dtype} and {target} have different sizes")
    return x.reinterpret(target)

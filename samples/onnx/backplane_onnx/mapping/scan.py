# SPDX-License-Identifier: Apache-2.0
"""Running sums and products."""
from ..node import Node
from ..registry import maps


@maps("CumSum")
def cumsum(n: Node):
    x = n.view(0)
    axis = int(n.host(1).reshape(-1)[0]) % max(x.rank, 1)
    return n.b.op("cumsum", x, axis=axis, exclusive=n.attr("exclusive", 0), reverse=n.attr("reverse", 0))


@maps("CumProd")
def cumprod(n: Node):
    """Computes running products in log2(extent) steps of multiplications, because Backplane has no operator for
    them."""
    x, b = n.view(0), n.b
    axis = int(n.host(1).reshape(-1)[0]) % max(x.rank, 1)
    x = x.flip(axis) if n.attr("reverse", 0) else x
    extent = x.shape[axis]
    if n.attr("exclusive", 0):
        shifted = b.new(x.dtype, x.shape)
        b.call("fill", [], [shifted], value=1)
        if extent > 1:
            b.copy(x.slice(axis, 0, extent - 1), shifted.slice(axis, 1, extent - 1))
        x = shifted
    step = 1
    while step < extent:
        out = b.copy(x)
        b.op("mul", x.slice(axis, step, extent - step), x.slice(axis, 0, extent - step), out=out.slice(axis, step, extent - step))
        x, step = out, step * 2
    return x.flip(axis) if n.attr("reverse", 0) else b.copy(x) if step == 1 else x

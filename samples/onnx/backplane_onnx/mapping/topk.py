# SPDX-License-Identifier: Apache-2.0
"""Selection of the greatest or the least elements."""
from ..node import Node
from ..registry import maps


@maps("TopK")
def topk(n: Node):
    b, x, axis = n.b, n.view(0), n.axis(-1)
    count = n.attr("k") if "k" in n.attributes else int(n.host(1).reshape(-1)[0])
    if not 0 <= count <= x.shape[axis]:
        n.fail(f"k is {count}, and the axis has the extent {x.shape[axis]}")
    shape = [count if d == axis else extent for d, extent in enumerate(x.shape)]
    values, indices = b.new(x.dtype, shape), b.new("i64", shape)
    b.call("topk", [x], [values, indices], axis=axis, smallest=0 if n.attr("largest", 1) else 1)
    return [values, indices]

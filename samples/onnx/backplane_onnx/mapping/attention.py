# SPDX-License-Identifier: Apache-2.0
"""Attention. The composite `attention` computes nodes that have no cache and no softcap, and whose only used
output is the first one. All other nodes use the function by which ONNX defines Attention."""
import backplane as bp

from ..node import Node
from ..registry import maps
from ..views import View


def split_heads(n: Node, x: View, heads: int) -> View:
    """Returns x as [batch, heads, length, width]. x has this shape already, or the shape [batch, length, heads
    * width]."""
    if x.rank == 4:
        return x
    return n.b.reshape(x, (x.shape[0], x.shape[1], heads, x.shape[2] // heads)).transpose(1, 2)


KNOWN = {"is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softcap", "softmax_precision"}


@maps("Attention")
def attention(n: Node):
    if set(n.attributes) - KNOWN or any(n.has(place) for place in range(4, len(n.inputs))) or any(n.outputs[1:]) or n.attr("softcap", 0.0):
        return NotImplemented
    b, flat = n.b, len(n.shape(0)) == 3
    mask = n.optional(3)
    q, k, v = n.view(0), n.view(1), n.view(2)
    if flat and (n.attr("q_num_heads", 0) < 1 or n.attr("kv_num_heads", 0) < 1):
        n.fail("operands of rank 3 need q_num_heads and kv_num_heads")
    q, k, v = split_heads(n, q, n.attr("q_num_heads")), split_heads(n, k, n.attr("kv_num_heads")), split_heads(n, v, n.attr("kv_num_heads"))
    batch, heads, length, width = q.shape
    if mask is not None:
        whole = (batch, heads, length, k.shape[2])
        if mask.rank > 4 or any(own not in (1, extent) for own, extent in zip(mask.shape[::-1], whole[::-1])) or mask.dtype == "i32":
            return NotImplemented  # the function by which ONNX defines Attention also extends short masks
        mask = mask.broadcast_to(whole)
    shape = (batch, heads, length, v.shape[3])
    scale = n.attr("scale", width**-0.5)
    causal = bp.constants.BP_CAUSAL_UPPER_LEFT if n.attr("is_causal", 0) else bp.constants.BP_CAUSAL_NONE
    out = b.op("attention", q, k, v, mask, dtype=q.dtype, shape=shape, causal=causal, scale=scale, precision=0)
    return b.reshape(out.transpose(1, 2), (batch, length, heads * v.shape[3])) if flat else out

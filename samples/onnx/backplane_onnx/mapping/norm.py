# SPDX-License-Identifier: Apache-2.0
"""Normalisation."""
import numpy as np

from ..node import Node
from ..registry import maps


@maps("BatchNormalization")
def batch_norm(n: Node):
    x, b = n.view(0), n.b
    training, epsilon, kept = n.attr("training_mode", 0), n.attr("epsilon", 1e-5), n.attr("momentum", 0.9)
    scale, bias, mean, variance = (n.view(place) for place in range(1, 5))
    if n.opset < 7 and not n.attr("is_test", 0):
        n.fail("training of an opset before 7")
    if n.opset < 14 and any(n.outputs[1:]):
        n.fail("training of opset 7 to 13 has other outputs")
    parameters = [b.cast(each, x.dtype) for each in (scale, bias, mean, variance)]
    y = b.new(x.dtype, x.shape)
    if not training:
        b.call("batch_norm", [x, *parameters], [y], training=0, epsilon=epsilon, momentum=0)
        return y
    running = [b.new(x.dtype, mean.shape), b.new(x.dtype, mean.shape)]
    # In ONNX, the momentum is the weight of the old statistics. In Backplane, it is the weight of the new ones.
    b.call("batch_norm", [x, *parameters], [y, *running], training=1, epsilon=epsilon, momentum=1 - kept)
    return [y, b.cast(running[0], mean.dtype), b.cast(running[1], variance.dtype)]


@maps("LayerNormalization")
def layer_norm(n: Node):
    b, kind = n.b, n.view(0).dtype
    x = n.view(0)
    axis = n.axis(-1)
    tail = x.shape[axis:]

    def parameter(place):
        found = n.optional(place)
        return None if found is None else b.dense(b.cast(found, kind).broadcast_to(tail))

    shape = x.shape[:axis] + (1,) * len(tail)
    statistics = "f32" if kind in ("f16", "bf16") else kind
    outputs = [b.new(kind, x.shape), b.new(statistics, shape) if n.wants(1) or n.wants(2) else None, b.new(statistics, shape) if n.wants(2) else None]
    b.call("layer_norm", [x, parameter(1), parameter(2)], outputs[:3 if n.wants(2) else 2 if n.wants(1) else 1], axes=list(range(axis, x.rank)),
           epsilon=n.attr("epsilon", 1e-5))
    return outputs


@maps("RMSNormalization")
def rms_norm(n: Node):
    b, x = n.b, n.view(0)
    axis = n.axis(-1)
    gamma = b.dense(b.cast(n.view(1), x.dtype).broadcast_to(x.shape[axis:]))
    out = b.new(x.dtype, x.shape)
    b.call("rms_norm", [x, gamma], [out], axes=list(range(axis, x.rank)), epsilon=n.attr("epsilon", 1e-5))
    return out


@maps("GroupNormalization", "InstanceNormalization")
def group_norm(n: Node):
    b, x = n.b, n.view(0)
    gamma, beta = n.view(1), n.view(2)
    groups = n.attr("num_groups", x.shape[1])
    if gamma.shape != (x.shape[1],):  # in opset 18, there is one parameter per group
        size = x.shape[1] // groups
        gamma, beta = (b.reshape(each.unsqueeze(1).broadcast_to((groups, size)), (x.shape[1],)) for each in (gamma, beta))
    out = b.new(x.dtype, x.shape)
    b.call("group_norm", [x, b.cast(gamma, x.dtype), b.cast(beta, x.dtype)], [out], groups=groups, epsilon=n.attr("epsilon", 1e-5))
    return out


@maps("LRN")
def local_response(n: Node):
    """Sums the squares of neighbouring channels. The sum is computed as a product with a band matrix of ones."""
    b, x = n.b, n.view(0)
    size, channels = n.attr("size"), x.shape[1]
    rows, columns = np.indices((channels, channels))
    band = (columns >= rows - (size - 1) // 2) & (columns <= rows + size // 2)
    flat = b.reshape(b.op("mul", x, x), (x.shape[0], channels, x.size // max(x.shape[0] * channels, 1)))
    total = b.reshape(b.matmul(b.constant(band, x.dtype), flat), x.shape)
    base = b.op("add", b.op("mul", total, n.attr("alpha", 1e-4) / size), n.attr("bias", 1.0))
    return b.op("div", x, b.op("pow", base, n.attr("beta", 0.75)))


@maps("LpNormalization")
def lp_norm(n: Node):
    b, x, axis = n.b, n.view(0), n.axis(-1)
    if n.attr("p", 2) == 1:
        length = b.reduce("reduce_sum", b.op("abs", x), [axis])
    else:
        length = b.op("sqrt", b.reduce("reduce_sum", b.op("mul", x, x), [axis]))
    return b.op("select", b.compare(length, 0, "EQ"), 0, b.op("div", x, length))

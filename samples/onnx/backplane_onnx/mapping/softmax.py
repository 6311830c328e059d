# SPDX-License-Identifier: Apache-2.0
"""Softmax and log-softmax."""
from math import prod

from ..node import Node
from ..registry import maps


@maps("Softmax", "LogSoftmax")
def softmax(n: Node):
    op = "softmax" if n.proto.op_type == "Softmax" else "log_softmax"
    x = n.view(0)
    if n.opset >= 13:
        return n.b.op(op, x, axis=n.axis(-1))
    axis = n.axis(1)  # before opset 13, softmax flattens the tensor to two dimensions at this axis
    flat = n.b.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))
    return n.b.reshape(n.b.op(op, flat, axis=1), x.shape)

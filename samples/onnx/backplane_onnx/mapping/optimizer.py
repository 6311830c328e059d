# SPDX-License-Identifier: Apache-2.0
"""The optimizers of ONNX's domain ai.onnx.preview.training. The host reads the learning rate and the number of
steps."""
from ..node import Node
from ..registry import maps

DOMAIN = "ai.onnx.preview.training"


def scalars(n: Node):
    return float(n.host(0).reshape(-1)[0]), int(n.host(1).reshape(-1)[0])


def groups(n: Node, kinds: int):
    """Returns a list of operands for each parameter. The node's inputs are all parameters, then all gradients,
    and so on."""
    count = (len(n.inputs) - 2) // kinds
    return [[n.view(2 + kind * count + place) for kind in range(kinds)] for place in range(count)]


def regularized(n: Node, x, gradient):
    factor = n.attr("norm_coefficient", 0.0)
    return n.b.op("add", n.b.op("mul", x, factor), gradient) if factor else gradient


@maps("Adagrad", domain=DOMAIN)
def adagrad(n: Node):
    b, (rate, step) = n.b, scalars(n)
    rate /= 1 + step * n.attr("decay_factor", 0.0)
    done = []
    for x, gradient, h in groups(n, 3):
        gradient = regularized(n, x, gradient)
        h = b.op("add", h, b.op("mul", gradient, gradient))
        root = b.op("add", b.op("sqrt", h), n.attr("epsilon", 1e-6))
        done.append([b.op("sub", x, b.op("mul", b.op("div", gradient, root), rate)), h])
    return [each[kind] for kind in range(2) for each in done]


@maps("Momentum", domain=DOMAIN)
def momentum(n: Node):
    b, (rate, step) = n.b, scalars(n)
    alpha, beta = n.attr("alpha"), n.attr("beta")
    beta = beta if step > 0 else 1.0
    done = []
    for x, gradient, v in groups(n, 3):
        gradient = regularized(n, x, gradient)
        v = b.op("add", b.op("mul", v, alpha), b.op("mul", gradient, beta))
        move = v if n.attr("mode") == "standard" else b.op("add", gradient, b.op("mul", v, alpha))
        done.append([b.op("sub", x, b.op("mul", move, rate)), v])
    return [each[kind] for kind in range(2) for each in done]


@maps("Adam", domain=DOMAIN)
def adam(n: Node):
    b, (rate, step) = n.b, scalars(n)
    alpha, beta = n.attr("alpha", 0.9), n.attr("beta", 0.999)
    if step > 0:
        rate *= (1 - beta**step) ** 0.5 / (1 - alpha**step)
    done = []
    for x, gradient, v, h in groups(n, 4):
        gradient = regularized(n, x, gradient)
        v = b.op("add", b.op("mul", v, alpha), b.op("mul", gradient, 1 - alpha))
        h = b.op("add", b.op("mul", h, beta), b.op("mul", b.op("mul", gradient, gradient), 1 - beta))
        root = b.op("add", b.op("sqrt", h), n.attr("epsilon", 1e-6))
        x = b.op("sub", x, b.op("mul", b.op("div", v, root), rate))
        after = n.attr("norm_coefficient_post", 0.0)
        done.append([b.op("mul", x, 1 - after) if after else x, v, h])
    return [each[kind] for kind in range(3) for each in done]

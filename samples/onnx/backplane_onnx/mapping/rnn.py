# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks. The trace unrolls them over time."""
from ..builder import Builder
from ..node import Node
from ..registry import maps
from ..views import View

MAX_STEPS = 4096


def activation(n: Node, name: str, x: View, alpha, beta) -> View:
    b = n.b
    name = name.lower()
    simple = {"sigmoid": "sigmoid", "tanh": "tanh"}
    if name in simple:
        return b.op(simple[name], x)
    if name == "relu":
        return b.op("max", x, 0)
    if name == "affine":
        return b.op("add", b.op("mul", x, 1.0 if alpha is None else alpha), beta or 0.0)
    if name == "softplus":
        return b.unary(x, "SOFTPLUS")
    if name == "softsign":
        return b.op("div", x, b.op("add", b.op("abs", x), 1))
    if name == "leakyrelu":
        return b.op("select", b.compare(x, 0, "LT"), b.op("mul", x, 0.01 if alpha is None else alpha), x)
    if name == "scaledtanh":
        return b.op("mul", b.op("tanh", b.op("mul", x, beta or 1.0)), 1.0 if alpha is None else alpha)
    if name == "hardsigmoid":
        line = b.op("add", b.op("mul", x, 0.2 if alpha is None else alpha), 0.5 if beta is None else beta)
        return b.op("min", b.op("max", line, 0), 1)
    if name == "elu":
        low = b.op("mul", b.op("sub", b.op("exp", x), 1), 1.0 if alpha is None else alpha)
        return b.op("select", b.compare(x, 0, "LT"), low, x)
    return n.fail(f"the activation {name!r} has no mapping")


class Cell:
    """The parameters of a recurrent cell in one direction. Each subclass computes one step of a kind of cell."""

    gates = 1
    defaults: "tuple[str, ...]" = ("Tanh",)

    def __init__(self, n: Node, direction: int, count: int) -> None:
        self.n, self.b, self.hidden = n, n.b, n.attr("hidden_size")
        own, per = n.attr("activations") or [], len(self.defaults)
        names = [each.decode() if isinstance(each, bytes) else each for each in own]
        self.names = names[direction * per:(direction + 1) * per] or list(self.defaults)
        alpha, beta = n.attr("activation_alpha") or [], n.attr("activation_beta") or []
        self.alpha = (alpha[direction * per:] + [None] * per)[:per]
        self.beta = (beta[direction * per:] + [None] * per)[:per]
        self.clip = n.attr("clip")
        self.w, self.r = n.view(1).select(0, direction), n.view(2).select(0, direction)
        bias = n.view(3).select(0, direction) if n.has(3) else None
        size = self.gates * self.hidden
        self.bias_w = None if bias is None else bias.slice(0, 0, size)
        self.bias_r = None if bias is None else bias.slice(0, size, size)

    def act(self, place: int, x: View) -> View:
        if self.clip is not None:
            x = self.b.op("min", self.b.op("max", x, -self.clip), self.clip)
        return activation(self.n, self.names[place], x, self.alpha[place], self.beta[place])

    def gate(self, x: View, place: int) -> View:
        return x.slice(-1, place * self.hidden, self.hidden)

    def linear(self, x: View, w: View, bias) -> View:
        return self.b.op("linear", x, w, bias, shape=(*x.shape[:-1], w.shape[0]), activation=0, precision=0)

    def step(self, x: View, states: "list[View]") -> "list[View]":
        raise NotImplementedError


class Plain(Cell):
    def step(self, x, states):
        return [self.act(0, self.b.op("add", x, self.linear(states[0], self.r, self.bias_r)))]


class Gru(Cell):
    gates, defaults = 3, ("Sigmoid", "Tanh")

    def step(self, x, states):
        b, h, size = self.b, states[0], self.hidden
        two = self.linear(h, self.r.slice(0, 0, 2 * size), None if self.bias_r is None else self.bias_r.slice(0, 0, 2 * size))
        z = self.act(0, b.op("add", self.gate(x, 0), self.gate(two, 0)))
        r = self.act(0, b.op("add", self.gate(x, 1), self.gate(two, 1)))
        w, bias = self.r.slice(0, 2 * size, size), None if self.bias_r is None else self.bias_r.slice(0, 2 * size, size)
        if self.n.attr("linear_before_reset", 0):
            inner = b.op("mul", r, self.linear(h, w, bias))
        else:
            inner = self.linear(b.op("mul", r, h), w, bias)
        candidate = self.act(1, b.op("add", self.gate(x, 2), inner))
        return [b.op("add", candidate, b.op("mul", z, b.op("sub", h, candidate)))]


class Lstm(Cell):
    gates, defaults = 4, ("Sigmoid", "Tanh", "Tanh")

    def __init__(self, n, direction, count):
        super().__init__(n, direction, count)
        self.peephole = n.view(7).select(0, direction) if n.has(7) else None

    def peep(self, x, place, cell):
        if self.peephole is None:
            return x
        return self.b.op("add", x, self.b.op("mul", self.peephole.slice(0, place * self.hidden, self.hidden), cell))

    def step(self, x, states):
        b, (h, c) = self.b, states
        all_gates = b.op("add", x, self.linear(h, self.r, self.bias_r))
        i = self.act(0, self.peep(self.gate(all_gates, 0), 0, c))
        forget = b.op("sub", 1, i) if self.n.attr("input_forget", 0) else self.act(0, self.peep(self.gate(all_gates, 2), 2, c))
        cell = b.op("add", b.op("mul", forget, c), b.op("mul", i, self.act(1, self.gate(all_gates, 3))))
        o = self.act(0, self.peep(self.gate(all_gates, 1), 1, cell))
        return [b.op("mul", o, self.act(2, cell)), cell]


CELLS = {"RNN": (Plain, 1), "GRU": (Gru, 1), "LSTM": (Lstm, 2)}


@maps(*CELLS)
def recurrent(n: Node):
    kind, count = CELLS[n.proto.op_type]
    b, x, layout = n.b, n.view(0), n.attr("layout", 0)
    x = x.transpose(0, 1) if layout else x
    length, batch, _ = x.shape
    if length > MAX_STEPS:
        n.fail(f"the sequence has {length} steps, and the mapping unrolls {MAX_STEPS} at most")
    name = n.attr("direction", "forward")
    directions = 2 if name == "bidirectional" else 1
    lengths = n.view(4) if n.has(4) else None
    known = n.value(4).host if n.has(4) else None
    if known is not None and (known == length).all():
        lengths = None
    sequences, finals = [], []
    for direction in range(directions):
        cell = kind(n, direction, count)
        states = [initial(n, b, 5 + place, direction, layout, x.dtype, (batch, cell.hidden)) for place in range(count)]
        projected = cell.linear(x, cell.w, cell.bias_w)
        backward = name == "reverse" or direction == 1
        outputs = [None] * length
        for step in range(length - 1, -1, -1) if backward else range(length):
            new = cell.step(projected.select(0, step), states)
            if lengths is not None:  # after the end of a sequence, the state remains, and the output is 0
                going = b.compare(lengths, step, "GT").unsqueeze(1)
                states = [b.op("select", going, after, before) for after, before in zip(new, states)]
                outputs[step] = b.op("select", going, new[0], 0)
            else:
                states, outputs[step] = new, new[0]
        sequences.append(b.concat([each.unsqueeze(0) for each in outputs], 0) if outputs else b.full(0, x.dtype, (0, batch, cell.hidden)))
        finals.append(states)
    y = b.concat([each.unsqueeze(1) for each in sequences], 1)
    last = [b.concat([states[place].unsqueeze(0) for states in finals], 0) for place in range(count)]
    if layout:
        y, last = y.permute((2, 0, 1, 3)), [each.transpose(0, 1) for each in last]
    return [y, *last]


def initial(n: Node, b: Builder, place: int, direction: int, layout: int, dtype: str, shape) -> View:
    if not n.has(place):
        return b.full(0, dtype, shape)
    state = n.view(place)
    return (state.transpose(0, 1) if layout else state).select(0, direction)

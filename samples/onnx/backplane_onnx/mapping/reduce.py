# SPDX-License-Identifier: Apache-2.0
"""Reductions, and searches for the greatest or least element."""
from math import prod

from ..node import Node
from ..registry import maps
from ..views import View


def axes_of(n: Node, x: View):
    """Returns the list of reduced axes. The list is empty if the node copies its input."""
    axes = n.parameter("axes", 1)
    if not axes:
        if axes is not None and n.attr("noop_with_empty_axes", 0) or axes is None and n.attr("noop_with_empty_axes", 0):
            return []
        return list(range(x.rank))
    return [axis % x.rank for axis in axes]


REDUCE = {"ReduceSum": "reduce_sum", "ReduceProd": "reduce_prod", "ReduceMax": "reduce_max", "ReduceMin": "reduce_min", "ReduceMean": "reduce_sum",
          "ReduceL1": "reduce_sum", "ReduceL2": "reduce_sum", "ReduceSumSquare": "reduce_sum", "ReduceLogSum": "reduce_sum",
          "ReduceLogSumExp": "reduce_sum"}


@maps(*REDUCE)
def reduce(n: Node):
    x, b, op = n.view(0), n.b, n.proto.op_type
    axes, keep = axes_of(n, x), bool(n.attr("keepdims", 1))
    if op == "ReduceLogSumExp":
        return log_sum_exp(n, x, axes, keep)
    if op in ("ReduceL2", "ReduceSumSquare"):
        x = b.op("mul", x, x)
    elif op == "ReduceL1":
        x = b.op("abs", x)
    out = b.reduce(REDUCE[op], x, axes, keep) if axes else b.copy(x)
    if op == "ReduceMean":
        return b.op("div", out, prod(x.shape[axis] for axis in axes))
    return b.op("sqrt", out) if op == "ReduceL2" else b.op("log", out) if op == "ReduceLogSum" else out


def log_sum_exp(n: Node, x: View, axes, keep: bool) -> View:
    b = n.b
    if not axes:
        return b.copy(x)
    greatest = b.reduce("reduce_max", x, axes)
    # Replaces an infinite maximum by 0. The maximum of no elements is -inf, and -inf - -inf would be NaN.
    finite = b.op("select", b.compare(b.op("abs", greatest), float("inf"), "EQ"), 0, greatest)
    out = b.op("add", b.op("log", b.reduce("reduce_sum", b.op("exp", b.op("sub", x, finite)), axes)), finite)
    return out if keep else out.squeeze(axes)


@maps("ArgMax", "ArgMin")
def arg(n: Node):
    x, axis, b = n.view(0), n.axis(0), n.b
    last = n.attr("select_last_index", 0)
    shape = [1 if d == axis else extent for d, extent in enumerate(x.shape)]
    out = b.op(n.proto.op_type.lower(), x.flip(axis) if last else x, dtype="i64", shape=shape, axis=axis)
    if last:
        out = b.op("sub", x.shape[axis] - 1, out)
    return out if n.attr("keepdims", 1) else out.squeeze([axis])


@maps("GlobalAveragePool")
def global_average(n: Node):
    x = n.view(0)
    return n.b.mean(x, range(2, x.rank))


@maps("GlobalMaxPool")
def global_max(n: Node):
    x = n.view(0)
    return n.b.reduce("reduce_max", x, range(2, x.rank))


@maps("Hardmax")
def hardmax(n: Node):
    x, b = n.view(0), n.b
    shape, axis = x.shape, n.axis(-1 if n.opset >= 13 else 1)
    if n.opset < 13:
        x, axis = b.reshape(x, (prod(shape[:axis]), prod(shape[axis:]))), 1
    best = b.op("argmax", x, dtype="i32", shape=[1 if d == axis else extent for d, extent in enumerate(x.shape)], axis=axis)
    return b.reshape(b.cast(b.compare(b.iota("i32", x.shape, axis), best, "EQ"), x.dtype), shape)



# SPDX-License-Identifier: Apache-2.0
"""Operators that read or write elements that indices select. Backplane does not support negative indices, so a
mapping adds the extent to them."""
from math import prod

import numpy as np

import backplane as bp

from .. import dtypes
from ..node import Node
from ..registry import maps
from ..views import View


def wrapped(n: Node, place: int, extent: int) -> View:
    """Returns the indices of input `place` with the extent added to negative indices. The host converts
    constants during the trace."""
    value = n.value(place)
    if value.host is not None:
        array = np.where(value.host < 0, value.host + extent, value.host)
        if array.size and (array.min() < 0 or array.max() >= extent):
            n.fail(f"the indices reach from {value.host.min()} to {value.host.max()}, and the extent is {extent}")
        return n.b.constant(array, "i64")
    index = n.view(place)
    return n.b.op("select", n.b.compare(index, 0, "LT"), n.b.op("add", index, extent), index)


@maps("Gather")
def gather(n: Node):
    x, axis = n.view(0), n.axis(0)
    value = n.value(1)
    if value.host is not None and value.host.size == 1:
        index = int(value.host.reshape(-1)[0])
        if not -x.shape[axis] <= index < x.shape[axis]:
            n.fail(f"the index {index} is outside the extent {x.shape[axis]}")
        part = x.slice(axis, index % x.shape[axis], 1)
        return n.b.reshape(part, x.shape[:axis] + value.shape + x.shape[axis + 1:]) if value.shape else part.squeeze([axis])
    index = wrapped(n, 1, x.shape[axis])
    flat = n.b.reshape(index, (index.size,))
    if axis == 0 and x.rank == 2 and x.dtype in dtypes.FLOATS and x.is_contiguous:
        return n.b.op("embedding", x, index, dtype=x.dtype, shape=index.shape + x.shape[1:])
    return n.b.reshape(n.b.gather(x, flat, axis), x.shape[:axis] + index.shape + x.shape[axis + 1:])


@maps("GatherElements")
def gather_elements(n: Node):
    x, axis = n.view(0), n.axis(0)
    index = wrapped(n, 1, x.shape[axis])
    for other in range(x.rank):
        if other != axis:
            x = x.slice(other, 0, index.shape[other])
    return n.b.op("gather", x, index, dtype=x.dtype, shape=index.shape, axis=axis)


def flat_index(n: Node, place: int, shape) -> View:
    """Returns the row-major positions in `shape` that the indices select. The last dimension of the index
    tensor contains one index for each dimension."""
    b, index = n.b, n.view(place)
    out = None
    step = prod(shape)
    for d, extent in enumerate(shape):
        step //= max(extent, 1)
        part = index.select(-1, d)
        part = b.op("mul", b.op("select", b.compare(part, 0, "LT"), b.op("add", part, extent), part), step)
        out = part if out is None else b.op("add", out, part)
    return b.full(0, "i64", index.shape[:-1]) if out is None else out


@maps("GatherND")
def gather_nd(n: Node):
    x, b, batch = n.view(0), n.b, n.attr("batch_dims", 0)
    index_shape = n.shape(1)
    depth = index_shape[-1]
    outer, inner, rest = x.shape[:batch], x.shape[batch:batch + depth], x.shape[batch + depth:]
    rows = index_shape[batch:-1]
    index = b.reshape(flat_index(n, 1, inner), (prod(outer), prod(rows), 1))
    flat = b.reshape(x, (prod(outer), prod(inner), prod(rest)))
    shape = (prod(outer), prod(rows), prod(rest))
    out = b.op("gather", flat, index.broadcast_to(shape), dtype=x.dtype, shape=shape, axis=1)
    return b.reshape(out, outer + rows + rest)


MODES = {"none": bp.constants.BP_SCATTER_SET, "add": bp.constants.BP_SCATTER_ADD, "max": bp.constants.BP_SCATTER_MAX, "min": bp.constants.BP_SCATTER_MIN}


def scattered(n: Node, target: View, index: View, source: View, axis: int, mode: str) -> None:
    """Writes the elements of `source` to the elements of `target` that `index` selects along `axis`."""
    if mode not in MODES:
        n.fail(f"the reduction {mode!r} is not one of {', '.join(MODES)}")
    n.b.call("scatter", [index, source], [target], axis=axis, mode=MODES[mode])


@maps("ScatterElements", "Scatter")
def scatter_elements(n: Node):
    axis = n.axis(0)
    out = n.b.copy(n.view(0))
    index = wrapped(n, 1, out.shape[axis])
    target = out
    for other in range(out.rank):
        if other != axis:
            target = target.slice(other, 0, index.shape[other])
    scattered(n, target, index, n.view(2), axis, n.attr("reduction", "none"))
    return out


@maps("ScatterND")
def scatter_nd(n: Node):
    b = n.b
    out = b.copy(n.view(0))
    depth, rows = n.shape(1)[-1], n.shape(1)[:-1]
    inner, rest = out.shape[:depth], out.shape[depth:]
    shape = (prod(rows), prod(rest))
    index = b.reshape(flat_index(n, 1, inner), (prod(rows), 1)).broadcast_to(shape)
    scattered(n, b.reshape(out, (prod(inner), prod(rest))), index, b.reshape(n.view(2), shape), 0, n.attr("reduction", "none"))
    return out


@maps("OneHot")
def one_hot(n: Node):
    b, index = n.b, n.view(0)
    depth, values = int(n.host(1).reshape(-1)[0]), b.dense(n.view(2))
    axis = n.axis(-1, len(index.shape) + 1)
    index = b.cast(index, "i64")
    index = b.op("select", b.compare(index, 0, "LT"), b.op("add", index, depth), index).unsqueeze(axis)
    shape = index.shape[:axis] + (depth,) + index.shape[axis + 1:]
    same = b.compare(b.iota("i64", shape, axis), index, "EQ")
    return b.op("select", same, values.slice(0, 1, 1), values.slice(0, 0, 1))


@maps("TensorScatter")
def tensor_scatter(n: Node):
    b, past, update = n.b, n.view(0), n.view(1)
    axis = n.axis(-2)
    extent, length = past.shape[axis], update.shape[axis]
    starts = n.ints(2) if n.has(2) else [0] * past.shape[0]
    out = b.copy(past)
    for row, start in enumerate(starts):
        places = np.arange(start, start + length)
        places = places % extent if n.attr("mode", "linear") == "circular" else places
        if length and (places.min() < 0 or places.max() >= extent):
            n.fail(f"the update of {length} elements at position {start} exceeds the extent {extent}")
        source = update.slice(0, row, 1)
        shape = [1] * past.rank
        shape[axis] = length
        index = b.constant(places.reshape(shape), "i64").broadcast_to(source.shape)
        scattered(n, out.slice(0, row, 1), index, source, axis, "none")
    return out

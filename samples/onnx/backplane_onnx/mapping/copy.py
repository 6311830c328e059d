# SPDX-License-Identifier: Apache-2.0
"""Shapes, and operators that move elements."""
from math import prod

import numpy as np

from .. import dtypes
from ..node import Node
from ..registry import maps
from ..views import View, broadcast_shape


@maps("Identity")
def identity(n: Node):
    return n.inputs[0]


@maps("Constant")
def constant(n: Node):
    for name, kind in (("value", None), ("value_int", np.int64), ("value_ints", np.int64), ("value_float", np.float32), ("value_floats", np.float32)):
        if name in n.attributes:
            found = n.attr(name)
            return found if kind is None else np.asarray(found, kind)
    n.fail("the constant is a string or a sparse tensor, which Backplane lacks")


@maps("Shape")
def shape(n: Node):
    own = n.shape(0)
    return np.asarray(own[slice(n.attr("start", 0), n.attr("end"))], np.int64)


@maps("Size")
def size(n: Node):
    return np.asarray(prod(n.shape(0)), np.int64)


@maps("ConstantOfShape")
def constant_of_shape(n: Node):
    value = n.attr("value", np.zeros(1, np.float32))
    name = dtypes.of_numpy(value.dtype)
    if name is None:
        n.fail(f"Backplane has no dtype for {value.dtype}")
    return n.b.full(value.reshape(-1)[0].item(), name, n.ints(0))


@maps("EyeLike")
def eye_like(n: Node):
    rows, columns = n.shape(0)
    target = dtypes.of_onnx(n.attr("dtype", n.value(0).kind))
    if target is None:
        n.fail("Backplane has no dtype for the result")
    place = n.b.iota("i32", (rows, columns), 1)
    return n.b.cast(n.b.compare(place, n.b.iota("i32", (rows, columns), 0, n.attr("k", 0)), "EQ"), target)


@maps("Range")
def arange(n: Node):
    start, limit, delta = (n.host(place).reshape(-1)[0] for place in range(3))
    if delta == 0:
        n.fail("delta is 0")
    count = max(int(np.ceil((limit - start) / delta)), 0)
    return n.b.iota(n.dtype(0), (count,), 0, start.item(), delta.item())


@maps("Reshape")
def reshape(n: Node):
    own, wanted = n.shape(0), n.parameter("shape", 1)
    if not n.attr("allowzero", 0):
        wanted = [own[place] if extent == 0 else extent for place, extent in enumerate(wanted)]
    if wanted.count(-1) == 1:
        rest = -prod(wanted)
        wanted = [prod(own) // rest if extent == -1 and rest else extent for extent in wanted]
        wanted = [0 if extent == -1 else extent for extent in wanted]
    if any(extent < 0 for extent in wanted):
        n.fail(f"the shape {wanted} has a negative extent")
    return n.b.reshape(n.view(0), wanted)


@maps("Flatten")
def flatten(n: Node):
    own, axis = n.shape(0), n.attr("axis", 1)
    axis = axis + len(own) if axis < 0 else axis
    return n.b.reshape(n.view(0), (prod(own[:axis]), prod(own[axis:])))


@maps("Squeeze")
def squeeze(n: Node):
    own = n.shape(0)
    axes = n.parameter("axes", 1)
    axes = [axis % len(own) for axis in axes] if axes is not None else [d for d, extent in enumerate(own) if extent == 1]
    if any(own[axis] != 1 for axis in axes):
        n.fail(f"the axes {axes} do not all have extent 1")
    return n.view(0).squeeze(axes)


@maps("Unsqueeze")
def unsqueeze(n: Node):
    axes = n.parameter("axes", 1)
    x = n.view(0)
    rank = x.rank + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis)
    if x.rank > 8:
        n.fail(f"the result has rank {x.rank}, and a device accepts rank 8 at most")
    return x


@maps("Transpose")
def transpose(n: Node):
    x = n.view(0)
    return x.permute(n.attr("perm", list(range(x.rank))[::-1]))


@maps("Expand")
def expand(n: Node):
    target = broadcast_shape([n.shape(0), n.ints(1)])
    if target is None:
        n.fail(f"the shape {n.shape(0)} cannot be broadcast to {n.ints(1)}")
    return checked_broadcast(n, n.view(0), target)


def checked_broadcast(n: Node, x: View, target) -> View:
    if prod(target) * dtypes.BYTES[x.dtype] > 1 << 40 or len(target) > 8:
        n.fail(f"the shape {tuple(target)} is too large")
    return x.broadcast_to(target)


@maps("Tile")
def tile(n: Node):
    x, repeats = n.view(0), n.ints(1)
    out = n.b.new(x.dtype, [extent * count for extent, count in zip(x.shape, repeats)])
    if prod(repeats) > 4096:
        n.fail(f"the repeats {repeats} copy the tensor {prod(repeats)} times")
    for place in np.ndindex(*repeats):
        part = out
        for axis, index in enumerate(place):
            part = part.slice(axis, index * x.shape[axis], x.shape[axis])
        if x.size:
            n.b.copy(x, part)
    return out


@maps("Concat")
def concat(n: Node):
    parts = n.views()
    if len(parts) == 1:
        return n.b.copy(parts[0])
    n.axis(0)
    return n.b.concat(parts, n.attr("axis", 1))


@maps("Split")
def split(n: Node):
    axis = n.axis(0)
    extent, count = n.shape(0)[axis], len(n.proto.output)
    sizes = n.parameter("split", 1)
    if sizes is None:
        part = -(-extent // n.attr("num_outputs", count))
        sizes = [min(part, extent - part * place) for place in range(count)]
    return split_at(n, n.view(0), axis, sizes)


def split_at(n: Node, x: View, axis: int, sizes):
    if sum(sizes) != x.shape[axis] or min(sizes, default=0) < 0:
        n.fail(f"the parts {sizes} do not add up to {x.shape[axis]}")
    parts, place = [], 0
    for each in sizes:
        parts.append(x.slice(axis, place, each))
        place += each
    return parts


@maps("Slice")
def slice_(n: Node):
    x = n.view(0)
    if n.opset < 10:
        starts, ends = n.attr("starts"), n.attr("ends")
        axes, steps = n.attr("axes"), None
    else:
        starts, ends = n.ints(1), n.ints(2)
        axes, steps = n.ints(3) if n.has(3) else None, n.ints(4) if n.has(4) else None
    for place, axis in enumerate(axes if axes is not None else range(len(starts))):
        step = steps[place] if steps else 1
        if step == 0:
            n.fail("a step is 0")
        start, stop, step = slice(starts[place], ends[place], step).indices(x.shape[axis])
        x = x.slice(axis, start, len(range(start, stop, step)), step)
    return x


@maps("Pad")
def pad(n: Node):
    x, mode = n.view(0), n.attr("mode", "constant")
    pads = n.attr("pads") if n.opset < 11 else n.ints(1)
    axes = [axis % x.rank for axis in n.ints(3)] if n.has(3) else list(range(x.rank))
    before, after = [0] * x.rank, [0] * x.rank
    for place, axis in enumerate(axes):
        before[axis], after[axis] = pads[place], pads[place + len(axes)]
    if mode == "constant":
        value = n.attr("value", 0.0) if n.opset < 11 else n.number(2) if n.has(2) else 0
        return n.b.copy(n.b.pad(x, before, after, value)) if not any(before + after) else n.b.pad(x, before, after, value)
    for axis in range(x.rank):
        if before[axis] or after[axis]:
            places = np.arange(-before[axis], x.shape[axis] + after[axis])
            x = n.b.gather(x, n.b.constant(mirrored(places, x.shape[axis], mode), "i64"), axis)
    return x


def mirrored(places: np.ndarray, extent: int, mode: str) -> np.ndarray:
    """Returns, for each place (a position that may be outside the input), the position of the input element
    that padding repeats there."""
    if mode == "edge":
        return np.clip(places, 0, extent - 1)
    if mode == "wrap":
        return places % extent
    period = max(2 * (extent - 1), 1)
    return np.minimum(places % period, period - places % period) if extent > 1 else np.zeros_like(places)


@maps("DepthToSpace", "SpaceToDepth")
def depth_to_space(n: Node):
    x, block = n.view(0), n.attr("blocksize")
    batch, channels, height, width = x.shape
    if n.proto.op_type == "SpaceToDepth":
        parts = n.b.reshape(x, (batch, channels, height // block, block, width // block, block))
        parts = parts.permute((0, 3, 5, 1, 2, 4) if n.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4))
        return n.b.reshape(parts, (batch, channels * block * block, height // block, width // block))
    inner = channels // (block * block)
    if n.attr("mode", "DCR") == "DCR":
        parts = n.b.reshape(x, (batch, block, block, inner, height, width)).permute((0, 3, 4, 1, 5, 2))
    else:
        parts = n.b.reshape(x, (batch, inner, block, block, height, width)).permute((0, 1, 4, 2, 5, 3))
    return n.b.reshape(parts, (batch, inner, height * block, width * block))


@maps("Trilu")
def trilu(n: Node):
    x = n.view(0)
    k = int(n.host(1).reshape(-1)[0]) if n.has(1) else 0
    k = max(min(k, 2**30), -2**30)
    plane = x.shape[-2:]
    difference = n.b.op("sub", n.b.iota("i32", plane, 1), n.b.iota("i32", plane, 0))
    keep = n.b.compare(difference, k, "GE" if n.attr("upper", 1) else "LE")
    return n.b.op("select", keep, x, 0)


@maps("ReverseSequence")
def reverse_sequence(n: Node):
    x, lengths = n.view(0), n.ints(1)
    batch, time = n.attr("batch_axis", 1), n.attr("time_axis", 0)
    out = n.b.copy(x)
    for place, length in enumerate(lengths):
        source, target = x.slice(batch, place, 1).slice(time, 0, length), out.slice(batch, place, 1).slice(time, 0, length)
        if length > 1:
            n.b.copy(source.flip(time), target)
    return out


@maps("Dropout")
def dropout(n: Node):
    training = bool(n.host(2).reshape(-1)[0]) if n.has(2) else False
    ratio = float(n.host(1).reshape(-1)[0]) if n.has(1) else n.attr("ratio", 0.5)
    if training and ratio:
        n.fail("training with a ratio above 0 draws random numbers of NumPy")
    x = n.view(0)
    return [n.b.copy(x), n.b.full(1, "bool" if n.opset >= 10 else x.dtype, x.shape) if n.wants(1) else None]


@maps("Compress")
def compress(n: Node):
    x = n.view(0)
    kept = np.flatnonzero(n.host(1))
    axis = n.axis(0) if "axis" in n.attributes else 0
    x = x if "axis" in n.attributes else n.b.reshape(x, (x.size,))
    return n.b.gather(x, n.b.constant(kept[kept < x.shape[axis]], "i64"), axis)

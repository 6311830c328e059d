# SPDX-License-Identifier: Apache-2.0
"""Builds the list of calls of a program. Mappings append calls to the builder. During this phase, the device
executes and allocates nothing."""
from math import prod
from typing import Any, Optional, Sequence

import backplane as bp

from . import dtypes
from .errors import ModelError
from .views import Storage, View, broadcast_shape

MAX_RANK = 8
MAX_BYTES = 1 << 40  # maximum size of a tensor; the package refuses a model with a larger one
MAX_STEPS = 200_000


class Immediate:
    """A number that is passed as an operand, and needs no memory on the device."""

    __slots__ = ("value", "dtype")

    def __init__(self, value: Any, dtype: str) -> None:
        self.value, self.dtype = value, dtype


class Step:
    """One call of a Backplane operator. `node` is the description of the ONNX node to which the call belongs."""

    __slots__ = ("op", "inputs", "outputs", "parameters", "node")

    def __init__(self, op: str, inputs: list, outputs: list, parameters: dict, node: str) -> None:
        self.op, self.inputs, self.outputs, self.parameters, self.node = op, inputs, outputs, parameters, node


class Refusal(Exception):
    """Raised if a mapping cannot express a node. The tracer adds the name of the node."""


class Builder:
    def __init__(self) -> None:
        self.steps: "list[Step]" = []
        self.node = ""

    # ---- Memory ----

    def new(self, dtype: str, shape: "Sequence[int]") -> View:
        """Returns a contiguous view of new memory. Raises ModelError if the size exceeds MAX_BYTES."""
        if min(shape, default=0) < 0:
            raise Refusal(f"the shape {tuple(shape)} has a negative extent")
        size = prod(shape) * dtypes.BYTES[dtype]
        if size > MAX_BYTES:
            raise ModelError(f"{self.node}: a tensor of shape {tuple(shape)} and dtype {dtype} has {size} bytes; the limit is {MAX_BYTES}: reduce "
                             "the shape in the model or in the inputs")
        if len(shape) > MAX_RANK:
            raise Refusal(f"a tensor has rank {len(shape)}, and a device accepts rank {MAX_RANK} at most")
        return View(Storage(size, "computed", self.node), dtype, shape)

    def constant(self, array, dtype: "Optional[str]" = None) -> View:
        """Returns a view of a constant. If `dtype` is None, `array` is a NumPy array whose dtype Backplane has.
        Otherwise `array` may be nested sequences."""
        import numpy as np
        array = dtypes.carried_array(np.asarray(array)) if dtype is None else np.asarray(array, dtypes.to_numpy(dtype))
        name = dtypes.of_numpy(array.dtype)
        if name is None:
            raise Refusal(f"Backplane has no dtype for {array.dtype}")
        if array.ndim > MAX_RANK:
            raise Refusal(f"a tensor has rank {array.ndim}, and a device accepts rank {MAX_RANK} at most")
        return View(Storage(array.nbytes, "constant", self.node, array), name, array.shape)

    # ---- Calls ----

    def call(self, op: str, inputs: list, outputs: list, **parameters: Any) -> None:
        """Appends a call whose outputs the caller passes."""
        if len(self.steps) >= MAX_STEPS:
            raise ModelError(f"{self.node}: the program has {MAX_STEPS} calls, which is the limit; simplify the model")
        self.steps.append(Step(op, inputs, outputs, parameters, self.node))

    def op(self, op: str, *inputs: "View | float | None", dtype: "Optional[str]" = None, shape: "Optional[Sequence[int]]" = None,
           out: "Optional[View]" = None, **parameters: Any) -> View:
        """Appends a call with one output, and returns this output.

        The inputs of elementwise operators are broadcast, and a number becomes an immediate. For other
        operators, `shape` is the shape of the output. The output's dtype is `dtype`. Without `dtype`, it is the
        dtype of the first view, or bool for compare."""
        operands = list(inputs)
        views = [each for each in operands if isinstance(each, View)]
        rule = bp.operator(op).shape_rule
        if rule == "elementwise":
            first = 1 if op == "select" else 0
            own = next((each.dtype for each in operands[first:] if isinstance(each, View)), dtype)
            dtype = dtype or ("bool" if op == "compare" else own)
            if shape is None:
                shape = out.shape if out is not None else broadcast_shape([each.shape for each in views])
            if shape is None:
                raise Refusal(f"the shapes {', '.join(str(each.shape) for each in views)} cannot be broadcast together")
            operands = [each.broadcast_to(shape) if isinstance(each, View) else Immediate(each, own if place >= first else "bool")
                        for place, each in enumerate(operands)]
        if out is None:
            assert shape is not None, op
            out = self.new(dtype or views[0].dtype, shape)
        self.call(op, operands, [out], **parameters)
        return out

    # ---- Frequent calls ----

    def full(self, value: Any, dtype: str, shape: "Sequence[int]") -> View:
        return self.op("fill", dtype=dtype, shape=shape, value=value)

    def iota(self, dtype: str, shape: "Sequence[int]", axis: int = 0, start: Any = 0, step: Any = 1) -> View:
        if not shape:
            return self.full(start, dtype, shape)
        return self.op("iota", dtype=dtype, shape=shape, axis=axis, start=start, step=step)

    def cast(self, x: View, dtype: str) -> View:
        return x if x.dtype == dtype else self.op("cast", x, dtype=dtype)

    def copy(self, x: View, out: "Optional[View]" = None) -> View:
        return self.op("copy", x, out=out)

    def dense(self, x: View) -> View:
        return x if x.is_contiguous else self.copy(x)

    def reshape(self, x: View, shape: "Sequence[int]") -> View:
        """Returns the elements of x in row-major order with another shape. Copies x if it is not contiguous."""
        if prod(shape) != x.size:
            raise Refusal(f"a tensor of shape {x.shape} cannot have the shape {tuple(shape)}, which has another number of elements")
        if len(shape) > MAX_RANK:
            raise Refusal(f"a tensor has rank {len(shape)}, and a device accepts rank {MAX_RANK} at most")
        if tuple(shape) == x.shape:
            return x
        x = self.dense(x)
        return View(x.storage, x.dtype, shape, None, x.offset)

    def wrap(self, x: View, kind: int) -> View:
        """Wraps the integers of x to the range of the ONNX element type `kind`."""
        low, high = dtypes.limits_of(kind)
        if low == 0:
            return self.op("and", x, high)
        bits = dtypes.BYTES[x.dtype] * 8 - high.bit_length() - 1
        return self.op("shr", self.op("shl", x, bits), bits)

    def unary(self, x: View, function: str) -> View:
        return self.op("unary", x, function=getattr(bp.constants, "BP_UNARY_" + function))

    def compare(self, a, b, predicate: str) -> View:
        return self.op("compare", a, b, predicate=getattr(bp.constants, "BP_COMPARE_" + predicate))

    def reduce(self, op: str, x: View, axes: "Sequence[int]", keep: bool = True, dtype: "Optional[str]" = None) -> View:
        axes = sorted({axis % x.rank for axis in axes}) if x.rank else []
        out = self.op(op, x, dtype=dtype or x.dtype, shape=[1 if d in axes else extent for d, extent in enumerate(x.shape)], axes=axes)
        return out if keep else out.squeeze(axes)

    def mean(self, x: View, axes: "Sequence[int]", keep: bool = True) -> View:
        total = self.reduce("reduce_sum", x, axes, keep)
        count = prod(x.shape[axis] for axis in {axis % x.rank for axis in axes}) if axes else 1
        return self.op("div", total, count)

    def matmul(self, a: View, b: View, dtype: "Optional[str]" = None) -> View:
        """Returns the matrix product over the last two dimensions. All other dimensions are broadcast."""
        batch = broadcast_shape([a.shape[:-2], b.shape[:-2]])
        if batch is None or a.shape[-1] != b.shape[-2]:
            raise Refusal(f"the shapes {a.shape} and {b.shape} cannot be multiplied")
        rows = a.shape[-2:]
        b = self.dense(b) if b.storage.role == "constant" else b  # makes a constant contiguous, once
        if a.rank > 2 and b.rank == 2 and a.is_contiguous:  # computes one product instead of a batch of products
            flat = self.op("matmul", self.reshape(a, (prod(a.shape[:-1]), a.shape[-1])), b, dtype=dtype or a.dtype,
                           shape=(prod(a.shape[:-1]), b.shape[-1]), precision=0)
            return self.reshape(flat, a.shape[:-1] + b.shape[-1:])
        return self.op("matmul", a.broadcast_to(batch + rows), b.broadcast_to(batch + b.shape[-2:]), dtype=dtype or a.dtype,
                       shape=(*batch, rows[0], b.shape[-1]), precision=0)

    def gather(self, x: View, index: View, axis: int) -> View:
        """Returns x[.., index[i], ..] along an axis. `index` has rank 1."""
        shape = x.shape[:axis] + index.shape + x.shape[axis + 1:]
        strides = [0] * x.rank
        strides[axis] = index.strides[0]
        return self.op("gather", x, index._with(shape, strides), dtype=x.dtype, shape=shape, axis=axis)

    def concat(self, parts: "Sequence[View]", axis: int) -> View:
        shape = list(parts[0].shape)
        axis %= len(shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        out, place = self.new(parts[0].dtype, shape), 0
        for part in parts:
            if part.shape[:axis] + part.shape[axis + 1:] != out.shape[:axis] + out.shape[axis + 1:]:
                raise Refusal(f"parts of shapes {parts[0].shape} and {part.shape} cannot be joined along axis {axis}")
            if part.size:
                self.copy(part, out.slice(axis, place, part.shape[axis]))
            place += part.shape[axis]
        return out

    def pad(self, x: View, before: "Sequence[int]", after: "Sequence[int]", value: Any) -> View:
        """Returns x with constant elements added before and after it along each axis. Negative numbers remove
        elements."""
        for d in range(x.rank):
            cut = max(-before[d], 0), max(-after[d], 0)
            x = x.slice(d, cut[0], max(x.shape[d] - sum(cut), 0)) if any(cut) else x
        before, after = [max(n, 0) for n in before], [max(n, 0) for n in after]
        if not any(before) and not any(after):
            return x
        out = self.new(x.dtype, [low + extent + high for low, extent, high in zip(before, x.shape, after)])
        if isinstance(value, View):
            self.copy(value.broadcast_to(out.shape), out)
        else:
            self.call("fill", [], [out], value=value)
        inner = out
        for d in range(x.rank):
            inner = inner.slice(d, before[d], x.shape[d])
        if x.size:
            self.copy(x, inner)
        return out

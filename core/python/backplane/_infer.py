# SPDX-License-Identifier: Apache-2.0
"""Infers dtypes and shapes of outputs from the rules of the operator table."""
import re
from typing import Optional, Sequence

from . import dtypes, errors
from ._operator import Operator
from .tensor import Tensor



def broadcast(op: Operator, shapes: "list[tuple[int, ...]]") -> "tuple[int, ...]":
    """Returns the shape to which all shapes are broadcast. Raises InvalidArgument if there is none."""
    if shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    result = []
    for extents in zip(*padded):
        wide = {extent for extent in extents if extent != 1}
        if len(wide) > 1:
            raise errors.InvalidArgument(f"{op.name}: the shapes {', '.join(map(str, shapes))} cannot be broadcast together; "
                                         "extents must be equal or 1")
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def needs_out(op: Operator, reason: str) -> errors.InvalidArgument:
    return errors.InvalidArgument(f"{op.name}: {reason}; pass out=, for example a tensor of device.empty(shape, dtype)")


def _axis(op, values, shape):
    axis = values["axis"]
    if axis >= len(shape):
        raise errors.InvalidArgument(f"{op.name}: axis is {axis}, and the input has shape {shape}; pass an axis below {len(shape)}")
    return axis


def _shape(op: Operator, inputs, values):
    """Returns the shape of the outputs of an operator without a signature. All outputs of such an operator have one
    shape."""
    rule, first = op.shape_rule, inputs[0].shape if inputs else ()
    if rule == "elementwise":
        return broadcast(op, [each.shape for each in inputs])
    if rule == "gather":
        return inputs[1].shape
    if rule == "reduce":
        return tuple(1 if values["axes"] >> d & 1 else extent for d, extent in enumerate(first))
    if rule == "arg":
        axis = _axis(op, values, first)
        return tuple(1 if d == axis else extent for d, extent in enumerate(first))
    if rule == "matmul":
        if min(len(first), len(inputs[1].shape)) < 2:
            raise errors.InvalidArgument(f"{op.name}: the shapes are {first} and {inputs[1].shape}; both need rank 2 or more")
        return (*first[:-1], inputs[1].shape[-1])
    if rule == "sort":
        return first
    raise needs_out(op, "the inputs do not determine the shape of the output" if inputs else "no input determines shape and dtype of the output")


def _dtype(op: Operator, inputs, dtype):
    """Returns the dtype of the first output. `dtype` is the caller's choice, if the rule permits a choice."""
    rule, first = op.dtype_rule, inputs[0].dtype
    if dtype is not None:
        return dtypes.checked(dtype, op.name)
    if rule == "cast" or rule == "sum" and first == "bool":
        raise errors.InvalidArgument(f"{op.name}: the rule of the operator permits several dtypes of the output for {first}; pass dtype= or out=")
    if rule == "compare":
        return "bool"
    if rule == "select":
        return inputs[1].dtype
    if rule == "index":
        return "i32"
    if rule == "matmul":
        if dtypes.KIND[first] != "FLOAT":
            return "i32"
        return first if first == inputs[1].dtype else "f32"
    return first


class _Binding:
    """The dtypes and extents that the inputs of a composite determine."""

    def __init__(self, op: Operator, inputs: "Sequence[Optional[Tensor]]") -> None:
        assert op.signature is not None
        self.dtypes: "dict[str, str]" = {}
        self.dims: "dict[str, tuple[int, ...]]" = {}
        for pattern, each in zip(op.signature.inputs, inputs):
            if each is not None:
                self._bind(pattern, each)
        if "t" not in self.dtypes and dtypes.KIND.get(self.dtypes.get("a", "")) == "FLOAT":
            self.dtypes["t"] = self.dtypes["a"]  # the letter `a` of a signature means T or an integer dtype
        if op.name == "gemm":  # without operand c, the output has the dtype of operand a
            self.dtypes.setdefault("p", self.dtypes["t"])

    def _bind(self, pattern, tensor):
        self.dtypes.setdefault(pattern[0], tensor.dtype)
        if pattern.endswith(("#", "?")):
            return
        dims, shape = pattern[1:], tensor.shape
        extra = len(shape) - sum(letter.isalpha() for letter in dims)
        place = 0
        for letter in dims:
            count = 1 if letter.isalpha() else max(extra, 0)
            self.dims.setdefault(letter, shape[place:place + count])
            place += count

    def output(self, op, place):
        """Returns dtype and shape of an output. Raises InvalidArgument if the inputs do not determine both."""
        pattern = op.signature.outputs[place]
        letters = re.sub(r"[#?]$", "", pattern[1:])
        known = not pattern.endswith("#") and all(letter in self.dims for letter in letters)
        if not known or pattern[0] not in self.dtypes:
            raise needs_out(op, f"the inputs do not determine output {place}, whose pattern is {pattern!r}")
        return self.dtypes[pattern[0]], tuple(extent for letter in letters for extent in self.dims[letter])


def outputs(op: Operator, inputs: "Sequence[Optional[Tensor]]", values: dict, dtype: Optional[str]) -> "list[tuple[str, tuple[int, ...]]]":
    """Returns dtype and shape of each output that is not optional."""
    if op.signature is not None:
        binding = _Binding(op, inputs)
        return [binding.output(op, place) for place in range(op.outputs[0])]
    shape = _shape(op, inputs, values)
    return [(_dtype(op, inputs, dtype), shape)] * op.outputs[0]

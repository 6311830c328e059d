# SPDX-License-Identifier: Apache-2.0
"""Moves the work of a call into the call whose result it reads. A batch norm with constant parameters, or a
product with a number, becomes part of a convolution. A ReLU or a gelu becomes the activation of a convolution
or a linear layer."""
from typing import Iterable, Optional

import backplane as bp

from .. import memory
from ..builder import Builder, Immediate, Step
from ..views import Storage, View

FUSION = "constants of fused calls"
ACTIVATIONS = {bp.constants.BP_GELU_ERF: bp.constants.BP_ACTIVATION_GELU_ERF, bp.constants.BP_GELU_TANH: bp.constants.BP_ACTIVATION_GELU_TANH}


def fuse(builder: Builder, outputs: "Iterable[Storage]") -> None:
    """Changes the calls of the builder. `outputs` are the storages of the program's outputs."""
    users = _users(builder.steps, outputs)
    memory.divide(builder.steps)  # sets storage.fixed if a storage depends on constants only
    result: "list[Step]" = []
    place = {}  # {storage: the last call that wrote it, if this call can include more work}
    for step in builder.steps:
        before = _producer(step, place, users)
        if before is not None and step.op in ("batch_norm", "mul"):
            result += (_normalized if step.op == "batch_norm" else _multiplied)(builder, before, step, result)
        elif before is not None and step.op in ("max", "gelu"):
            before.parameters["activation"] = bp.constants.BP_ACTIVATION_RELU if step.op == "max" else ACTIVATIONS[step.parameters["approximation"]]
            out, shape = step.outputs[0], before.outputs[0].shape
            before.outputs = [out if out.shape == shape else View(out.storage, out.dtype, shape, None, out.offset)]
        else:
            result.append(step)
            if step.op in ("conv", "linear") and step.parameters["activation"] == 0:
                place[step.outputs[0].storage] = step
            continue
        place[before.outputs[0].storage] = before
        if before.parameters["activation"]:
            del place[before.outputs[0].storage]
    builder.steps[:] = result


def _users(steps: "list[Step]", outputs: "Iterable[Storage]") -> "dict[Storage, int]":
    """Returns {storage: number of operands that use it}. An output of the program counts as one more operand."""
    users: "dict[Storage, int]" = {}
    for step in steps:
        for view in step.inputs + step.outputs:
            if isinstance(view, View):
                users[view.storage] = users.get(view.storage, 0) + 1
    for storage in outputs:
        users[storage] = users.get(storage, 0) + 1
    return users


def _producer(step: Step, place: "dict[Storage, Step]", users: "dict[Storage, int]") -> "Optional[Step]":
    """Returns the call that computes the first input of `step`. Returns None if another call reads this input,
    or if the two calls cannot become one."""
    first = step.inputs[0] if step.inputs else None
    if not isinstance(first, View) or first.storage not in place or users[first.storage] != 2:
        return None
    before = place[first.storage]
    written = before.outputs[0]
    whole = step.op in ("max", "gelu") and first.size == written.size and all(each.is_contiguous for each in (first, written, step.outputs[0]))
    if (first.shape, first.strides, first.offset) != (written.shape, written.strides, written.offset) and not whole:
        return None
    if step.op == "max":
        zero = step.inputs[1]
        return before if isinstance(zero, Immediate) and zero.value == 0 else None
    if step.op == "mul":
        return before if before.op == "conv" and isinstance(step.inputs[1], Immediate) else None
    if step.op == "gelu":
        return before if before.op == "linear" else None
    if step.op == "batch_norm" and before.op == "conv" and not step.parameters["training"] and len(step.outputs) == 1:
        return before
    return None


def _is_constant(view: "Optional[View]") -> bool:
    return view is None or view.storage.fixed


def _normalized(builder: Builder, conv: Step, norm: Step, result: "list[Step]") -> "list[Step]":
    """Changes the weight and the bias of a convolution so that it also computes the batch norm `norm` of its
    result. If one of these operands, or a parameter of the batch norm, is not constant, changes nothing.
    Returns the calls to append."""
    weight, bias = conv.inputs[1], conv.inputs[2] if len(conv.inputs) > 2 else None
    gamma, beta, mean, variance = norm.inputs[1:5]
    shape = (weight.shape[0],)
    if any(each is not None and each.shape != shape for each in (bias, gamma, beta, mean, variance)):
        return [norm]  # keeps the call, because the device refuses such operands with a message
    if not all(_is_constant(each) for each in (weight, bias, gamma, beta, mean, variance)) or weight.dtype != gamma.dtype:
        return [norm]
    first = _begin(builder)
    factor = builder.op("mul", gamma, builder.op("rsqrt", builder.op("add", variance, norm.parameters["epsilon"])))
    column = builder.reshape(factor, (weight.shape[0],) + (1,) * (weight.rank - 1))
    shift = builder.op("sub", builder.op("mul", bias, factor), builder.op("mul", mean, factor)) if bias is not None else \
        builder.op("neg", builder.op("mul", mean, factor))
    conv.inputs = [conv.inputs[0], builder.op("mul", weight, column), builder.op("add", shift, beta)]
    return _replaced(builder, first, conv, norm, result)


def _multiplied(builder: Builder, conv: Step, product: Step, result: "list[Step]") -> "list[Step]":
    """Changes the weight and the bias of a convolution so that it also computes the product with a number, if
    both are constants. Returns the calls to append."""
    if not all(_is_constant(each) for each in conv.inputs[1:]):
        return [product]
    first, value = _begin(builder), product.inputs[1].value
    conv.inputs = conv.inputs[:1] + [None if each is None else builder.op("mul", each, value) for each in conv.inputs[1:]]
    return _replaced(builder, first, conv, product, result)


def _begin(builder: Builder) -> int:
    builder.node = FUSION
    return len(builder.steps)


def _replaced(builder: Builder, first: int, conv: Step, step: Step, result: "list[Step]") -> "list[Step]":
    """Inserts the new calls before the convolution. The convolution then computes the outputs of `step`."""
    conv.outputs = step.outputs
    new = builder.steps[first:]
    for each in new:
        for view in each.outputs:
            view.storage.fixed = True
    del builder.steps[first:]
    result[result.index(conv):result.index(conv)] = new
    return []

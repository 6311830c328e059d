# SPDX-License-Identifier: Apache-2.0
"""Replaces a product with a constant matrix, followed by the addition of a bias, by one call of `linear`."""
from typing import Any, Optional

from ..builder import Step
from ..views import View
from .uses import Uses


def replace(step: Step, uses: Uses) -> None:
    if step.op != "add" or not step.outputs[0].is_contiguous:
        return
    for product, bias in (step.inputs, step.inputs[::-1]):
        matmul, vector = uses.source(product, "matmul"), _vector(bias)
        if matmul is None or vector is None:
            continue
        a, b = matmul.inputs
        if a.rank != 2 or b.rank != 2 or not b.storage.fixed or len({a.dtype, b.dtype, vector.dtype, step.outputs[0].dtype}) != 1:
            continue
        uses.gone.add(matmul)
        out = step.outputs[0]
        step.op, step.inputs = "linear", [a, b.transpose(), vector]
        step.outputs = [View(out.storage, out.dtype, (a.shape[0], b.shape[1]), None, out.offset)]
        step.parameters = {"activation": 0, "precision": matmul.parameters["precision"]}
        return


def _vector(operand: Any) -> "Optional[View]":
    """Returns a vector if the operand repeats this vector along all dimensions except the last one. Otherwise
    returns None."""
    if not isinstance(operand, View) or operand.rank == 0 or any(stride and extent != 1 for stride, extent in zip(operand.strides[:-1], operand.shape)):
        return None
    return View(operand.storage, operand.dtype, operand.shape[-1:], operand.strides[-1:], operand.offset) if operand.strides[-1] == 1 else None

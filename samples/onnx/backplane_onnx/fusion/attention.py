# SPDX-License-Identifier: Apache-2.0
"""Replaces the calls that compute softmax(scale q k + mask) v by one call of `attention`. The results differ in
one case: if the mask of all keys of a query is -inf, `attention` gives 0, and the separate calls give NaN."""
import backplane as bp

from ..builder import Step
from ..views import View
from .uses import Uses, number, other


def replace(step: Step, uses: Uses) -> None:
    softmax = uses.source(step.inputs[0], "softmax") if step.op == "matmul" else None
    if softmax is None or step.inputs[1].rank != 4 or softmax.parameters["axis"] != 3:
        return
    value, steps, mask, scale = step.inputs[1], [softmax], None, 1.0
    scores = softmax.inputs[0]
    add = uses.source(scores, "add")
    if add is not None:
        scores = next((each for each in add.inputs if uses.source(each, "mul", "div", "matmul")), None)
        mask = other(add, scores)
        steps.append(add)
    scaled = uses.source(scores, "mul", "div")
    factor = next((each for each in scaled.inputs[scaled.op == "div":] if number(each)), None) if scaled else None
    if factor is not None:
        scale = 1 / number(factor) if scaled.op == "div" else number(factor)
        scores = other(scaled, factor)
        steps.append(scaled)
    product = uses.source(scores, "matmul")
    if product is None or mask is not None and not isinstance(mask, View):
        return
    query, key = product.inputs[0], product.inputs[1].transpose()
    views = [query, key, value, step.outputs[0]] + [mask] * (mask is not None)
    if any(each.rank != 4 or each.dtype != query.dtype for each in views):
        return
    uses.gone.update(steps + [product])
    step.op, step.inputs = "attention", [query, key, value, mask]
    step.parameters = {"causal": bp.constants.BP_CAUSAL_NONE, "scale": scale, "precision": product.parameters["precision"]}

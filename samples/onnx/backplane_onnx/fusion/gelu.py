# SPDX-License-Identifier: Apache-2.0
"""Replaces the calls with which exporters express a gelu by one call of `gelu`. The forms are x (1 + erf(x /
sqrt 2)) / 2 and x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2. The factors may have any order."""
from math import pi, sqrt
from typing import Any, Optional

import backplane as bp

from ..builder import Step
from .uses import Uses, near, number, other, same


def replace(step: Step, uses: Uses) -> None:
    product = _Product(step, uses) if step.op == "mul" else None
    if product is None or not near(product.number, 0.5) or len(product.views) != 2:
        return
    for x, total in (product.views, product.views[::-1]):
        found = _approximation(x, total, uses)
        if found is not None:
            approximation, steps = found
            uses.gone.update(product.steps + steps)
            step.op, step.inputs, step.parameters = "gelu", [x], {"approximation": approximation}
            return


class _Product:
    """A product of several operands. `number` is the product of all constant factors, and `views` are the other
    factors. `steps` are the calls of nested products and quotients, whose results no other call uses."""

    def __init__(self, step: Step, uses: Uses) -> None:
        self.number, self.views, self.steps, self._uses = 1.0, [], [], uses
        for operand in step.inputs:
            self._add(operand)

    def _add(self, operand: Any) -> None:
        value, inner = number(operand), self._uses.source(operand, "mul", "div")
        if value is not None:
            self.number *= value
        elif inner is None or inner.op == "div" and not number(inner.inputs[1]):
            self.views.append(operand)
        elif inner.op == "div":
            self.steps.append(inner)
            self.number /= number(inner.inputs[1])
            self._add(inner.inputs[0])
        else:
            self.steps.append(inner)
            for each in inner.inputs:
                self._add(each)


def _approximation(x: Any, total: Any, uses: Uses) -> "Optional[tuple[int, list[Step]]]":
    """If `total` is 1 + erf(..) or 1 + tanh(..) of x, returns the approximation and the calls that compute
    `total`. Otherwise returns None."""
    add = uses.source(total, "add")
    one = next((each for each in add.inputs if number(each) == 1), None) if add else None
    function = uses.source(other(add, one), "erf", "tanh") if add and one else None
    if function is None:
        return None
    argument = _argument(function.inputs[0], uses)
    if function.op == "erf":
        if len(argument.views) == 1 and same(argument.views[0], x) and near(argument.number, sqrt(0.5)):
            return bp.constants.BP_GELU_ERF, [add, function] + argument.steps
        return None
    if len(argument.views) != 1 or not near(argument.number, sqrt(2 / pi)):
        return None
    polynomial = uses.source(argument.views[0], "add")
    for term in polynomial.inputs if polynomial else ():
        cube = _argument(term, uses)
        if same(other(polynomial, term), x) and near(cube.number, 0.044715) and len(cube.views) == 3 and all(same(each, x) for each in cube.views):
            return bp.constants.BP_GELU_TANH, [add, function, polynomial] + argument.steps + cube.steps
    return None


def _argument(operand: Any, uses: Uses) -> _Product:
    return _Product(Step("mul", [operand], [], {}, ""), uses)

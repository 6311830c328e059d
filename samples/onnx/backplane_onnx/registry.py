# SPDX-License-Identifier: Apache-2.0
"""The table of mappings. Each module in the folder `mapping` adds its operators to the table."""
from typing import Callable

MAPPINGS: "dict[tuple[str, str], tuple[str, Callable]]" = {}  # {(domain, operator): (family, function)}


def maps(*names: str, domain: str = "") -> "Callable[[Callable], Callable]":
    """Registers a function as the mapping of ONNX operators. The function receives a Node, and returns the
    output or a list of outputs. If it returns NotImplemented, the function by which ONNX defines the operator
    is used instead."""
    def register(function: Callable) -> Callable:
        family = function.__module__.rsplit(".", 1)[-1]
        for name in names:
            if (domain, name) in MAPPINGS:
                raise ValueError(f"{name} has two mappings")
            MAPPINGS[domain, name] = (family, function)
        return function
    return register

# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of shapes on the host, with the reference evaluator of ONNX. This module computes only small
values whose inputs the host knows. The device computes all other constants, once before the first run."""
from math import prod
from typing import Any, Optional

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper
from onnx.reference import ReferenceEvaluator

from .builder import Refusal
from .node import MAX_HOST_ELEMENTS
from .values import Value

# The operators that this module computes.
OPERATORS = frozenset("""
Abs Add And Cast Ceil Clip Concat ConstantOfShape Div Equal Expand Flatten Floor Gather Greater GreaterOrEqual Identity
Less LessOrEqual Max Min Mod Mul Neg Not Or Pow Range ReduceMax ReduceMin ReduceProd ReduceSum Relu Reshape Round Sign
Slice Split Sqrt Squeeze Sub Tile Transpose Unsqueeze Where Xor""".split())


def origin_of(node: NodeProto, inputs: "list[Any]") -> "Optional[frozenset[str]]":
    """Returns the names of the graph inputs from which the host could compute the node's result. Returns None
    if the host cannot compute it."""
    if node.domain or node.op_type not in OPERATORS or any(attribute.HasField("g") for attribute in node.attribute):
        return None
    found: "frozenset[str]" = frozenset()
    for each in inputs:
        if each is None:
            continue
        if not isinstance(each, Value) or each.host is None and each.origin is None:
            return None
        found |= each.origin or frozenset()
    return found


def _elements(node, arrays):
    """Returns an upper bound of the number of elements of the result."""
    op = node.op_type
    if op == "ConstantOfShape":
        return prod(int(extent) for extent in arrays[0].reshape(-1))
    if op == "Expand":
        return max(prod(int(extent) for extent in arrays[1].reshape(-1)), 1) * arrays[0].size
    if op == "Tile":
        return arrays[0].size * prod(int(extent) for extent in arrays[1].reshape(-1))
    if op == "Range":
        return abs((float(arrays[1].item()) - float(arrays[0].item())) / (float(arrays[2].item()) or 1e-30))
    return prod(max(array.size, 1) for array in arrays if array is not None) if op not in ("Concat", "Gather", "Slice", "Reshape", "Cast") else \
        sum(array.size for array in arrays if array is not None) * 8


def evaluate(node: NodeProto, feeds: "dict[str, np.ndarray]", opset: int) -> "list[np.ndarray]":
    """Runs one node with the reference evaluator of ONNX."""
    inputs, outputs = [ValueInfoProto(name=name) for name in feeds], [ValueInfoProto(name=name) for name in node.output if name]
    model = helper.make_model(helper.make_graph([node], "node", inputs, outputs), opset_imports=[helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, feeds)


def fold(node: NodeProto, inputs: "list[Any]", opset: int) -> "Optional[list[np.ndarray]]":
    """Returns the results of a node of shape arithmetic. Returns None if the device must compute the node."""
    if origin_of(node, inputs) is None or any(each is not None and each.host is None for each in inputs):
        return None
    arrays = [None if each is None else each.host for each in inputs]
    if any(array is not None and array.size > MAX_HOST_ELEMENTS for array in arrays):
        return None
    if not 0 <= _elements(node, arrays) <= MAX_HOST_ELEMENTS * 4:
        return None
    feeds = {name: array for name, array in zip(node.input, arrays) if name}
    try:
        with np.errstate(all="ignore"):
            results = evaluate(node, feeds, opset)
    except Exception as failure:  # the evaluator raises exceptions of many types
        if "No implementation for operator" in str(failure):  # the opset is too old
            return None
        raise Refusal(f"the shape arithmetic fails: {type(failure).__name__}: {failure}") from None
    return [np.asarray(each) for each in results]

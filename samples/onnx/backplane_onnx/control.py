# SPDX-License-Identifier: Apache-2.0
"""Control flow. The host decides during the trace which branch runs and how often a loop runs, so it must know
the conditions. The resulting program is valid only for the values of these conditions."""
from typing import Any

import numpy as np

from .builder import Refusal
from .node import Node
from .values import Value

MAX_ITERATIONS = 10_000


def free_names(graph: Any) -> "set[str]":
    """Returns the names of tensors that a graph uses but does not define."""
    names: "set[str]" = set()
    pending = [graph]
    while pending:
        here = pending.pop()
        names.update(output.name for output in here.output)
        for node in here.node:
            names.update(name for name in node.input if name)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    pending.append(attribute.g)
                pending += attribute.graphs
    return names


def _body(node: Node, graph: Any, scope: dict, values: "list[Any]") -> "list[Any]":
    """Traces a nested graph. Its scope extends the scope of the node, and `values` are the values of its
    inputs."""
    tracer = node.tracer
    inner = dict(scope)
    inner.update(zip((each.name for each in graph.input), values))
    tracer.depth += 1
    try:
        return tracer.graph(graph, inner)
    finally:
        tracer.depth -= 1


def _truth(value: Any) -> bool:
    if not isinstance(value, Value) or value.host is None:
        raise Refusal("a condition depends on a value that the device computes")
    return bool(value.host.reshape(-1)[0])


def _if(node: Node, scope: dict, opsets: dict) -> "list[Any]":
    condition = bool(node.host(0).reshape(-1)[0])
    return _body(node, node.attributes["then_branch" if condition else "else_branch"].g, scope, [])


def _loop(node: Node, scope: dict, opsets: dict) -> "list[Any]":
    graph = node.attributes["body"].g
    trips = int(node.host(0).reshape(-1)[0]) if node.has(0) else None
    going = bool(node.host(1).reshape(-1)[0]) if node.has(1) else True
    carried = list(node.inputs[2:])
    kept: "list[list[Any]]" = [[] for _ in range(len(graph.output) - 1 - len(carried))]
    count = 0
    while going and (trips is None or count < trips):
        if count >= MAX_ITERATIONS:
            node.fail(f"the loop runs more than {MAX_ITERATIONS} times, which is the limit")
        own = [Value.of_array("iteration", np.asarray(count, np.int64)), Value.of_array("condition", np.asarray(True))]
        results = _body(node, graph, scope, own + carried)
        going = _truth(results[0])
        carried = results[1:1 + len(carried)]
        for parts, value in zip(kept, results[1 + len(carried):]):
            parts.append(value)
        count += 1
    return carried + [_stacked(node, parts, 0) for parts in kept]


def _stacked(node, parts, axis):
    if not parts:
        node.fail("the loop runs zero times, so the shape of a collected output is unknown")
    return node.b.concat([node.b.reshape(view, view.shape[:axis] + (1,) + view.shape[axis:]) for view in map(node.tracer.view, parts)], axis)


def _scan(node: Node, scope: dict, opsets: dict) -> "list[Any]":
    if node.opset < 9:
        return _scan_8(node, scope)
    return _scanned(node, scope, list(node.inputs))


def _scan_8(node, scope):
    """Traces a Scan of opset 8. Its first input contains sequence lengths, and all other inputs have a batch
    dimension."""
    if node.has(0):
        node.fail("Scan of opset 8 with sequence lengths")
    batch = node.shape(1)[0]
    results = [_scanned(node, scope, [node.tracer.view(each).select(0, n) for each in node.inputs[1:]]) for n in range(batch)]
    results = [[node.tracer.view(each) if isinstance(each, Value) else each for each in one] for one in results]
    return [node.b.concat([node.b.reshape(view, (1,) + view.shape) for view in parts], 0) for parts in zip(*results)]


def _scanned(node, scope, inputs):
    graph, scans = node.attributes["body"].g, node.attr("num_scan_inputs")
    first = len(inputs) - scans
    states, views = inputs[:first], [node.tracer.view(each) if isinstance(each, Value) else each for each in inputs[first:]]
    states = [each if isinstance(each, Value) else Value.of_view("state", each) for each in states]
    outputs = len(graph.output) - len(states)
    axes = node.attr("scan_input_axes", [0] * scans)
    backward = node.attr("scan_input_directions", node.attr("directions", [0] * scans))
    out_axes, out_backward = node.attr("scan_output_axes", [0] * outputs), node.attr("scan_output_directions", [0] * outputs)
    length = views[0].shape[axes[0]]
    if length > MAX_ITERATIONS:
        node.fail(f"the loop runs more than {MAX_ITERATIONS} times, which is the limit")
    kept: "list[list[Any]]" = [[] for _ in range(outputs)]
    for step in range(length):
        parts = [Value.of_view("element", view.select(axis, length - 1 - step if back else step)) for view, axis, back in zip(views, axes, backward)]
        results = _body(node, graph, scope, states + parts)
        states = results[:len(states)]
        for place, value in enumerate(results[len(states):]):
            kept[place].append(value)
    return states + [_stacked(node, parts[::-1] if back else parts, axis) for parts, axis, back in zip(kept, out_axes, out_backward)]


OPERATORS = {"If": _if, "Loop": _loop, "Scan": _scan}

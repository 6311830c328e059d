# SPDX-License-Identifier: Apache-2.0
"""Traces a model for given input shapes: runs the mapping of each node. The mappings append calls of operators,
which the trace collects."""
from math import prod
from typing import Any, Iterable, Mapping, Optional

import numpy as np
from onnx import AttributeProto, FunctionProto, NodeProto, defs, helper

from . import control, dtypes, folding, mapping
from .builder import Builder, Refusal, Step
from .errors import ModelError, NeedsHostValue, OnnxError, UnsupportedNode
from .loading import MAX_DEPTH, Model
from .node import MAX_HOST_ELEMENTS, Node
from .registry import MAPPINGS
from .values import Sequence, Value
from .views import Storage, View

MAX_VISITS = 200_000  # maximum number of traced nodes, including those in loops and functions

mapping.load_all()


def describe(node: NodeProto) -> str:
    """Returns the description of a node for messages."""
    domain = f"{node.domain}." if node.domain else ""
    name = node.name or next((output for output in node.output if output), "")
    return f"node {name!r} ({domain}{node.op_type})"


class Traced:
    """The result of a trace."""

    def __init__(self, builder: Builder, inputs: "dict[tuple[str, Optional[int]], View]", outputs: "list[Any]",
                 origins: "list[tuple[str, str, list[Step]]]") -> None:
        self.builder, self.inputs, self.outputs, self.origins = builder, inputs, outputs, origins


class Tracer:
    """Traces one model. `inputs` is {name: (element type, shape)}. Instead of such a pair, there is a list of
    pairs for a sequence, and None for an empty optional. `known` contains the values of the inputs that the
    host reads."""

    def __init__(self, model: Model, inputs: "Mapping[str, Any]", known: "Mapping[str, np.ndarray]") -> None:
        self.model, self.builder, self.known = model, Builder(), known
        self.inputs: "dict[tuple[str, Optional[int]], View]" = {}  # the key is (name, index in a sequence or None)
        self.origins: "list[tuple[str, str, list[Step]]]" = []  # (description of a node, how it is mapped, its calls)
        self.depth = self.visits = 0
        self.shapes = inputs

    # ---- Values ----

    def view(self, value: Value) -> View:
        """Returns a value as a tensor on the device."""
        if value.view is None:
            if value.host is None or dtypes.of_onnx(value.kind) is None:
                raise Refusal(f"Backplane has no dtype for {dtypes.onnx_name(value.kind)}, the type of {value.name!r}")
            value.view = self.builder.constant(value.host)
            value.view.storage.label = value.name
        return value.view

    def _input(self, name, shape, place=None):
        """Makes the value of an input. `shape` is (element type, extents), a list of such pairs for a sequence,
        or None."""
        if shape is None:
            return None
        if isinstance(shape, list):
            return Sequence(self._input(name, each, index) for index, each in enumerate(shape))
        kind, extents = shape
        if name in self.known:
            return Value(name, kind, extents, host=self.known[name])
        dtype = dtypes.of_onnx(kind)
        if dtype is None:
            raise Refusal(f"Backplane has no dtype for {dtypes.onnx_name(kind)}, the type of the input {name!r}")
        count = prod(extents)
        view = View(Storage(count * dtypes.BYTES[dtype], "input", name), dtype, extents)
        self.inputs[name, place] = view
        return Value(name, kind, extents, view=view, origin=frozenset({name}) if count <= MAX_HOST_ELEMENTS and place is None else None)

    # ---- Graphs ----

    def run(self) -> Traced:
        graph = self.model.proto.graph
        scope: "dict[str, Any]" = {}
        for name, shape in self.shapes.items():
            scope[name] = self._input(name, shape)
        outputs = self.graph(graph, scope)
        return Traced(self.builder, self.inputs, outputs, self.origins)

    def graph(self, graph: Any, scope: "dict[str, Any]") -> "list[Any]":
        """Traces a graph. `scope` is {name: value} and receives the results. Returns the values of the graph's
        outputs."""
        for tensor in graph.initializer:
            if tensor.name not in scope or self.depth:
                array = self.model.array(tensor) if self.depth else self.model.constant(tensor)
                scope[tensor.name] = Value(tensor.name, tensor.data_type, array.shape, host=array)
        if graph.sparse_initializer:
            raise ModelError(f"{self.model.name}: the graph {graph.name!r} has sparse constants, which this package does not read; convert them to "
                             "dense ones")
        self.nodes(graph.node, scope, [output.name for output in graph.output], self.model.opsets)
        return [self._named(scope, output.name) for output in graph.output]

    def _named(self, scope, name):
        if name not in scope:
            raise ModelError(f"{self.model.name}: no node computes the tensor {name!r}; correct the exporter")
        return scope[name]

    def nodes(self, nodes: "Iterable[NodeProto]", scope: "dict[str, Any]", wanted: "Iterable[str]", opsets: "Mapping[str, int]") -> None:
        """Traces the nodes on which the tensors `wanted` depend, in the order of the model."""
        nodes = list(nodes)
        needed, used = set(wanted), [False] * len(nodes)
        for place in range(len(nodes) - 1, -1, -1):
            node = nodes[place]
            if any(name in needed for name in node.output if name):
                used[place] = True
                needed.update(name for name in node.input if name)
                for attribute in node.attribute:
                    if attribute.type == AttributeProto.GRAPH:
                        needed.update(control.free_names(attribute.g))
        for place, node in enumerate(nodes):
            if used[place]:
                self._node(node, scope, opsets)

    def _node(self, proto, scope, opsets):
        self.visits += 1
        text = describe(proto)
        if self.visits > MAX_VISITS:
            raise ModelError(f"{self.model.name}: {text}: loops and functions expand to more than {MAX_VISITS} nodes, which is the limit; simplify the model")
        inputs = [self._named(scope, name) if name else None for name in proto.input]
        outer, self.builder.node = self.builder.node, text
        first = len(self.builder.steps)
        try:
            results, how = self._results(proto, inputs, scope, opsets)
        except Refusal as refusal:
            message = f"{self.model.name}: {text} with inputs {', '.join(map(_shown, inputs)) or 'none'}: {refusal}; change the model, or add a mapping"
            domain = f"{proto.domain}." if proto.domain else ""
            raise UnsupportedNode(message, domain + proto.op_type) from None
        except (OnnxError, NeedsHostValue):
            raise
        except (IndexError, KeyError, ValueError, TypeError, AssertionError, OverflowError, ZeroDivisionError, AttributeError) as failure:
            raise ModelError(f"{self.model.name}: {text} with inputs {', '.join(map(_shown, inputs)) or 'none'} has operands or attributes that do not "
                             f"fit together: {type(failure).__name__}: {failure}; correct the model") from failure
        finally:
            self.builder.node = outer
        if not self.depth:
            self.origins.append((text, how, self.builder.steps[first:]))
        for place, name in enumerate(proto.output):
            if not name:
                continue
            if place >= len(results) or results[place] is None:
                raise UnsupportedNode(f"{self.model.name}: {text}: output {place} ({name!r}) is not supported; change the model, or add a mapping",
                                      proto.op_type)
            scope[name] = self._value(name, place, results[place], proto, inputs, opsets.get(proto.domain, 1))

    def _value(self, name, place, result, proto, inputs, opset):
        if isinstance(result, View):
            origin = folding.origin_of(proto, inputs)
            kind = _carried_kind(proto, place, inputs, opset)
            if kind is None or dtypes.of_onnx(kind) != result.dtype:
                return Value.of_view(name, result, origin)
            return Value(name, kind, result.shape, view=self.builder.wrap(result, kind), origin=origin)
        if isinstance(result, np.ndarray):
            return Value.of_array(name, result)
        return result  # a Value, a Sequence, or an empty optional

    def _results(self, proto, inputs, scope, opsets):
        """Returns the outputs of a node, and a text that states how they are computed."""
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        opset = opsets.get(domain, 1)
        if not domain:
            folded = folding.fold(proto, inputs, opset)
            if folded is not None:
                return folded, "folded on the host"
        node = Node(proto, inputs, opset, self)
        if not domain and proto.op_type in control.OPERATORS:
            return _listed(control.OPERATORS[proto.op_type](node, scope, opsets)), "control flow, decided on the host"
        found = MAPPINGS.get((domain, proto.op_type))
        result = NotImplemented if found is None else found[1](node)
        if result is not NotImplemented:
            assert found is not None
            _check_attributes(node, proto)
            return _listed(result), f"mapping/{found[0]}.py"
        function = self.model.functions.get((proto.domain, proto.op_type))
        how = "function of the model"
        if function is None:
            function = _function_of(proto, inputs, opset)
            how = "function of ONNX"
        if function is None:
            raise Refusal("there is no mapping for this operator")
        return self.function(function, proto, inputs), how

    # ---- Functions ----

    def function(self, function: FunctionProto, call: NodeProto, inputs: "list[Any]") -> "list[Any]":
        """Traces the body of a function in a separate scope."""
        if self.depth >= MAX_DEPTH:
            raise Refusal(f"functions are nested more than {MAX_DEPTH} levels deep")
        scope = dict(zip(function.input, inputs + [None] * len(function.input)))
        given = {each.name: each for each in call.attribute}
        defaults = {each.name: each for each in function.attribute_proto}
        opsets = {("" if each.domain == "ai.onnx" else each.domain): each.version for each in function.opset_import} or dict(self.model.opsets)
        nodes = [_with_attributes(node, {**defaults, **given}) for node in function.node]
        wanted = [name for name, outer in zip(function.output, call.output) if outer]
        self.depth += 1
        try:
            self.nodes(nodes, scope, wanted, opsets)
        finally:
            self.depth -= 1
        return [scope.get(name) for name in function.output]


def _carried_kind(node: NodeProto, place: int, inputs: "list[Any]", opset: int) -> "Optional[int]":
    """Returns the element type of an output if a wider dtype carries this type. Otherwise returns None. The
    operator's schema states which input has the same type as the output."""
    if not any(isinstance(each, Value) and dtypes.is_carried(each.kind) for each in inputs):
        return None
    try:
        schema = defs.get_schema(node.op_type, opset, node.domain)
    except defs.SchemaError:
        return None
    own = schema.outputs[min(place, len(schema.outputs) - 1)].type_str
    for parameter, value in zip(schema.inputs, inputs):
        if parameter.type_str == own and isinstance(value, Value):
            return value.kind if dtypes.is_carried(value.kind) else None
    return None


# Attributes that do not affect the outputs that the mappings compute.
_WITHOUT_EFFECT = {"consumed_inputs", "kernel_shape", "seed", "output_dtype", "stash_type", "saturate", "storage_order", "spatial",
                   "num_outputs", "precision", "qk_matmul_output_mode", "softmax_precision"}


def _check_attributes(node: Node, proto: NodeProto) -> None:
    """Raises Refusal if the mapping has not read an attribute, for example one of a later opset. Attributes
    with their default value are permitted."""
    for name in node.attributes.unread - _WITHOUT_EFFECT:
        try:
            default = defs.get_schema(proto.op_type, node.opset, proto.domain).attributes[name].default_value
        except (defs.SchemaError, KeyError):
            default = None
        own = next(each for each in proto.attribute if each.name == name)
        if default is None or not default.name or helper.get_attribute_value(default) != helper.get_attribute_value(own):
            raise Refusal(f"the attribute {name!r} is not supported")


def _shown(value: Any) -> str:
    if isinstance(value, Value):
        return f"{value.name!r} {dtypes.onnx_name(value.kind)} {value.shape}"
    return "absent" if value is None else f"a sequence of {len(value)}"


def _listed(results: Any) -> "list[Any]":
    return list(results) if isinstance(results, (list, tuple)) and not isinstance(results, Sequence) else [results]


def _with_attributes(node: NodeProto, attributes: "Mapping[str, AttributeProto]") -> NodeProto:
    """Returns a node of a function's body, with attributes whose values come from the call of the function."""
    if not any(each.ref_attr_name for each in node.attribute):
        return node
    out = NodeProto()
    out.CopyFrom(node)
    del out.attribute[:]
    for each in node.attribute:
        if not each.ref_attr_name:
            out.attribute.append(each)
        elif each.ref_attr_name in attributes:
            copy = out.attribute.add()
            copy.CopyFrom(attributes[each.ref_attr_name])
            copy.name = each.name
    return out


def _function_of(proto: NodeProto, inputs: "list[Any]", opset: int) -> "Optional[FunctionProto]":
    """Returns the function by which ONNX defines an operator, or None if there is none."""
    try:
        schema = defs.get_schema(proto.op_type, opset, proto.domain)
    except defs.SchemaError:
        return None
    function = FunctionProto()
    if schema.has_function:
        versions = [each for each in schema.function_opset_versions if each <= opset] or schema.function_opset_versions[:1]
        function.ParseFromString(schema.get_function_with_opset_version(max(versions)))
    elif schema.has_context_dependent_function:
        versions = [each for each in schema.context_dependent_function_opset_versions if each <= opset]
        versions = versions or schema.context_dependent_function_opset_versions[:1]
        types = [_type_of(each).SerializeToString() for each in inputs]
        body = schema.get_context_dependent_function_with_opset_version(max(versions), proto.SerializeToString(), types)
        if not body:
            return None
        function.ParseFromString(body)
    else:
        return None
    known = {each.name for each in function.attribute_proto}
    for name, attribute in schema.attributes.items():
        if name not in known and attribute.default_value.name:
            function.attribute_proto.append(attribute.default_value)
    return function if function.node else None


def _type_of(value: Any) -> Any:
    if isinstance(value, Value):
        return helper.make_tensor_type_proto(value.kind, value.shape)
    if isinstance(value, Sequence):
        return helper.make_sequence_type_proto(helper.make_tensor_type_proto(value.kind, None))
    from onnx import TypeProto
    return TypeProto()

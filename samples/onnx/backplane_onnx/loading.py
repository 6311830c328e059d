# SPDX-License-Identifier: Apache-2.0
"""Reads a model, and refuses broken and hostile files."""
import os
from math import prod
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError, Message
from onnx import ModelProto, TensorProto, numpy_helper

from . import dtypes
from .errors import ModelError

OLDEST_OPSET, NEWEST_OPSET = 7, 23
MAX_FILE_BYTES = 2**31 - 1  # the maximum size that protobuf supports
MAX_NODES = 100_000
MAX_DEPTH = 16  # maximum number of levels of nested graphs and functions


def load(source: "str | os.PathLike[str] | bytes | ModelProto") -> "Model":
    """Reads a model from a file, from bytes or from a ModelProto. Raises ModelError if the model is invalid."""
    name, folder = "model", None
    if isinstance(source, (str, os.PathLike)):
        name, folder = os.fspath(source), os.path.dirname(os.path.abspath(os.fspath(source)))
        source = _read(name)
    if isinstance(source, (bytes, bytearray, memoryview)):
        source = _parse(bytes(source), name)
    return Model(source, name, folder)


def _read(path):
    try:
        size = os.path.getsize(path)
        if size > MAX_FILE_BYTES:
            raise ModelError(f"{path}: the file has {size} bytes, and protobuf reads {MAX_FILE_BYTES} at most; store the weights as external data")
        with open(path, "rb") as file:
            return file.read()
    except OSError as failure:
        raise ModelError(f"{path}: cannot read the file: {failure.strerror}; correct the path") from None


def _parse(data, name):
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, ValueError, RuntimeError, RecursionError) as failure:
        raise ModelError(f"{name}: the file is not an ONNX model, or is truncated ({failure}); export or download it again") from None
    if not model.HasField("graph"):
        raise ModelError(f"{name}: the file contains no graph, so it is not an ONNX model; pass a file that an exporter wrote")
    return model


class Model:
    """A model that has passed all checks. `opsets` is {domain: version}."""

    def __init__(self, proto: ModelProto, name: str = "model", folder: "str | None" = None) -> None:
        self.proto, self.name, self.folder = proto, name, folder
        self.opsets = _opsets(proto, name)
        _check_size(proto, name)
        _check_functions(proto, name)
        _check(proto, name)
        self.functions = {(each.domain, each.name): each for each in proto.functions}
        self._constants: "dict[str, np.ndarray]" = {}
        self._owned: "set[int]" = set()  # addresses of the arrays in _constants

    def constant(self, tensor: TensorProto) -> np.ndarray:
        """Returns the value of a constant of the main graph. Raises ModelError if the value is invalid."""
        found = self._constants.get(tensor.name)
        if found is None:
            found = self._constants[tensor.name] = self.array(tensor)
            self._owned.add(id(found))
        return found

    def owns(self, array: np.ndarray) -> bool:
        """Returns whether constant() has returned this array. All programs of the model share such arrays."""
        return id(array) in self._owned

    def array(self, tensor: TensorProto) -> np.ndarray:
        """Returns the value of a tensor of the model. Raises ModelError if the value is invalid."""
        what = f"{self.name}: tensor {tensor.name!r}"
        if any(extent < 0 for extent in tensor.dims):
            raise ModelError(f"{what} has the shape {tuple(tensor.dims)}; extents are 0 or more: export the model again")
        if tensor.data_location == TensorProto.EXTERNAL:
            return self._external(tensor, what)
        try:
            array = numpy_helper.to_array(tensor)
        except Exception as failure:  # the decoder raises exceptions of many types for broken tensors
            raise ModelError(f"{what} cannot be decoded: {failure}; export the model again") from None
        if array.shape != tuple(tensor.dims):
            raise ModelError(f"{what} has the shape {tuple(tensor.dims)} and {array.size} elements; export the model again")
        return array

    def _external(self, tensor, what):
        """Reads a tensor whose data is in a separate file in the model's folder."""
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        if self.folder is None:
            raise ModelError(f"{what} is in the file {location!r}, and the model was not loaded from a file; load the model by its path")
        root = os.path.realpath(self.folder)
        path = os.path.realpath(os.path.join(root, location))
        if not location or os.path.isabs(location) or os.path.commonpath([root, path]) != root or not os.path.isfile(path):
            raise ModelError(f"{what} is in the file {location!r}, which is not a file in the model's folder; put the file there, or refuse this model")
        name = dtypes.of_onnx(tensor.data_type)
        if name is None:
            raise ModelError(f"{what} is external and has the type {dtypes.onnx_name(tensor.data_type)}, which Backplane lacks; convert the model")
        try:
            offset, size = int(entries.get("offset", 0)), prod(tensor.dims) * dtypes.BYTES[name]
            length = int(entries.get("length", size))
        except ValueError:
            raise ModelError(f"{what}: offset and length of the external data are not numbers; export the model again") from None
        if offset < 0 or length != size or offset + size > os.path.getsize(path):
            raise ModelError(f"{what} needs {size} bytes at offset {offset}; the model states {length}, and {location!r} has {os.path.getsize(path)}: "
                             "export the model again")
        return np.fromfile(path, dtypes.to_numpy(name), prod(tensor.dims), offset=offset).reshape(tuple(tensor.dims))


def _opsets(proto, name):
    opsets = {}
    for each in proto.opset_import:
        domain = "" if each.domain == "ai.onnx" else each.domain
        if domain in opsets and opsets[domain] != each.version:
            raise ModelError(f"{name}: the model imports two versions of the domain {domain!r}; keep one")
        opsets[domain] = each.version
    version = opsets.get("", NEWEST_OPSET if opsets else 1)
    if not 1 <= version <= onnx.defs.onnx_opset_version():
        raise ModelError(f"{name}: the model uses opset {version}; this package reads opset {OLDEST_OPSET} to {onnx.defs.onnx_opset_version()}: "
                         "convert the model with onnx.version_converter")
    return opsets


def _graphs_of(message):
    """Yields the main graph of a model, or the graphs that are attributes of a node or of the nodes of a graph."""
    if isinstance(message, ModelProto):
        yield message.graph
        return
    nodes = message.node if not isinstance(message, onnx.NodeProto) else [message]
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield attribute.g
            yield from attribute.graphs


def _check_size(proto, name):
    """Checks the number of nodes and the depth of nested graphs, without recursion."""
    pending: "list[tuple[Any, int]]" = [(proto.graph, 0)] + [(function, 0) for function in proto.functions]
    nodes = 0
    while pending:
        graph, depth = pending.pop()
        nodes += len(graph.node)
        if nodes > MAX_NODES:
            raise ModelError(f"{name}: the model has more than {MAX_NODES} nodes, which is the limit; simplify the model, for example with an optimizer")
        if depth > MAX_DEPTH:
            raise ModelError(f"{name}: graphs are nested more than {MAX_DEPTH} levels deep; simplify the model")
        pending += [(inner, depth + 1) for inner in _graphs_of(graph)]


def _check_functions(proto, name):
    """Refuses functions that call themselves directly or indirectly, because the checker does not detect them."""
    calls: "dict[tuple[str, str], list]" = {}
    for function in proto.functions:
        found: "list" = []
        pending: "list[Any]" = [function]
        while pending:
            graph = pending.pop()
            found += [(node.domain, node.op_type) for node in graph.node]
            pending += _graphs_of(graph)
        calls[(function.domain, function.name)] = found
    done: "set" = set()
    for start in calls:
        path, stack = [], [(start, iter(calls[start]))]
        path.append(start)
        while stack:
            here, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                stack.pop()
                path.pop()
                done.add(here)
            elif following in path:
                raise ModelError(f"{name}: the function {following[1]!r} calls itself; ONNX permits no recursion: correct the exporter")
            elif following in calls and following not in done:
                stack.append((following, iter(calls[following])))
                path.append(following)


def _check(proto: Message, name: str) -> None:
    """Runs the checker of ONNX. It requires that each node follows the nodes whose results it uses, so it also
    refuses cycles."""
    try:
        onnx.checker.check_model(_without_data(proto))
    except onnx.checker.ValidationError as failure:
        text = " ".join(str(failure).split())
        if "topological" in text or "is not output of any previous nodes" in text:
            text += "; the graph has a cycle, or a node uses a tensor before the node that computes it"
        raise ModelError(f"{name}: the model breaks a rule of ONNX: {text}; correct the exporter") from None
    except Exception as failure:  # the checker forwards exceptions of its C++ library
        raise ModelError(f"{name}: the model cannot be checked: {' '.join(str(failure).split())}; export the model again") from None


def _without_data(proto):
    """Returns a copy of the model in which tensors with external data are empty, so that the checker opens no
    files. Model.array() checks the paths of these files."""
    external = [tensor for tensor in proto.graph.initializer if tensor.data_location == TensorProto.EXTERNAL]
    if not external:
        return proto
    copy = ModelProto()
    copy.CopyFrom(proto)
    for tensor in copy.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            tensor.ClearField("external_data")
            tensor.data_location = TensorProto.DEFAULT
            tensor.ClearField("dims")
            tensor.dims.append(0)
    return copy

# SPDX-License-Identifier: Apache-2.0
"""Runs a model on a device."""
import os
import threading
from typing import Any, Mapping, Optional

import backplane as bp
import numpy as np
from onnx import ModelProto, helper

from . import dtypes, loading
from .errors import InputError, ModelError, NeedsHostValue
from .loading import Model
from .node import MAX_HOST_ELEMENTS
from .program import Constants, Program
from .trace import Tracer

MAX_PROGRAMS = 32


class Session:
    """A model on a device. The first run with new shapes traces, plans and records a program; later runs only
    launch it.

    A program is valid for the shapes of the inputs, and for the values of the inputs that `host_inputs` names.
    Several threads may call run(); the calls then run one after another."""

    def __init__(self, model: "str | os.PathLike[str] | bytes | ModelProto | Model", device: "bp.Device | str | None" = None) -> None:
        self.model = model if isinstance(model, Model) else loading.load(model)
        self.device = device if isinstance(device, bp.Device) else bp.open(device)
        self.stream = self.device.create_stream()
        self._constants = Constants(self.stream)
        self._programs: "dict[tuple, Program]" = {}
        self._lock = threading.Lock()
        graph = self.model.proto.graph
        constants = {each.name for each in graph.initializer}
        self._declared = {each.name: each for each in graph.input}
        self.input_names = [each.name for each in graph.input if each.name not in constants]
        self.output_names = [each.name for each in graph.output]
        self.host_inputs: "set[str]" = set()
        # {name of a tensor input: (dtype, extents or None)}, stored because reading these values from the
        # protobuf message is slow.
        self._kinds = {name: self._kind(each.type.tensor_type) for name, each in self._declared.items() if each.type.HasField("tensor_type")}

    # ---- Inputs ----

    def declared(self, name: str) -> "tuple[np.dtype, tuple[Optional[int], ...]]":
        """Returns the dtype and the extents of an input. An extent is None if each run may choose it. Raises
        InputError if Backplane does not have the dtype."""
        kind = self._declared[name].type.tensor_type
        dtype = dtypes.array_type(kind.elem_type)
        if dtype is None:
            raise InputError(f"{self.model.name}: input {name!r} has the type {dtypes.onnx_name(kind.elem_type)}, which Backplane lacks; convert the model")
        return dtype, tuple(each.dim_value if each.HasField("dim_value") else None for each in kind.shape.dim)

    @staticmethod
    def _kind(kind):
        return dtypes.array_type(kind.elem_type), [each.dim_value if each.HasField("dim_value") else None for each in kind.shape.dim] \
            if kind.HasField("shape") else None

    def _checked(self, feeds: "Mapping[str, Any]") -> "dict[str, np.ndarray]":
        unknown = [name for name in feeds if name not in self._declared]
        missing = [name for name in self.input_names if name not in feeds]
        if unknown or missing:
            raise InputError(f"{self.model.name}: the call has {'the unknown input ' + repr(unknown[0]) if unknown else 'no input ' + repr(missing[0])}; "
                             f"the inputs are {', '.join(self.input_names) or 'none'}")
        return {name: self._checked_value(name, value) for name, value in feeds.items()}

    def _checked_value(self, name, value):
        """Checks the value of an input. Returns an array, a list of arrays for a sequence, or None for an empty
        optional."""
        if name in self._kinds and type(value) is np.ndarray:
            wanted, extents = self._kinds[name]
            if value.dtype == wanted and (extents is None or len(extents) == value.ndim and
                                          all(extent in (None, own) for extent, own in zip(extents, value.shape))):
                return value
        declared = self._declared[name].type
        if declared.HasField("optional_type"):
            if value is None:
                return None
            declared = declared.optional_type.elem_type
        if declared.HasField("sequence_type"):
            if not isinstance(value, (list, tuple)):
                raise InputError(f"{self.model.name}: input {name!r} is a {type(value).__name__}, and the model declares a sequence; pass a list")
            return [self._checked_array(name, each, declared.sequence_type.elem_type.tensor_type) for each in value]
        if not declared.HasField("tensor_type"):
            raise InputError(f"{self.model.name}: input {name!r} is a {declared.WhichOneof('value')}, and this package accepts tensors and sequences of "
                             "tensors; change the model")
        return self._checked_array(name, value, declared.tensor_type)

    def _checked_array(self, name, value, kind):
        array, wanted = np.asarray(value), dtypes.array_type(kind.elem_type)
        if wanted is None:
            raise InputError(f"{self.model.name}: input {name!r} has the type {dtypes.onnx_name(kind.elem_type)}, which Backplane lacks; convert the model")
        if array.dtype != wanted:
            raise InputError(f"{self.model.name}: input {name!r} is {array.dtype}, and the model declares {wanted}; convert the array")
        if kind.HasField("shape"):
            extents = [each.dim_value if each.HasField("dim_value") else None for each in kind.shape.dim]
            if len(extents) != array.ndim or any(extent not in (None, own) for extent, own in zip(extents, array.shape)):
                names = [each.dim_param or "?" if not each.HasField("dim_value") else str(each.dim_value) for each in kind.shape.dim]
                raise InputError(f"{self.model.name}: input {name!r} has the shape {array.shape}, and the model declares ({', '.join(names)}); pass an "
                                 "array of this shape")
        return array

    # ---- Programs ----

    def program(self, feeds: "Mapping[str, Any]") -> Program:
        """Returns the program for the shapes of the inputs. Traces and records it first if it does not exist."""
        return self._program(self._checked(feeds))

    def _program(self, arrays):
        found = self._programs.get(self._key(arrays))
        if found is None:
            traced = self._traced(arrays)
            if len(self._programs) >= MAX_PROGRAMS:
                del self._programs[next(iter(self._programs))]
            found = self._programs[self._key(arrays)] = Program(traced, self._constants, self.model)
        return found

    def _key(self, arrays):
        def part(name, value):
            if isinstance(value, list):
                return tuple(each.shape for each in value)
            return None if value is None else (value.shape, value.tobytes() if name in self.host_inputs else None)
        return tuple((name, part(name, value)) for name, value in sorted(arrays.items()))

    def _traced(self, arrays):
        def described(value):
            return None if value is None else [described(each) for each in value] if isinstance(value, list) else (_kind_of(value), value.shape)
        shapes = {name: described(value) for name, value in arrays.items()}
        while True:
            known = {name: arrays[name] for name in self.host_inputs if name in arrays}
            try:
                return Tracer(self.model, shapes, known).run()
            except NeedsHostValue as request:
                new = request.inputs - self.host_inputs
                large = [name for name in new if arrays[name].size > MAX_HOST_ELEMENTS]
                if not new or large:
                    raise ModelError(f"{self.model.name}: the shape of a tensor depends on the value of input {sorted(large or request.inputs)[0]!r}, which "
                                     f"has more than {MAX_HOST_ELEMENTS} elements; change the model") from None
                self.host_inputs |= new

    @property
    def constant_bytes(self) -> int:
        return self._constants.bytes

    @property
    def calls(self) -> int:
        """Number of device calls in all programs."""
        return sum(len(each.once) + len(each.steps) for each in self._programs.values())

    # ---- Runs ----

    def run(self, feeds: "Mapping[str, Any]", outputs: "Optional[list[str]]" = None) -> "list[Any]":
        """Runs the model. `feeds` is {name of an input: array}. Returns the outputs as arrays."""
        arrays = self._checked(feeds)
        wrong = [name for name in outputs or () if name not in self.output_names]
        if wrong:
            raise InputError(f"{self.model.name}: there is no output {wrong[0]!r}; the outputs are {', '.join(self.output_names)}")
        with self._lock:
            program = self._program(arrays)
            program.copy_in(arrays)
            program.launch()
            results = program.results()
        return results if outputs is None else [results[self.output_names.index(name)] for name in outputs]


def _kind_of(array: np.ndarray) -> int:
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))

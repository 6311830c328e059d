# SPDX-License-Identifier: Apache-2.0
"""Prepares a traced program on a device: computes constants, places tensors in memory, and records the calls.
Each of these steps happens once."""
from typing import Any, NamedTuple, Optional

import backplane as bp
import numpy as np

from . import dtypes, fusion, layout, memory
from .builder import Immediate, Step
from .errors import ModelError, UnsupportedNode
from .loading import Model
from .trace import Traced
from .values import Sequence, Value
from .views import Storage, View


HOST = (1, 0)  # device type and index of host memory in DLPack (kDLCPU)
OUTPUTS = "the outputs of the graph"
WEIGHTS = {"matmul": 1, "linear": 1, "conv": 1, "conv_transpose": 1}  # {operator: index of the packable input}


class Constants:
    """Constants on a device. Each constant is copied once. All programs of a model share one object of this
    class. Each program has another object for the constants of its own trace."""

    def __init__(self, stream: bp.Stream) -> None:
        self.stream = stream
        self._tensors: "dict[int, tuple[np.ndarray, bp.Buffer]]" = {}  # {address of an array: (array, copy)}
        self._packed: "dict[tuple, list[bp.PackedTensor]]" = {}

    def buffer(self, array: np.ndarray) -> bp.Buffer:
        found = self._tensors.get(id(array))
        if found is None:
            found = self._tensors[id(array)] = array, to_device(self.stream, array).buffer
        return found[1]

    def packed(self, key: tuple) -> "list[bp.PackedTensor]":
        """Returns the list of packed forms of a constant. Calls with other shapes may need other forms."""
        return self._packed.setdefault(key, [])

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array, _ in self._tensors.values()) + sum(each.buffer.bytes for forms in self._packed.values() for each in forms)


def to_device(stream: bp.Stream, array: np.ndarray) -> bp.Tensor:
    """Copies an array to a new tensor on the device."""
    name = dtypes.of_numpy(array.dtype)
    assert name is not None
    plain = np.ascontiguousarray(array).reshape(array.shape)
    return bp.Tensor.from_host(stream, plain.view(np.uint16) if name == "bf16" else plain, name)


def from_device(tensor: bp.Tensor) -> np.ndarray:
    """Copies a contiguous tensor to a new array. Waits for the device."""
    if tensor.dtype != "bf16":
        return tensor.numpy()  # below, bf16 is read as bytes, because NumPy does not have it
    raw = bp.Tensor(tensor.buffer, "u8", (tensor.size * 2,), None, tensor.offset)
    return raw.numpy().view(dtypes.to_numpy("bf16")).reshape(tensor.shape)


def shared_array(tensor: bp.Tensor) -> "Optional[np.ndarray]":
    """Returns an array that shares the memory of a contiguous tensor. Returns None in three cases: the host
    cannot access this memory, NumPy does not have the dtype, or NumPy (before 2.1) would make the array
    read-only. The caller must wait for the device before each access."""
    if tensor.size == 0 or tensor.dtype in ("bf16", "bool"):
        return None
    try:
        array = np.from_dlpack(tensor) if tensor.__dlpack_device__() == HOST else None
        return array if array is not None and array.flags.writeable else None
    except BufferError:  # the device states no DLPack device for its memory
        return None


class _Output(NamedTuple):
    """An output on the device, and its NumPy dtype. `shared` is an array over its memory, if the host can
    access it."""

    view: View
    type: Any
    shared: "Optional[np.ndarray]" = None


class Program:
    """The calls for one set of input shapes. launch() enqueues all calls."""

    def __init__(self, traced: Traced, constants: Constants, model: Model) -> None:
        self._model, self.stream, self.origins = model, constants.stream, traced.origins
        self._constants, self._own = constants, Constants(constants.stream)
        builder = traced.builder
        builder.node = OUTPUTS
        self._template = [self._prepared(each, builder) for each in traced.outputs]
        views = [view for each in self._template for view in _views(each)]
        fusion.fuse(builder, memory.storages(views))
        self.once, self.steps = memory.divide(builder.steps)
        self.channels_last = layout.choose(self.steps, memory.storages(views), self._saves_work)
        inputs = [view.storage for view in traced.inputs.values()]
        self.device_bytes = memory.place(self.steps, inputs, memory.storages(views))
        self._fixed: "dict[Storage, bp.Buffer]" = {}
        self._arena = self._allocated(self.device_bytes, "all tensors of a run") if self.device_bytes else None
        self._forms: "dict[Step, bp.PackedTensor]" = {}  # {call: its packed weight}
        for step in self.once:
            self._execute(step)
        for step in self.steps:
            self._pack_weight(step)
        for step in self.steps:  # copies constants to the device now, because a recording cannot include these copies
            self._operands(step)
        kept = {storage for step in self.steps for storage in memory.storages(self._plain_inputs(step))} | set(memory.storages(views))
        self._fixed = {storage: buffer for storage, buffer in self._fixed.items() if storage in kept}
        self.graph = bp.Graph.record(self.stream, self._execute_all) if self.steps else None
        self.inputs = {name: self._tensor(view) for name, view in traced.inputs.items()}
        self._shared = {place: shared_array(tensor) for place, tensor in self.inputs.items()}
        self._template = [self._with_memory(each) for each in self._template]
        self.stream.wait()

    def _prepared(self, value: Any, builder: Any) -> Any:
        """Returns an output as an array if the host knows it, otherwise as a contiguous view. Returns a list of
        these for a sequence."""
        if isinstance(value, Sequence):
            return [self._prepared(each, builder) for each in value]
        if not isinstance(value, Value):
            return value
        if value.host is not None:
            return value.host
        assert value.view is not None
        # Copies a view that is not contiguous, or whose storage the calls do not compute. A run may overwrite the
        # storage of an input, and a model may return one tensor as several outputs.
        view = value.view if value.view.is_contiguous and value.view.storage.role == "computed" else builder.copy(value.view)
        return _Output(view, dtypes.array_type(value.kind))

    def _with_memory(self, each: Any) -> Any:
        if isinstance(each, list):
            return [self._with_memory(part) for part in each]
        return each._replace(shared=shared_array(self._tensor(each.view))) if isinstance(each, _Output) else each

    # ---- Tensors ----

    def _allocated(self, size: int, what: str) -> bp.Buffer:
        try:
            return bp.Buffer.create(self.stream, size)
        except (bp.OutOfMemory, bp.Unsupported, bp.InvalidArgument) as failure:
            raise ModelError(f"{self._model.name}: {what}: {self.stream.device.name} has no {size} bytes ({failure}); use smaller inputs or another "
                             "device") from None

    def _buffer(self, storage: Storage) -> bp.Buffer:
        if storage.array is not None:
            return (self._constants if self._model.owns(storage.array) else self._own).buffer(storage.array)
        if storage.fixed:
            found = self._fixed.get(storage)
            if found is None:
                found = self._fixed[storage] = self._allocated(storage.bytes, storage.label)
            return found
        assert self._arena is not None
        return self._arena

    def _tensor(self, view: View) -> bp.Tensor:
        base = 0 if view.storage.fixed else view.storage.offset
        assert base is not None
        return bp.Tensor(self._buffer(view.storage), view.dtype, view.shape, view.strides, base + view.offset)

    # ---- Order of images ----

    def _saves_work(self, step: Step, inputs: list, outputs: list) -> bool:
        """Returns whether a call saves work if it uses the views `inputs` and `outputs` instead of its own
        views. This requires that the device runs the call natively, that core stages no operand, and that the
        call needs less workspace. A call that needs less workspace converts fewer operands."""
        def unplaced(views):
            return [bp.Tensor(None, each.dtype, each.shape, each.strides) if isinstance(each, View) else None for each in views]
        found = []
        for ins, outs in ((step.inputs, step.outputs), (inputs, outputs)):
            try:
                found.append(bp.supports(step.op, *unplaced(ins), out=unplaced(outs), stream=self.stream, **step.parameters))
            except bp.Unsupported:
                return False
        dense, other = found
        if other["path"] != "native" or other["staged_inputs"] or other["staged_outputs"] or None in (dense["workspace_bytes"], other["workspace_bytes"]):
            return False
        return other["workspace_bytes"] < dense["workspace_bytes"]

    # ---- Packed weights ----

    def _pack_weight(self, step: Step) -> None:
        """Packs the constant weight of a call, if the device prefers a packed weight. The program then keeps
        the plain weight only if another call needs it."""
        place = WEIGHTS.get(step.op)
        weight = None if place is None else step.inputs[place]
        if not isinstance(weight, View) or not weight.storage.fixed or weight.size == 0:
            return
        inputs, outputs = self._operands(step, place)
        owned = weight.storage.array is not None and self._model.owns(weight.storage.array)
        forms = self._constants.packed((step.op, id(weight.storage.array), weight.dtype, weight.shape, weight.strides, weight.offset)) if owned else []
        for form in forms:
            inputs[place] = form
            if self._accepts(step, inputs, outputs):
                self._forms[step] = form
                return
        inputs[place] = bp.Tensor(None, weight.dtype, weight.shape, weight.strides)
        named = dict(step.parameters, out=outputs, stream=self.stream)
        try:
            if bp.pack_bytes(step.op, place, *inputs, **named) is None:
                return
            plain = self._tensor(weight) if weight.storage.array is None else self._transient(weight)
            inputs[place] = plain
            form = bp.pack(step.op, place, *inputs, **named)
        except (bp.Unsupported, bp.InvalidArgument):  # the call itself will report what the device refuses
            return
        self._forms[step] = form
        forms.append(form)

    def _accepts(self, step: Step, inputs: list, outputs: list) -> bool:
        try:
            bp.supports(step.op, *inputs, out=outputs, stream=self.stream, **step.parameters)
        except bp.Unsupported:
            return False
        return True

    def _transient(self, view: View) -> bp.Tensor:
        """Copies a constant to device memory that is released after the packing."""
        whole = to_device(self.stream, view.storage.array)
        return bp.Tensor(whole.buffer, view.dtype, view.shape, view.strides, view.offset)

    def _plain_inputs(self, step: Step) -> list:
        return [each for place, each in enumerate(step.inputs) if step not in self._forms or place != WEIGHTS[step.op]]

    def packed(self, step: Step) -> bool:
        """Returns whether the weight of the call is packed."""
        return step in self._forms

    # ---- Calls ----

    def _operands(self, step: Step, without: "Optional[int]" = None) -> "tuple[list, list]":
        """Returns the inputs and outputs of a call. The input at the index `without` is None."""
        shape, form = step.outputs[0].shape, self._forms.get(step)
        inputs = [None if place == without else
                  form if form is not None and place == WEIGHTS[step.op] else
                  self._tensor(each) if isinstance(each, View) else
                  bp.scalar(each.value, each.dtype, shape) if isinstance(each, Immediate) else None for place, each in enumerate(step.inputs)]
        return inputs, [None if each is None else self._tensor(each) for each in step.outputs]

    def _execute(self, step: Step) -> None:
        inputs, outputs = self._operands(step)
        try:
            bp.run(step.op, *inputs, out=outputs, stream=self.stream, **step.parameters)
        except (bp.Unsupported, bp.InvalidArgument) as failure:
            raise UnsupportedNode(f"{self._model.name}: {step.node}: {self.stream.device.name} refuses {step.op}: {failure}; use a device that has "
                                  "the operator, or change the model", step.node.rsplit("(", 1)[-1].rstrip(")")) from None

    def _execute_all(self) -> None:
        for step in self.steps:
            self._execute(step)

    @property
    def unplanned_bytes(self) -> int:
        """Number of bytes that the tensors would need if each had its own memory."""
        found = {storage for step in self.steps for storage in memory.storages(step.inputs + step.outputs) if not storage.fixed}
        return sum(storage.bytes for storage in found)

    def path(self, step: Step) -> str:
        """Returns how the device runs a call: "native", "decomposed" or "fallback"."""
        inputs, outputs = self._operands(step)
        return bp.supports(step.op, *inputs, out=outputs, stream=self.stream, **step.parameters)["path"]

    # ---- Runs ----

    def copy_in(self, arrays: "dict[str, Any]") -> None:
        """Copies the values of the inputs to the device."""
        self.stream.wait()  # an earlier launch may still read the inputs
        for (name, place), tensor in self.inputs.items():
            array = arrays[name] if place is None else arrays[name][place]
            shared = self._shared[name, place]
            if shared is not None:
                np.copyto(shared, dtypes.carried_array(array))
            elif array.size:
                plain = np.ascontiguousarray(dtypes.carried_array(array)).reshape(array.shape)
                tensor.copy_from(plain.view(np.uint16) if tensor.dtype == "bf16" else plain)

    def launch(self) -> None:
        """Enqueues all calls. The caller must have copied the inputs."""
        if self.graph is not None:
            self.graph.launch()

    def results(self) -> "list[Any]":
        """Waits for the device, and copies the outputs to the host."""
        self.stream.wait()
        return [self._read(each) for each in self._template]

    def _read(self, each):
        if isinstance(each, list):
            return [self._read(part) for part in each]
        if not isinstance(each, _Output):
            return each
        return each.shared.astype(each.type) if each.shared is not None else from_device(self._tensor(each.view)).astype(each.type, copy=False)


def _views(each: Any) -> "list[View]":
    if isinstance(each, list):
        return [view for part in each for view in _views(part)]
    return [each.view] if isinstance(each, _Output) else []

# SPDX-License-Identifier: Apache-2.0
"""Enqueues calls of operators."""
import ctypes
import difflib
import numbers
from typing import Any, Iterable, Optional, Sequence

from . import _infer, _operators, constants, dtypes, errors
from ._library import error_record, failure, invoke, library
from ._operator import REQUIRED, Operator
from ._structs import bph_call, bph_pack_info, bph_support, bph_tensor
from .buffer import Buffer
from .stream import Stream
from .tensor import PackedTensor, Tensor, bits_of, scalar

_CALL_BYTES = ctypes.sizeof(bph_call)
_BY_NAME = {each.name: each for each in _operators.ALL}
_arrays: "dict[int, Any]" = {}  # {count: type of an array of views}


def _array(views):
    kind = _arrays.get(len(views))
    if kind is None:
        kind = _arrays[len(views)] = bph_tensor * len(views)
    return kind(*views)


# ---- Attributes ----------------------------------------------------------------------------------

def unknown_names(op: Operator, names: "Iterable[str]") -> errors.InvalidArgument:
    """Returns the exception for keyword arguments that an operator lacks."""
    known = [each.name for each in op.attributes] + list(op.scalars) + ["out", "stream", "flags"]
    wrong = next(iter(names))
    close = difflib.get_close_matches(wrong, known, 1)
    hint = f"did you mean {close[0]}?" if close else "use one of " + ", ".join(known)
    return errors.InvalidArgument(f"{op.name}: there is no parameter {wrong}; {hint}")


def _number(op, field, value):
    """Returns a checked value of an attribute. Raises InvalidArgument for a value that the operator table does not
    permit."""
    if field.name == "axes" and isinstance(value, (list, tuple, set)):
        value = sum(1 << axis for axis in set(value))
    legal = isinstance(value, numbers.Real if field.type == "f32" else numbers.Integral)
    if not legal or not field.least <= value <= field.greatest:
        raise errors.InvalidArgument(f"{op.name}: the attribute {field.name} is {value!r}; the table permits {field.least} to {field.greatest}: "
                                     f"{field.meaning}")
    return float(value) if field.type == "f32" else int(value)


def _attributes(op: Operator, given):
    """Returns the attribute struct of a call, and a dictionary of the attribute values by name."""
    struct = op.struct(struct_size=ctypes.sizeof(op.struct))
    values = {}
    for field, value in zip(op.attributes, given):
        if value is REQUIRED:
            raise errors.InvalidArgument(f"{op.name}: the attribute {field.name} is missing; pass {field.name}=, {field.least} to {field.greatest}: "
                                         f"{field.meaning}")
        if field.entries > 1:
            numbers = [_number(op, field, each) for each in value]
            if len(numbers) > field.entries:
                raise errors.InvalidArgument(f"{op.name}: the attribute {field.name} has {len(numbers)} values; the most is {field.entries}")
            getattr(struct, field.name)[:len(numbers)] = numbers
            continue
        values[field.name] = number = _number(op, field, value)
        setattr(struct, field.name, number)
    return struct, values


# ---- Operands ------------------------------------------------------------------------------------

def _given(op, place):
    return f"{op.name}: {op.inputs[place] if place < len(op.inputs) else f'input {place}'}"


def _operands(op: Operator, inputs):
    """Returns the inputs without absent inputs at the end. Converts a number to a tensor that contains only this
    number, with the dtype of the other operands."""
    count = len(inputs)
    while count > op.inputs_min and inputs[count - 1] is None:
        count -= 1
    found = list(inputs[:count])
    for each in found:
        if type(each) is not Tensor:
            break
    else:
        return found
    tensors = [each for each in found if isinstance(each, Tensor)]
    for place, each in enumerate(found):
        if isinstance(each, Tensor) or each is None and place >= op.inputs_min:
            continue
        if op.shape_rule != "elementwise" or not isinstance(each, numbers.Real) or not tensors:
            wanted = "a Tensor or a number" if op.shape_rule == "elementwise" and tensors else "a Tensor"
            raise errors.InvalidArgument(f"{_given(op, place)} is of type {type(each).__name__}; pass {wanted}: device.tensor(...) makes one")
        # In select, input 0 is the condition and has the dtype bool. The other inputs are the values.
        dtype = "bool" if op.dtype_rule == "select" and place == 0 else tensors[-1].dtype
        found[place] = scalar(each, dtype, (), _given(op, place))
    return found


def _outputs(op: Operator, out):
    if out is None:
        return None
    found = [out] if isinstance(out, Tensor) else list(out)
    if not all(each is None or isinstance(each, Tensor) for each in found) or not found:
        raise errors.InvalidArgument(f"{op.name}: out is {out!r}; pass a Tensor, or a sequence of Tensors and None")
    return found


def _stream_of(op: Operator, tensors) -> Stream:
    """Returns the stream of the operands. Raises InvalidArgument if they belong to several streams."""
    found: Optional[Stream] = None
    for each in tensors:
        if each is None or each._buffer is None:
            continue
        own = each._buffer.stream
        if found is None:
            found = own
        elif found is not own:
            if found.device is not own.device:
                raise _two_devices(op.name, found.device, own.device)
            raise errors.InvalidArgument(f"{op.name}: the operands belong to two streams; pass stream=, and order the streams with an event")
    if found is None:
        raise errors.InvalidArgument(f"{op.name}: no operand has memory; pass out=, or a tensor of a device")
    return found


def _two_devices(name, one, other):
    return errors.InvalidArgument(f"{name}: an operand is on {one.name}, and another operand or the stream is on {other.name} or on the same device, "
                                  "opened another time; use objects of one open device: copy a tensor with numpy() and device.tensor()")


def _record_uses(name, tensors, stream):
    """Records in each buffer of another stream that `stream` uses the buffer, so that its memory is not reused too
    early."""
    for each in tensors:
        if each is not None and each._buffer is not None and each._buffer.stream is not stream:
            if each._buffer.stream.device is not stream.device:
                raise _two_devices(name, each._buffer.stream.device, stream.device)
            each._buffer.record(stream)


def _fitted(op, place, operand, shape):
    """Returns the operand as a view of the output's shape."""
    if operand is None or operand.shape == shape:
        return operand
    try:
        return operand.broadcast_to(shape)
    except errors.InvalidArgument as failure:
        raise errors.InvalidArgument(f"{_given(op, place)}: {failure}, where {shape} is the shape of out") from None


_ABSENT = bph_tensor()


def _views(tensors):
    return [_ABSENT if each is None else each._view for each in tensors]


class _Prepared:
    """A bph_call, and the Python objects whose addresses the bph_call contains."""

    __slots__ = ("call", "outputs", "stream", "keep")

    def __init__(self, op_id, inputs, outputs, struct, scalars, flags, stream):
        ins, outs = _array(_views(inputs)), _array(_views(outputs))
        address = ctypes.addressof
        values, count = (address(scalars), len(scalars)) if scalars else (None, 0)
        on_device = count != 0 and scalars._type_ is bph_tensor
        self.call = bph_call(_CALL_BYTES, op_id, flags, None if struct is None else address(struct), address(ins), address(outs),
                             None if on_device else values, len(inputs), len(outputs), count, 0, values if on_device else None)
        self.outputs, self.stream, self.keep = outputs, stream, (ins, outs, struct, scalars)

    def run(self):
        record = error_record()
        status = library().bph_execute(self.stream.handle, self.call, record)
        if status:
            raise failure(status, record)


def _prepare(op: Operator, inputs, attributes, scalars, dtype, out, stream, flags, unknown) -> _Prepared:
    if unknown:
        raise unknown_names(op, unknown)
    struct, values = _attributes(op, attributes) if op.attributes else (None, {})
    operands, outputs = _operands(op, inputs), _outputs(op, out)
    if stream is None:
        stream = _stream_of(op, operands if outputs is None else operands + outputs)
    if outputs is None:
        outputs = [Tensor.empty(stream, shape, kind) for kind, shape in _infer.outputs(op, operands, values, dtype)]
    elif dtype is not None and outputs[0] is not None and outputs[0].dtype != dtype:
        raise errors.InvalidArgument(f"{op.name}: dtype is {dtype}, and out is {outputs[0].dtype}; pass one of them")
    _record_uses(op.name, operands + outputs, stream)
    if op.shape_rule == "elementwise" and outputs[0] is not None:
        shape = outputs[0].shape
        operands = [_fitted(op, place, each, shape) for place, each in enumerate(operands)]
    bits = None
    if op.scalars:
        if any(isinstance(value, Tensor) for value in scalars):
            flags |= constants.BP_OP_FLAG_DEVICE_SCALARS
            bits = _device_scalars(op, scalars, stream)
        else:
            bits = _scalars(op, scalars, outputs)
    return _Prepared(op.id, operands, outputs, struct, bits, flags, stream)


def _scalars(op, scalars, outputs):
    dtype = outputs[0].dtype if op.scalar_dtype == "out" else op.scalar_dtype
    for name, value in zip(op.scalars, scalars):
        if value is REQUIRED:
            raise errors.InvalidArgument(f"{op.name}: the scalar {name} is missing; pass {name}=, a number")
    return (ctypes.c_uint64 * len(scalars))(*(bits_of(value, dtype, f"{op.name}: {name}") for name, value in zip(op.scalars, scalars)))


def _device_scalars(op, scalars, stream):
    """Returns the views of scalars that the device reads when the work runs."""
    for name, value in zip(op.scalars, scalars):
        if not isinstance(value, Tensor) or value.size != 1 or value._buffer is None:
            raise errors.InvalidArgument(f"{op.name}: the scalar {name} is {value!r}, and another scalar is a Tensor; pass only Tensors with memory and "
                                         "one element, or only numbers")
    _record_uses(op.name, scalars, stream)
    return _array([value.reshape(())._view for value in scalars])


def call(op: Operator, inputs, attributes, scalars, dtype, out, stream, flags, unknown):
    """Enqueues a call of an operator. Returns the output, or a tuple if there are several."""
    prepared = _prepare(op, inputs, attributes, scalars, dtype, out, stream, flags, unknown)
    prepared.run()
    outputs = prepared.outputs
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


# ---- Calls by name -------------------------------------------------------------------------------

def operator(name: str) -> Operator:
    """Returns the row of an operator. Raises InvalidArgument for an unknown name."""
    row = _BY_NAME.get(name)
    if row is None:
        close = difflib.get_close_matches(name, _BY_NAME, 3)
        raise errors.InvalidArgument(f"there is no operator {name!r}; {'similar names are ' + ', '.join(close) if close else 'backplane.operators() lists all'}")
    return row


def operators() -> "tuple[str, ...]":
    """Returns the names of all operators, in the order of their ids."""
    return tuple(_BY_NAME)


def _by_name(name, inputs, parameters):
    row = operator(name)
    if not row.inputs_min <= len(inputs) <= len(row.inputs):
        raise errors.InvalidArgument(f"{name}: there are {len(inputs)} inputs; the table has {row.inputs_min} to {len(row.inputs)}: "
                                     f"{', '.join(row.inputs) or 'none'}")
    inputs = tuple(inputs) + (None,) * (len(row.inputs) - len(inputs))
    rest = dict(parameters)
    attributes = [rest.pop(field.name, REQUIRED if field.required else () if field.entries > 1 else 0) for field in row.attributes]
    scalars = [rest.pop(each, REQUIRED) for each in row.scalars]
    known = {each: rest.pop(each, None) for each in ("dtype", "out", "stream")}
    return row, inputs, attributes, scalars, known["dtype"], known["out"], known["stream"], rest.pop("flags", 0), rest


def run(name: str, *inputs: Any, **parameters: Any) -> Any:
    """Enqueues a call of the operator `name`. The parameters are those of the function of this name in
    backplane.ops."""
    return call(*_by_name(name, inputs, parameters))


_PATHS = {constants.BPH_PATH_NATIVE: "native", constants.BPH_PATH_DECOMPOSED: "decomposed", constants.BPH_PATH_FALLBACK: "fallback"}


def supports(name: str, *inputs: Any, **parameters: Any) -> "dict[str, Any]":
    """Returns how `run` would execute the call, without executing it: path ("native", "decomposed" or "fallback"), the
    indices of the staged operands, and the bytes of workspace. Raises Unsupported with the missing part."""
    prepared = _prepare(*_by_name(name, inputs, parameters))
    found = bph_support(struct_size=ctypes.sizeof(bph_support))
    record = error_record()
    status = library().bph_device_supports(prepared.stream.device.handle, prepared.call, found, record)
    if status:
        raise failure(status, record)

    def places(mask):
        return tuple(place for place in range(constants.BP_MAX_OPERANDS) if mask >> place & 1)

    return {"path": _PATHS[found.path], "staged_inputs": places(found.stage_inputs), "staged_outputs": places(found.stage_outputs),
            "workspace_bytes": None if found.workspace_bytes == 2**64 - 1 else found.workspace_bytes}


def pack_bytes(name: str, index: int, *inputs: Any, **parameters: Any) -> Optional[int]:
    """Returns the size in bytes that input `index` of a call has after packing. Returns None if the plugin prefers the
    plain input. The other parameters are those of `run`."""
    info = _pack_info(_prepare(*_by_name(name, inputs, parameters)), index)
    return None if info is None else info.bytes


def pack(name: str, index: int, *inputs: Any, **parameters: Any) -> PackedTensor:
    """Enqueues the packing of input `index` of a call, and returns the operand to pass instead of that input. The other
    parameters are those of `run`; only that input needs memory. Raises Unsupported if the plugin prefers the plain
    input."""
    prepared = _prepare(*_by_name(name, inputs, parameters))
    info = _pack_info(prepared, index)
    if info is None:
        raise errors.Unsupported(f"{name}: {prepared.stream.device.name} prefers the plain input {index}; pass the plain input to run")
    buffer = Buffer.create(prepared.stream, info.bytes, alignment=info.alignment)
    view = bph_tensor()
    invoke("bph_pack", prepared.stream.handle, prepared.call, index, buffer.handle, 0, view)
    return PackedTensor.of(inputs[index], buffer, view)


def _pack_info(prepared, index):
    """Returns the bph_pack_info of an input, or None if the plugin prefers the plain input."""
    info = bph_pack_info(struct_size=ctypes.sizeof(bph_pack_info))
    try:
        invoke("bph_pack_query", prepared.stream.device.handle, prepared.call, index, info)
    except errors.Unsupported:
        return None
    return info


def execute(stream: Stream, op: int, inputs: "Sequence[Optional[Tensor]]", outputs: "Sequence[Optional[Tensor]]",
            attributes: Optional[ctypes.Structure] = None, scalars: "Sequence[int]" = (), flags: int = 0) -> None:
    """Enqueues a call as it is, like bph_execute: nothing is broadcast, converted or allocated.

    `op` may be the id of a vendor's operator. `attributes` is a ctypes struct whose first field is its size, and
    `scalars` contains bits in the operator's scalar dtype."""
    bits = (ctypes.c_uint64 * len(scalars))(*scalars) if scalars else None
    _record_uses(f"operator {op}", [*inputs, *outputs], stream)
    _Prepared(op, list(inputs), list(outputs), attributes, bits, flags, stream).run()

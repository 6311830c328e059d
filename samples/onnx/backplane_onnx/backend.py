# SPDX-License-Identifier: Apache-2.0
"""The interface of onnx.backend. A device is the name of a Backplane device, such as "reference:0". "CPU" means
the device that BACKPLANE_DEVICE names, or the first device."""
from typing import Any, Optional, Sequence

import backplane as bp
import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, shape_inference
from onnx.backend.base import Backend, BackendRep, namedtupledict

from .session import Session

_devices: "dict[Optional[str], bp.Device]" = {}


def _opened(device: str) -> bp.Device:
    name = None if device == "CPU" else device
    found = _devices.get(name)
    if found is None:
        found = _devices[name] = bp.open(name)
    return found


def _inferred(model: ModelProto, name: str) -> ValueInfoProto:
    """Returns the declaration of an output, including its type, because the checker of ONNX requires a type."""
    inferred = shape_inference.infer_shapes(model).graph
    found = next((each for each in inferred.value_info if each.name == name), None)
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, []) if found is None else found


class BackplaneRep(BackendRep):
    """A model on a device, ready to run."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> "tuple[Any, ...]":
        """Runs the model. `inputs` is a dictionary, one array, or arrays in the order of the model's inputs."""
        names = self.session.input_names
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        feeds = inputs if isinstance(inputs, dict) else dict(zip(names, inputs))
        return namedtupledict("Outputs", self.session.output_names)(*self.session.run(feeds))


class BackplaneBackend(Backend):
    """The class with which ONNX uses Backplane as a backend."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackplaneRep:
        return BackplaneRep(Session(model, _opened(device)))

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> "tuple[Any, ...]":
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: "Optional[Sequence[Any]]" = None,
                 **kwargs: Any) -> "tuple[Any, ...]":
        """Runs one node. It becomes a model with the newest opset that the package supports."""
        from .loading import NEWEST_OPSET
        arrays = list(inputs.values()) if isinstance(inputs, dict) else list(inputs)
        names = [name for name in node.input if name]
        infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in zip(names, arrays)]
        opsets = [helper.make_opsetid(node.domain, kwargs.get("opset_version", NEWEST_OPSET))]
        model = helper.make_model(helper.make_graph([node], "node", infos, []), opset_imports=opsets)
        for name in filter(None, node.output):
            model.graph.output.append(_inferred(model, name))
        return cls.run_model(model, arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU" or device in bp.devices()


prepare, run_model, run_node, supports_device = (BackplaneBackend.prepare, BackplaneBackend.run_model, BackplaneBackend.run_node,
                                                 BackplaneBackend.supports_device)

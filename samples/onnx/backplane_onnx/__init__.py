# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX models on every Backplane plugin.

    import backplane_onnx
    session = backplane_onnx.Session("model.onnx", "reference:0")
    outputs = session.run({"x": array})

samples/onnx/README.md explains the package. `backplane_onnx.backend` has the interface of onnx.backend."""
from .errors import InputError, ModelError, OnnxError, UnsupportedNode
from .loading import Model, load
from .session import Session

__all__ = ["InputError", "Model", "ModelError", "OnnxError", "Session", "UnsupportedNode", "load"]

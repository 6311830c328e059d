# SPDX-License-Identifier: Apache-2.0
"""Exceptions. Each message names the file, node or tensor, and states the cause and the remedy."""


class OnnxError(Exception):
    """The base of all exceptions of this package."""


class ModelError(OnnxError):
    """The file is not a valid ONNX model, or exceeds a limit."""


class InputError(OnnxError):
    """A call passes inputs whose names, dtypes or shapes the model does not accept."""


class UnsupportedNode(OnnxError):
    """A node has no mapping to operators of Backplane. `operator` is the node's operator."""

    def __init__(self, message: str, operator: str) -> None:
        super().__init__(message)
        self.operator = operator


class NeedsHostValue(Exception):
    """Raised if a mapping needs the value of a tensor that depends on the graph inputs `inputs`. The session
    then traces the model again with the values of these inputs."""

    def __init__(self, inputs) -> None:
        super().__init__(", ".join(sorted(inputs)))
        self.inputs = frozenset(inputs)

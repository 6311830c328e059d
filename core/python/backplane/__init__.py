# SPDX-License-Identifier: Apache-2.0
"""Backplane: loads hardware plugins, runs operators on their devices, and certifies plugins.

    import backplane as bp
    device = bp.open("reference:0")
    print(bp.ops.add(device.tensor([1., 2.]), device.tensor([3., 4.])).numpy())

docs/using_from_python.md explains the package. The package loads libbackplane at its first use."""
from . import constants, ops
from ._call import execute, operator, operators, pack, pack_bytes, run, supports
from ._library import library_path, load
from ._structs import PACKAGE_VERSION as __version__
from .buffer import Buffer
from .certify import Certificate, certify
from .device import Device, DeviceInfo, MemoryInfo
from .errors import (AbiMismatch, DeviceLost, Error, ExecutionFailed, Internal, InvalidArgument, NotReady, OutOfMemory, Timeout, Unavailable,
                     Unsupported)
from .graph import Graph
from .registry import Candidate, Plugin, PluginInfo, Registry, candidates, default_registry, devices, open
from .stream import Event, Stream
from .tensor import PackedTensor, Tensor, scalar

__all__ = ["AbiMismatch", "Buffer", "Candidate", "Certificate", "Device", "DeviceInfo", "DeviceLost", "Error", "Event", "ExecutionFailed",
           "Graph", "Internal", "InvalidArgument", "MemoryInfo", "NotReady", "OutOfMemory", "PackedTensor", "Plugin", "PluginInfo", "Registry", "Stream", "Tensor", "Timeout",
           "Unavailable", "Unsupported", "candidates", "certify", "constants", "default_registry", "devices", "execute", "library_path", "load", "open",
           "operator", "operators", "ops", "pack", "pack_bytes", "run", "scalar", "supports"]

# SPDX-License-Identifier: Apache-2.0
"""PyTorch on every Backplane plugin.

    import torch, backplane_torch
    device = backplane_torch.device("reference:0")   # a torch.device("backplane:i")
    x = torch.ones(2, 3, device=device)

libbackplane finds the plugins. Device `backplane:i` is entry i of `devices()`."""
import pathlib

import torch

_library = next(pathlib.Path(__file__).parent.glob("_bridge*.so"), None)
if _library is None:
    raise ImportError("backplane_torch: the library _bridge*.so is missing; build the package with `pip wheel samples/pytorch`")
torch.ops.load_library(_library)
torch.utils.rename_privateuse1_backend("backplane")

from . import backend  # noqa: E402  PyTorch must know the name of the backend before

torch._register_device_module("backplane", backend)
torch.utils.generate_methods_for_privateuse1_backend(unsupported_dtype=[torch.quint8, torch.quint4x2, torch.quint2x4, torch.qint32, torch.qint8])

_ops = torch.ops.backplane


def devices():
    """Returns the names "plugin:index" of all devices. Entry i is the name of `backplane:i`."""
    return list(_ops.devices())


def device(name):
    """Returns the torch.device for the name "plugin:index". The name "plugin" means "plugin:0"."""
    wanted = name if ":" in name else f"{name}:0"
    names = devices()
    if wanted not in names:
        raise ValueError(f"backplane: there is no device {wanted}. {_explanation(names)}")
    return torch.device("backplane", names.index(wanted))


def _explanation(names):
    lines = [f"Devices: {', '.join(names)}." if names else
             "No plugin with a device was found; set BACKPLANE_PLUGIN_PATH to the folder of a plugin's manifest."]
    return "\n  ".join(lines + unusable_plugins())


def unusable_plugins():
    """Returns a line for each plugin that was found but has no usable device. The line states the reason."""
    return list(_ops.unusable_plugins())


def fallbacks():
    """Returns a dictionary with the number of calls of each operator that ran on the CPU. It is empty if there
    was none."""
    return dict(_ops.fallbacks())


def reset_fallbacks():
    """Sets the counts of fallbacks to zero."""
    _ops.reset_fallbacks()


def forbid_fallbacks(forbidden=True):
    """Makes operators without a kernel raise NotImplementedError instead of running on the CPU."""
    _ops.forbid_fallbacks(forbidden)


def device_stats(device=None):
    """Returns libbackplane's counters of an open device: executions, plans and memory."""
    return dict(_ops.device_stats(backend.index_of(device)))


memory_stats = backend.memory_stats
version = _ops.version

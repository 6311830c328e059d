# SPDX-License-Identifier: Apache-2.0
"""The module torch.backplane, whose functions PyTorch calls for the device type `backplane`."""
import os

import torch

_ops = torch.ops.backplane
_parent = os.getpid()


def index_of(device=None):
    """Returns the index of a device. `device` is an index, a torch.device, or a name such as "backplane:1".
    None means the current device."""
    if isinstance(device, int):
        return device
    index = torch.device(device).index if device is not None else None
    return current_device() if index is None else index


def is_available():
    return device_count() > 0


def is_initialized():
    return True


def device_count():
    return len(_ops.devices())


def current_device():
    return torch.accelerator.current_device_index()


def set_device(device):
    torch.accelerator.set_device_index(index_of(device))


class device(torch.accelerator.device_index):
    """Makes a device the current device within a `with` block."""

    def __init__(self, device):
        super().__init__(index_of(device))


def synchronize(device=None):
    torch.accelerator.synchronize(index_of(device))


def current_stream(device=None):
    return torch.accelerator.current_stream(index_of(device))


def _is_in_bad_fork():
    """Returns whether this process was forked after it imported the module. The process then cannot use devices
    that its parent opened."""
    return os.getpid() != _parent


def manual_seed(seed):
    _ops.manual_seed(current_device(), seed)


def manual_seed_all(seed):
    for index in range(device_count()):
        _ops.manual_seed(index, seed)


def initial_seed():
    return _ops.initial_seed(current_device())


def get_rng_state(device=None):
    return _ops.rng_state(index_of(device))


def set_rng_state(state, device=None):
    _ops.set_rng_state(index_of(device), state)


def get_amp_supported_dtype():
    return [torch.float16, torch.bfloat16]


def memory_stats(device=None):
    """Returns PyTorch's dictionary of memory statistics."""
    return torch.accelerator.memory_stats(index_of(device))


def memory_allocated(device=None):
    return torch.accelerator.memory_allocated(index_of(device))


def empty_cache():
    torch.accelerator.empty_cache()


Stream = torch.Stream
Event = torch.Event

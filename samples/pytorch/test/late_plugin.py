#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a plugin that is built after the package, and only adds and multiplies f32, becomes a PyTorch
device. Also tests that errors name what this plugin lacks, and a device whose free memory is unknown."""
import torch

import backplane_torch

assert backplane_torch.devices() == ["skeleton:0"], backplane_torch.devices()
device = backplane_torch.device("skeleton")
backplane_torch.forbid_fallbacks()
a, b = torch.arange(6.0).view(2, 3), torch.arange(3.0)
assert torch.equal((a.to(device) + b.to(device)).cpu(), a + b)
assert torch.equal((a.to(device).t() * 2).cpu(), a.t() * 2)
# Core decomposes composites that the plugin does not have. The error names the primitive that the plugin lacks.
for name, operator, body in (("exp", "exp", lambda: a.to(device).exp()), ("mm.out", "matmul", lambda: a.to(device) @ a.t().to(device)),
                             ("add.Tensor", "add", lambda: a.long().to(device) + 1),
                             ("threshold_backward", "its decomposition needs compare", lambda: torch.ops.aten.threshold_backward(a.to(device), a.to(device), 0))):
    try:
        body()
        raise SystemExit(f"{name}: no exception")
    except NotImplementedError as error:
        message = str(error)
    assert all(part in message for part in (f"aten::{name}", operator, "skeleton:0", "UNSUPPORTED")), message
assert torch.equal((a.to(device) + b.to(device)).cpu(), a + b), "the device works after errors"
# The plugin does not report free memory. The bridge then states the memory that the library has not reserved.
held = torch.empty(1 << 20, device=device)
free, total = torch.accelerator.get_memory_info(device.index)
assert 0 < total - free == torch.accelerator.memory_stats(device.index)["reserved_bytes.all.current"] >= held.nbytes, (free, total)

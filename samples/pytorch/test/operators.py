#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares operators on devices with the same operators on the CPU: operators.py DEVICE..."""
import os
import sys
import warnings

import torch
import torch.nn.functional as F

import backplane_torch
from cases import cases, gradients

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import tap

# Overloads that run on the CPU by design for some arguments. The test fails for every other fallback.
on_cpu = {"aten::div.out_mode", "aten::pow.Tensor_Scalar_out"}


class Maker:
    """Makes random tensors, which are the same on each device."""

    def __init__(self, device):
        self.device = device
        self.random = torch.Generator().manual_seed(7)

    def f(self, *shape):
        return torch.randn(shape, generator=self.random).to(self.device)

    def i(self, *shape, high=9):
        return torch.randint(0, high, shape, generator=self.random).to(self.device)


def fault(expected, found, device):
    """Returns a text that states how two results differ, or an empty string if they are equal."""
    if isinstance(expected, (list, tuple)):
        return "; ".join(filter(None, (fault(a, b, device) for a, b in zip(expected, found, strict=True))))
    if found.device != device:
        return f"the result is on {found.device}"
    try:
        torch.testing.assert_close(found.cpu(), expected, rtol=2e-5, atol=2e-5, equal_nan=True)
    except AssertionError as error:
        return str(error)
    return "" if found.stride() == expected.stride() or not expected.is_contiguous() or expected.numel() == 0 else f"strides {found.stride()}, not {expected.stride()}"


def gradient_results(device, function, shapes):
    maker = Maker(device)
    inputs = [maker.f(*shape).requires_grad_() for shape in shapes]
    result = function(*inputs)
    result.backward(maker.f(*result.shape))
    return [result.detach(), *(each.grad for each in inputs)]


def check(name, device, body):
    try:
        problem = fault(body(torch.device("cpu")), body(device), device)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    tap.check(name, not problem, problem)


def attention_gradients(device, dtype, causal):
    """Returns the gradients of an attention in `dtype`, converted to f64. All dtypes have the same inputs."""
    maker = Maker(device)
    inputs = [maker.f(2, 4, 70, 32).bfloat16().to(dtype).requires_grad_() for _ in range(3)]
    F.scaled_dot_product_attention(*inputs, is_causal=causal).backward(maker.f(2, 4, 70, 32).bfloat16().to(dtype))
    return [each.grad.double().cpu() for each in inputs]


def check_attention(device_name, device):
    """Compares the gradients of attention with the gradients that the CPU computes in f64. A limit applies to
    the norm of the difference, relative to the norm of the exact gradient."""
    for causal in (False, True):
        exact = attention_gradients("cpu", torch.float64, causal)
        for dtype, limit in ((torch.bfloat16, 4e-3), (torch.float32, 1e-6)):
            errors = [((a - b).norm() / b.norm()).item() for a, b in zip(attention_gradients(device, dtype, causal), exact)]
            tap.check(f"{device_name}: gradients of attention in {dtype}, causal {causal}: errors below {limit}", max(errors) < limit, errors)


warnings.filterwarnings("ignore", message="backplane: ")
for device_name in sys.argv[1:]:
    device = backplane_torch.device(device_name)
    for name, body in cases:
        check(f"{device_name}: {name}", device, lambda on: body(Maker(on)))
    for name, function, shapes in gradients:
        check(f"{device_name}: gradients of {name}", device, lambda on: gradient_results(on, function, shapes))
    check_attention(device_name, device)
unexpected = set(backplane_torch.fallbacks()) - on_cpu
tap.check("only the listed overloads run on the CPU", not unexpected, sorted(unexpected))
tap.done()

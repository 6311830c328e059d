#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the samples of PyTorch's own operator database (OpInfo) on devices, and compares the results with the
CPU's results: opinfo.py [--samples N] [--dtypes NAME,...] [--write FILE] DEVICE...

A sample is one call of an operator or of its in-place form. It includes the gradients if the operator is
differentiable. A sample is left out only if it needs an ATen overload for which the bridge has no kernel.
`--write` replaces the table in a page. The numbers in this table depend on the options --samples and --dtypes.
"""
import argparse
import collections
import itertools
import os
import re
import sys
import time
import unittest.mock
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import backplane_torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import tap

cpu = torch.device("cpu")
default_dtypes = "float32,int64,bool,bfloat16"
# Relative and absolute tolerances. PyTorch's own test that compares devices with the CPU (test_compare_cpu)
# uses 1e-3.
tolerances = {torch.float32: (1e-3, 1e-3), torch.float64: (1e-7, 1e-7), torch.float16: (4e-3, 4e-3), torch.bfloat16: (3e-2, 3e-2)}
orders = {"sort", "argsort", "topk", "msort"}  # operators that leave the order of equal elements open
# Operators whose statistics are f32 if the inputs have 16 bits, as in PyTorch's kernels for accelerators.
wide_statistics = {"native_layer_norm", "native_group_norm", "native_batch_norm"}
halves = {torch.float16, torch.bfloat16}
begin_mark, end_mark = "<!-- from opinfo.py -->", "<!-- end of opinfo.py -->"


def copied(value, device, to):
    """Returns a copy of nested arguments, which shares no memory with the original. Moves the tensors on
    `device` to `to`."""
    def copy(leaf):
        if isinstance(leaf, torch.Tensor):
            return leaf.detach().to(to if leaf.device == device else leaf.device, copy=True).requires_grad_(leaf.requires_grad)
        return to if isinstance(leaf, (str, torch.device)) and str(leaf) == str(device) else leaf
    return pytree.tree_map(copy, value)


def tensors(value):
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def widened(value):
    """Returns a copy of nested arguments, in which 16-bit floats are converted to f32."""
    def widen(leaf):
        if isinstance(leaf, torch.dtype) and leaf in halves:
            return torch.float32
        return leaf.detach().float().requires_grad_(leaf.requires_grad) if isinstance(leaf, torch.Tensor) and leaf.dtype in halves else leaf
    return pytree.tree_map(widen, value)


def results(call, sample, device, on, with_gradients, prepare=lambda arguments: arguments):
    """Moves the tensors of a sample from `device` to `on`, and calls the operator there. Returns its outputs,
    and the gradients of its inputs."""
    torch.manual_seed(3)
    given, args, kwargs = prepare(copied((sample.input, sample.args, sample.kwargs), device, on))
    result = call(given, *args, **kwargs)
    outputs = [leaf for leaf in pytree.tree_leaves(sample.output_process_fn_grad(result)) if leaf is not None]
    differentiable = [leaf for leaf in tensors(outputs) if leaf.requires_grad]
    inputs = [leaf for leaf in tensors((given, args, kwargs)) if leaf.requires_grad]
    if not with_gradients or not differentiable or not inputs:
        return outputs
    random = torch.Generator().manual_seed(5)
    # These numbers are exact in each dtype, so that results of several dtypes can be compared.
    seeds = [torch.randn(leaf.shape, generator=random).bfloat16().to(leaf.dtype).to(leaf.device) for leaf in differentiable]
    return outputs + [leaf for leaf in torch.autograd.grad(differentiable, inputs, seeds, allow_unused=True) if leaf is not None]


def difference(expected, found, random):
    """Returns a text that states how two lists of results differ, or an empty string. If `random` is
    true, compares only the shapes and dtypes of tensors."""
    if len(expected) != len(found):
        return f"{len(found)} results, not {len(expected)}"
    for a, b in zip(expected, found):
        if not isinstance(a, torch.Tensor):
            if type(a) is not type(b) or (a != b and not random and abs(a - b) > 1e-4 * abs(a)):
                return f"{b}, not {a}"
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{b.dtype}{list(b.shape)}, not {a.dtype}{list(a.shape)}"
        if not random:
            rtol, atol = tolerances.get(a.dtype, (0, 0))
            try:
                torch.testing.assert_close(b.detach().cpu(), a.detach(), rtol=rtol, atol=atol, equal_nan=True)
            except AssertionError as error:
                return str(error).replace("\n", " ")
    return ""


def accurate(call, sample, device, expected, found, with_gradients):
    """Compares the errors of 16-bit results, relative to the results in f32 on the CPU. Returns whether the
    device's error is at most twice the error of the CPU's 16-bit results. The device and the CPU round each
    step of a composition, so their results may differ by more than the tolerance."""
    if not any(leaf.dtype in halves for leaf in tensors(expected)) or difference(expected, found, True):
        return False
    try:
        exact = results(call, sample, device, cpu, with_gradients, widened)
    except Exception:
        return False
    for a, b, c in zip(expected, found, exact, strict=True):
        if not isinstance(a, torch.Tensor) or a.dtype not in halves:
            if difference([a], [b], False):
                return False
            continue
        a, b, c = a.detach().float(), b.detach().cpu().float(), c.detach()
        own, theirs = ((each - c).abs().nan_to_num(0).max() for each in (b, a))
        if not torch.equal(b.isnan(), c.isnan()) or own > 2 * theirs:
            return False
    return True


def select_equally(sample, expected, found):
    """Returns whether both results' indices select equal elements of the input. Then only the order of equal
    elements differs."""
    source = sample.input.detach().cpu()
    chosen = [[leaf.cpu() for leaf in leaves if leaf.dtype == torch.int64] for leaves in (expected, found)]
    if not all(chosen):  # there are no indices: the sorted values must be equal, and also the sorted gradients
        return all(torch.equal(a.detach().flatten().sort()[0], b.detach().cpu().flatten().sort()[0]) for a, b in zip(expected, found))
    a, b = (leaves[-1] for leaves in chosen)
    dims = [dim for dim in range(source.dim()) if int(b.min()) >= 0 and int(b.max()) < source.shape[dim]]
    return any(torch.equal(source.gather(dim, a), source.gather(dim, b)) for dim in dims)


def is_random(op, call, sample, device, expected):
    """Returns whether the results depend on the seed, or consist of uninitialised memory."""
    if "empty" in op.name:
        return True
    seed = torch.manual_seed
    with unittest.mock.patch("torch.manual_seed", lambda number: seed(number + 1)):  # some operators set a seed
        again = results(call, sample, device, cpu, False)
    return bool(difference(expected[:len(again)], again, False))


def run_sample(op, call, sample, device, on, with_gradients, expected):
    """Runs a sample, whose tensors are on `device`, on the device `on`. Returns the outcome and its reason."""
    try:
        found = results(call, sample, device, on, with_gradients)
        if op.name in wide_statistics:
            found = [b.to(a.dtype) if isinstance(b, torch.Tensor) and b.dtype == torch.float32 else b for a, b in zip(expected, found)]
    except NotImplementedError as error:
        reason = str(error)
        missing = re.search(r"aten::(\S+) has no kernel for Backplane", reason)
        return ("no kernel", missing[1]) if missing else ("refused", reason)
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}".replace("\n", " ")
    problem = difference(expected, found, False)
    if problem and not difference(expected, found, True):
        if op.name in orders and select_equally(sample, expected, found) or is_random(op, call, sample, device, expected):
            problem = ""
    if problem and accurate(call, sample, device, expected, found, with_gradients):
        problem = ""
    return ("wrong", problem) if problem else ("passed", "")


def calls_of(op, sample):
    """Returns the forms of an operator that are tested: the operator itself, and its in-place form if there is
    one."""
    forms = [("", op)]
    in_place = op.inplace_variant
    if in_place is not None and not sample.broadcasts_input and isinstance(sample.input, torch.Tensor):
        def write(given, *args, **kwargs):
            copy = given.clone()
            in_place(copy, *args, **kwargs)
            return copy
        forms.append((" in place", write))
    return forms


def expected_results(call, sample, device, with_gradients):
    """Returns the results of PyTorch on the CPU, or None if the CPU does not support the sample."""
    try:
        return results(call, sample, device, cpu, with_gradients)
    except Exception:
        return None


def samples_of(op, dtype, device, with_gradients, limit):
    """Makes samples on a device. While it makes them, operators may fall back to the CPU."""
    torch.manual_seed(11)
    backplane_torch.forbid_fallbacks(False)
    chosen = list(itertools.islice(op.sample_inputs(device, dtype, requires_grad=with_gradients), limit or None))
    backplane_torch.forbid_fallbacks()
    return chosen


def run(arguments):
    """Returns the counts of outcomes for each device, and reports each operator. All devices run the same
    samples, which are made on the first device."""
    devices = {name: backplane_torch.device(name) for name in arguments.devices}
    first = devices[arguments.devices[0]]
    counts = {name: collections.Counter() for name in devices}
    missing = collections.Counter()
    for op in op_db:
        faults, tested = {name: [] for name in devices}, collections.Counter()
        for dtype in (getattr(torch, name) for name in arguments.dtypes.split(",")):
            if dtype not in op.supported_dtypes("cpu"):
                continue
            gradients = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu") and dtype.is_floating_point
            for number, sample in enumerate(samples_of(op, dtype, first, gradients, arguments.samples)):
                for form, call in calls_of(op, sample):
                    expected = expected_results(call, sample, first, gradients)
                    for name, device in devices.items() if expected is not None else ():
                        outcome, reason = run_sample(op, call, sample, first, device, gradients, expected)
                        counts[name][outcome] += 1
                        tested[name] += outcome == "passed"
                        if outcome == "no kernel":
                            missing[reason] += 1
                        elif outcome != "passed":
                            faults[name].append(f"{dtype} sample {number}{form}: {outcome}: {reason[:300]}")
        for name in devices:
            if faults[name] or tested[name]:
                counts[name]["operators"] += 1
                wrong = [fault for fault in faults[name] if ": wrong: " in fault]
                variant = "." + op.variant_test_name if op.variant_test_name else ""
                tap.check(f"{name}: {op.name}{variant}: {tested[name]} samples", not wrong, "\n".join(wrong[:4]))
            if arguments.verbose:
                for fault in faults[name]:
                    print(f"# {name}: {op.name}: {fault}")
    if arguments.verbose:
        print(f"# overloads without a kernel: {missing.most_common()}")
    return counts


def main():
    parser = argparse.ArgumentParser(description="Runs PyTorch's OpInfo samples on devices.")
    parser.add_argument("devices", nargs="+")
    parser.add_argument("--samples", type=int, default=0, help="samples per operator and dtype; the default is all")
    parser.add_argument("--dtypes", default=default_dtypes)
    parser.add_argument("--write", help="the page whose table is replaced")
    parser.add_argument("--verbose", action="store_true", help="print each sample that did not pass")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    rows, start = [], time.process_time()
    for name, counts in run(arguments).items():
        tested = counts["passed"] + counts["wrong"] + counts["refused"]
        rows.append(f"| {name.split(':')[0]} | {counts['operators']} | {counts['passed']} / {tested} | {counts['wrong']} | {counts['refused']} | {counts['no kernel']} |")
        print(f"# {rows[-1]}")
    print(f"# {time.process_time() - start:.0f} s of CPU time")
    if arguments.write:
        header = "| plugin | operators | samples passed / run | wrong | refused with a message | left out: an overload without a kernel |\n|---|---|---|---|---|---|\n"
        with open(arguments.write, encoding="utf-8") as file:
            before, rest = file.read().split(begin_mark)
        with open(arguments.write, "w", encoding="utf-8") as file:
            file.write(before + begin_mark + "\n" + header + "\n".join(rows) + "\n" + end_mark + rest.split(end_mark)[1])
    tap.done()


if __name__ == "__main__":
    main()

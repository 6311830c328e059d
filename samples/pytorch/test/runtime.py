#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests devices, streams, events, random numbers, threads, errors and the end of the process: runtime.py DEVICE
DEVICE. The two devices must be different."""
import ctypes
import io
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading

import torch
import torch.nn.functional as F

import backplane_torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import tap

device, other = (backplane_torch.device(name) for name in sys.argv[1:])


def message_of(kind, body):
    """Returns the message of the exception that `body` raises. If `body` raises none, returns a text that no
    check accepts."""
    try:
        body()
    except kind as error:
        return str(error)
    except Exception as error:
        return f"<{type(error).__name__}> {error}"
    return "<no exception>"


def check_error(name, kind, body, *parts):
    message = message_of(kind, body)
    tap.check(name, all(part in message for part in parts) and not message.startswith("<"), message)


def program(text, **environment):
    """Runs a Python program in a separate process."""
    run = subprocess.run([sys.executable, "-c", "import os, sys, torch, backplane_torch\n" + text], capture_output=True, text=True,
                         env={**os.environ, **environment}, timeout=60, check=False)
    return run.returncode, run.stdout.strip(), run.stderr


# Devices and copies.
names = backplane_torch.devices()
tap.check("devices are sorted by name", names == sorted(names) and device.index == names.index(sys.argv[1]), names)
tap.check("tensors are backplane tensors", torch.ones(2, device=device).is_backplane, "")
x = torch.randn(5, 7)
tap.check("copies between devices of two plugins", torch.equal(x.to(device).to(other)[:, ::2].to(device).cpu(), x[:, ::2]), "")
tap.check("a tensor is printed", str(x[:1, :2].to(device)).startswith("tensor([["), "")
tap.check("a tensor is pickled", torch.equal(pickle.loads(pickle.dumps(x.to(device))).cpu(), x), "")
storage = torch.arange(4.0, device=device)
storage.resize_(6)[4:] = 9
tap.check("resize keeps the elements", storage.tolist() == [0, 1, 2, 3, 9, 9], storage)
pinned = torch.arange(1000.0).pin_memory()
copied = pinned.to(device, non_blocking=True)
back = torch.empty(1000, pin_memory=True)
back.copy_(copied + 1, non_blocking=True)
torch.accelerator.synchronize(device)
tap.check("copies of pinned memory do not wait", pinned.is_pinned() and torch.equal(back, pinned + 1) and not torch.ones(2).is_pinned(), "")
base = torch.zeros(3, 4, device=device)
base.t()[1].copy_(torch.arange(3.0))
# Views of a row, whose stride 5 of dimension 0 does not matter.
ones = {on: (torch.ones(1, 2, device=on), torch.ones(4, 5, device=on)[0:1, :2]) for on in ("cpu", device, other)}
rows = [torch.zeros(4, 5, device=to)[0:1, :2].copy_(each) for to in ones for on in ones for each in ones[on]]
rows += [torch.zeros(1, 2, device=to).copy_(each) for to in ones for on in ones for each in ones[on]]
tap.check("copies ignore the strides of dimensions with extent 1", all(each.tolist() == [[1, 1]] for each in rows), rows)
point = torch.nn.Conv2d(4, 6, 1)
states = [torch.nn.Conv2d(4, 6, 1).to(on, memory_format=form) for on in ("cpu", device, other) for form in (torch.channels_last, torch.contiguous_format)]
for each in states:
    each.load_state_dict(point.to(memory_format=torch.channels_last).state_dict())
tap.check("a convolution of 1x1 loads weights of another memory format", all(torch.equal(each.weight.cpu(), point.weight) for each in states), "")
tap.check("a view shares the memory of its base", base[:, 1].tolist() == [0, 1, 2], base)

file = io.BytesIO()
torch.save({"x": x.to(device), "state": torch.nn.Linear(2, 2).to(device).state_dict()}, file)
loaded = [torch.load(io.BytesIO(file.getvalue()), map_location=where) for where in (None, other, "cpu")]
tap.check("torch.load restores the device, or moves to another", [each["x"].device for each in loaded] == [device, other, torch.device("cpu")] and
          all(torch.equal(each["x"].cpu(), x) for each in loaded) and loaded[0]["state"]["weight"].device == device, loaded[0]["x"].device)
capsule = torch.utils.dlpack.to_dlpack(base)
alias = torch.utils.dlpack.from_dlpack(capsule)
alias += 1
tap.check("DLPack passes a view without a copy", alias.device == device and alias.data_ptr() == base.data_ptr() and base[0].tolist() == [1, 1, 1, 1], base)
# The table of C functions that PyTorch offers for DLPack. The first entries are its version and a pointer to an
# older table. kDLExtDev is 12.
get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
table = ctypes.cast(get_pointer(torch.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"), ctypes.POINTER(ctypes.c_void_p * 7)).contents
managed, again, stream_of_work = ctypes.c_void_p(), ctypes.py_object(), ctypes.c_void_p()
exchanged = [ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(table[3])(base, ctypes.addressof(managed)),
             ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))(table[4])(managed, ctypes.byref(again)),
             ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(table[6])(12, device.index, ctypes.addressof(stream_of_work))]
tap.check("PyTorch's table of C functions for DLPack passes tensors and the current stream", exchanged == [0, 0, 0] and stream_of_work.value and
          again.value.device == device and again.value.data_ptr() == base.data_ptr(), (exchanged, stream_of_work))
linear = torch.nn.Linear(7, 3).to(device)
with torch.autocast("backplane", dtype=torch.bfloat16):
    product = linear(x.to(device))
    loss = F.mse_loss(product.softmax(-1), torch.zeros(5, 3, device=device))
loss.backward()
tap.check("autocast computes products in 16 bits and losses in f32", [product.dtype, loss.dtype, linear.weight.grad.dtype] ==
          [torch.bfloat16, torch.float32, torch.float32], product.dtype)
backplane_torch.forbid_fallbacks()
compiled = torch.compile(lambda a: (a @ a.t()).relu().sum(), backend="eager")
tap.check("torch.compile with the backend eager", torch.allclose(compiled(x.to(device)).cpu(), (x @ x.t()).relu().sum(), atol=1e-4), "")
backplane_torch.forbid_fallbacks(False)

# Streams and events. An event without a stream argument is recorded on the current stream of the current
# device.
torch.accelerator.set_device_index(device.index)
stream, begin, end = torch.Stream(device=device), torch.Event(device=device, enable_timing=True), torch.Event(device=device, enable_timing=True)
a = torch.randn(64, 64, device=device)
begin.record()
stream.wait_event(begin)
with stream:
    b = a @ a
    a.record_stream(stream)
    end.record(stream)
end.synchronize()
tap.check("work on a second stream", torch.allclose(b.cpu(), a.cpu() @ a.cpu(), atol=1e-4) and end.query(), "")
tap.check("events measure time", begin.elapsed_time(end) >= 0, "")
torch.accelerator.set_device_index(other.index)
tap.check("the current device is used by default", torch.ones(1, device="backplane").device == other, "")
torch.accelerator.set_device_index(device.index)
torch.accelerator.synchronize()

numbers = [torch.tensor([7, value], dtype=dtype).to(device)[1].item() for value, dtype in (
    (-3, torch.int64), (True, torch.bool), (200, torch.uint8), (-1.5, torch.bfloat16), (0.25, torch.float16), (-1e300, torch.float64), (2 - 3j, torch.complex64), (9, torch.int16))]
tap.check("item() reads each dtype", numbers == [-3, True, 200, -1.5, 0.25, -1e300, 2 - 3j, 9], numbers)
pairs = torch.tensor([2 - 3j, 1 + 4j])
views = (pairs.to(device).conj(), torch._neg_view(pairs.real.contiguous().to(device)), torch._neg_view(pairs.to(device).conj()))
tap.check("conjugated and negated views are copied", [each.cpu().tolist() for each in views] == [[2 + 3j, 1 - 4j], [-2, -1], [-2 - 3j, -1 + 4j]] and
          [each[1].item() for each in views] == [1 - 4j, -1, -1 + 4j] and pairs.to(device).conj().copy_(pairs).clone().tolist() == pairs.tolist() and
          [each.to(other).tolist() for each in views] == [each.tolist() for each in views], "")
weights = torch.ones(3, device=device)
scaled = torch.ones(3, device=device, requires_grad=True) * weights
torch._foreach_add_([weights], 1)
check_error("autograd detects a list's kernel that changes a saved tensor", RuntimeError, scaled.sum().backward, "modified by an inplace operation", "version 1")
check_error("a gelu has two forms", RuntimeError, lambda: F.gelu(weights, approximate="sigmoid"), "aten::gelu", '"none" or "tanh"')
slow = torch.ones(300, 300, device=device)
for _ in range(5):
    slow = slow @ slow / 300
tap.check("item() waits for pending work", slow.sum().item() == 90000, "")

# Random numbers.
torch.manual_seed(3)
state = torch.backplane.get_rng_state(device)
first = torch.randn(1001, device=device)
torch.backplane.set_rng_state(state, device)
tap.check("a state repeats random numbers", torch.equal(first.cpu(), torch.randn(1001, device=device).cpu()), "")
torch.manual_seed(3)
tap.check("plugins draw the same numbers", torch.allclose(first.cpu(), torch.randn(1001, device=other).cpu(), atol=1e-5), "")


def drawn(on):
    """Draws random numbers of each kind. Their bits must be the same on each plugin."""
    torch.manual_seed(5)
    draws = [torch.rand(333, device=on, dtype=dtype) for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16)]
    strided = torch.zeros(9, 7, device=on).t()
    return [*draws, strided.uniform_(-2, 5), torch.rand(50, device=on).bernoulli(), torch.empty(50, device=on, dtype=torch.int64).bernoulli_(0.3),
            F.dropout(torch.ones(333, device=on, dtype=torch.bfloat16), 0.4), *torch.native_dropout(torch.ones(333, device=on), 0.4, True), torch.rand(3, device=on)]


tap.check("plugins draw the same uniform numbers", all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(drawn(device), drawn(other))), "")


def counters_of(body):
    """Returns the number of Philox counters that `body` takes from a generator. The state of a generator is a
    seed and a counter."""
    given = torch.Generator(device=device).manual_seed(9)
    body(given)
    return int.from_bytes(bytes(given.get_state().tolist()[8:]), sys.byteorder)


taken = [counters_of(lambda g: torch.rand(n, device=device, dtype=dtype, generator=g)) for n, dtype in ((4, torch.float32), (5, torch.float32), (5, torch.bfloat16), (5, torch.float64))]
taken += [counters_of(lambda g: torch.randn(n, device=device, dtype=dtype, generator=g)) for n, dtype in ((4, torch.float32), (5, torch.float32), (9, torch.float64))]
tap.check("draws advance a generator by the counters that they use", taken == [1, 2, 2, 3, 1, 2, 5], taken)
pair = torch.Generator(device=device).manual_seed(7)
parts = torch.cat([torch.rand(n, device=device, generator=pair) for n in (4, 8)])
pair.manual_seed(7)
tap.check("successive draws continue the sequence", torch.equal(parts.cpu(), torch.rand(12, device=device, generator=pair).cpu()), "")
whole = torch.randint(-3, 5, (20000,), device=device)
tap.check("randint draws each integer of its range", whole.unique().tolist() == list(range(-3, 5)) and abs(whole.float().mean().item() - 0.5) < 0.1, "")
waits = torch.empty(20000, device=device).exponential_(2)
tap.check("exponential_ has mean 1 / rate and no zeros", abs(waits.mean().item() - 0.5) < 0.02 and waits.min().item() > 0, "")
check_error("random integers are not drawn as floats", RuntimeError, lambda: torch.zeros(3, device=device, dtype=torch.int64).uniform_(), "aten::uniform_", "dtype of floats")
check_error("random integers fit the dtype", RuntimeError, lambda: torch.zeros(3, device=device, dtype=torch.int8).random_(0, 300), "out of bounds")
check_error("probabilities fit the tensor", RuntimeError, lambda: torch.zeros(3, device=device).bernoulli_(torch.ones(2, 3, device=device)), "[2, 3]")
check_error("the CPU draws from no generator of a device", NotImplementedError, lambda: torch.randint(0, 2**40, (3,), device=device, generator=torch.Generator(device=device)),
            "aten::random_", "omit the generator")
sample = torch.randn(20000, device=device)
tap.check("randn has mean 0 and deviation 1", abs(sample.mean().item()) < 0.03 and abs(sample.std().item() - 1) < 0.03, "")
generator = torch.Generator(device=device).manual_seed(3)
tap.check("a generator of the caller", torch.equal(torch.randn(1001, device=device, generator=generator).cpu(), first.cpu()) and
          generator.get_state().numel() == 16, "")
uniform = torch.rand(20000, device=device)
tap.check("rand is in [0, 1)", uniform.min().item() >= 0 and uniform.max().item() < 1 and abs(uniform.mean().item() - 0.5) < 0.02, "")
kept = F.dropout(torch.ones(20000, device=device), 0.25)
tap.check("dropout keeps and scales", abs(kept.mean().item() - 1) < 0.02 and set(kept.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}, "")

# Several threads use the default stream at once.
layer, faults = torch.nn.Linear(16, 16).to(device), []


def train():
    try:
        for _ in range(20):
            layer(torch.ones(8, 16, device=device)).square().mean().backward()
    except Exception as error:
        faults.append(error)


threads = [threading.Thread(target=train) for _ in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
tap.check("four threads run forward and backward", not faults, faults)

# Counters.
backplane_torch.reset_fallbacks()
torch.special.i0(torch.ones(3, device=device))
tap.check("a fallback is counted", backplane_torch.fallbacks() == {"aten::i0.out": 1}, backplane_torch.fallbacks())
before = backplane_torch.device_stats(device)["executions"]
torch.ones(3, device=device) + 1
tap.check("executions are counted", backplane_torch.device_stats(device)["executions"] == before + 2, "")
def memory(name):
    return torch.accelerator.memory_stats(device.index)[f"allocated_bytes.all.{name}"]


torch.accelerator.reset_peak_memory_stats(device.index)
torch.accelerator.reset_accumulated_memory_stats(device.index)
in_use = memory("current")
tap.check("a reset sets the peak to the current bytes, and the sums to 0", in_use > 0 and [memory("peak"), memory("allocated"), memory("freed")] == [in_use, 0, 0], "")
held, dropped = torch.empty(256, device=device), torch.empty(1024, device=device)
del dropped
tap.check("memory is counted", [memory(name) - in_use * (name in ("current", "peak")) for name in ("current", "peak", "allocated", "freed")] ==
          [1024, 5120, 5120, 4096] and torch.backplane.memory_allocated(device) == in_use + held.nbytes, torch.accelerator.memory_stats(device.index))

# Errors. Each message names the operator, the tensor and the remedy.
short = torch.ones(3, dtype=torch.int16).to(device)
check_error("a dtype without operators", NotImplementedError, lambda: short + 1, "aten::add.out", "Short", "convert the tensor")
check_error("a matrix product of integers", NotImplementedError, lambda: torch.ones(2, 2, dtype=torch.int64, device=device) @ torch.ones(2, 2, dtype=torch.int64, device=device),
            "aten::mm.out", "i64", sys.argv[1])
check_error("the CPU and a device in one call", RuntimeError, lambda: torch.ones(3, device=device) + torch.ones(3), "cpu", str(device))
check_error("the CPU and a device in one product", RuntimeError, lambda: torch.ones(2, 3, device=device) @ torch.ones(3, 2), "aten::mm", "cpu", f'.to("{device}")')
check_error("two devices in one product", RuntimeError, lambda: torch.ones(2, 3, device=device) @ torch.ones(3, 2, device=other), str(other), str(device))
check_error("nine dimensions", RuntimeError, lambda: torch.ones([1] * 9, device=device).exp(), "9 dimensions", "flatten")
check_error("shapes that do not agree", RuntimeError, lambda: torch.ones(2, 3, device=device) @ torch.ones(2, 3, device=device), "2x3")
check_error("an output of a dtype to which PyTorch does not convert", RuntimeError,
            lambda: torch.add(torch.ones(2, device=device), 1, out=torch.ones(2, dtype=torch.int64, device=device)), "aten::add.out", "Float", "Long")
narrow, wide = torch.ones(3, device=device), torch.ones(2, 3, dtype=torch.bool, device=device)
check_error("a mask that is larger than the tensor", RuntimeError, lambda: narrow.masked_fill_(wide, 0), "aten::masked_fill_.Scalar", "[2, 3]", "[3]")
check_error("a mask that is larger than the tensor, with a tensor's value", RuntimeError, lambda: narrow.masked_fill_(wide, torch.zeros((), device=device)),
            "aten::masked_fill_.Tensor", "[2, 3]", "[3]")
tap.check("a refused mask leaves the tensor unchanged", narrow.tolist() == [1, 1, 1], narrow)
for place, mask in (((), wide[:, :2]), ((), wide[:1]), ((slice(None),), wide[0, :2])):
    check_error(f"a mask {list(mask.shape)} from dimension {len(place)}", IndexError,
                lambda: torch.zeros(2, 3, device=device).__setitem__((*place, mask), torch.ones((), device=device)), "aten::_index_put_impl_", str(list(mask.shape)), "[2, 3]")
check_error("a negative extent", RuntimeError, lambda: torch.empty(2, -1, device=device), "negative")
check_error("a number of bytes that no integer represents", RuntimeError, lambda: torch.empty(1 << 40, 1 << 40, device=device), "overflow")
check_error("a layout that is not strided", RuntimeError, lambda: torch.empty(3, device=device, layout=torch.sparse_coo))
check_error("pinned memory of a device", RuntimeError, lambda: torch.empty(3, device=device, pin_memory=True), "pin")
check_error("a device that does not exist", RuntimeError, lambda: torch.empty(3, device="backplane:99"), "backplane:99", sys.argv[1])
check_error("a name that does not exist", ValueError, lambda: backplane_torch.device("missing"), "missing:0", sys.argv[1])
backplane_torch.forbid_fallbacks()
check_error("a forbidden fallback", NotImplementedError, lambda: torch.special.i0(torch.ones(3, device=device)), "aten::i0", "forbid_fallbacks")
backplane_torch.forbid_fallbacks(False)
check_error("more memory than there is", torch.OutOfMemoryError, lambda: torch.empty(1 << 50, device=device), "OUT_OF_MEMORY")
tap.check("the device works after errors", (torch.ones(3, device=device) + 1).tolist() == [2, 2, 2], "")

# A training step must not wait. The trace of the calls to the plugin contains all waits. It also contains calls
# of event_wait with timeout 0, with which the allocator polls now and then.
training = f"""
parameters = [torch.ones(shape, device='{device}', requires_grad=True) for shape in ((3,), (2, 2))]
optimizer = torch.optim.AdamW(parameters, fused=True)
for _ in range(int(os.environ["STEPS"])):
    optimizer.zero_grad()
    sum(each.square().sum() for each in parameters).backward()
    optimizer.step()
print(parameters[0].tolist())
first = parameters[0][0]
for _ in range(100):
    first.item()"""


def waits_of_training(steps):
    """Trains `steps` steps. Returns the number of calls to the plugin that wait or read memory, and the number
    of parameter updates."""
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.json")
        code, _, err = program(training, STEPS=str(steps), BACKPLANE_LAYERS="trace", BACKPLANE_TRACE=trace)
        if code != 0:
            return err, 0
        with open(trace, encoding="utf-8") as file:
            names = [event["name"] for event in json.load(file)["traceEvents"]]
    return sum(name in ("copy_out", "stream_wait", "event_wait") for name in names), names.count("sqrt") + names.count("adamw")


few, many = waits_of_training(2), waits_of_training(12)
tap.check("item() of an idle device calls no plugin", 0 < many[0] < 90, many)
tap.check("a step of the fused AdamW does not wait", many[0] - few[0] < 10 and (few[1], many[1]) == (4, 24), (few, many))

# Processes.
with tempfile.TemporaryDirectory() as empty:
    nowhere = {"BACKPLANE_PLUGIN_PATH": empty, "XDG_DATA_HOME": empty, "XDG_DATA_DIRS": empty, "HOME": empty}
    code, out, err = program("print(torch.accelerator.device_count()); torch.ones(1, device='backplane:0')", **nowhere)
    tap.check("no plugin", code == 1 and out == "0" and "BACKPLANE_PLUGIN_PATH" in err, f"{code} {out} {err}")
    with open(os.path.join(empty, "broken.json"), "w", encoding="utf-8") as file:
        file.write("{")
    code, out, err = program("import torch.utils.data\nprint(backplane_torch.unusable_plugins())\nprint(torch.ones(2).sum().item())", **nowhere)
    found = out.split("\n")
    tap.check("a plugin that cannot be loaded", code == 0 and "broken.json" in found[0], f"{code} {out} {err}")
    tap.check("the CPU without plugins", (code, found[1:]) == (0, ["2.0"]), f"{code} {out} {err}")
code, out, err = program(f"x = torch.ones(1000, 1000, device='{device}')\nfor _ in range(20): x = x @ x * 0.001\nkept = [x, None]; kept[1] = kept")
tap.check("the process exits while work is pending", code == 0 and not err, f"{code} {err}")
code, out, err = program(f"""
x = torch.ones(3, device='{device}'); x.sum().item()
child = os.fork()
if child == 0:
    try:
        x + 1
    except RuntimeError as error:
        print("UNAVAILABLE" in str(error), flush=True)
    del x
    os._exit(0)
print(os.waitpid(child, 0)[1], flush=True)
print((x + 1).tolist())""")
tap.check("a child of fork gets an exception", (code, out.split("\n")) == (0, ["True", "0", "[2.0, 2.0, 2.0]"]), f"{code} {out} {err}")
tap.done()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles modules for Intel GPUs: ocloc_test.py OCLOC MODULE.spv...

The test sets the width of sub-groups that the plugin would choose. For devices without f64, the
test skips modules that declare f64. If a module spills registers, the test compiles it again with
the large register file, as the plugin does. No kernel may then spill, except those in MAY_SPILL."""
import concurrent.futures
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import tap

CAPABILITY, FLOAT64 = 17, 10
EXECUTION_MODE, SUBGROUP_SIZE = 16, 35
WIDTH = 16  # the first choice of simt::choose_width
DEVICES = {"skl": True, "tgllp": False, "dg2": False, "pvc": True}  # whether the device has f64
LARGE = "-ze-opt-large-register-file"
# These kernels spill up to 512 bytes on dg2, because each kernel contains its loops once per kind
# of tile.
MAY_SPILL = re.compile("cross_entropy|norm|norm_bwd")


def instructions(words):
    """Yields the position, the opcode and the length of each instruction of a module."""
    at = 5
    while at < len(words):
        yield at, words[at] & 0xFFFF, words[at] >> 16
        at += words[at] >> 16


def module_for_plugin(path):
    """Returns the module with the plugin's width, and whether the module declares f64."""
    with open(path, "rb") as file:
        words = list(struct.unpack(f"<{os.path.getsize(path) // 4}I", file.read()))
    float64 = False
    for at, opcode, _ in instructions(words):
        if opcode == CAPABILITY and words[at + 1] == FLOAT64:
            float64 = True
        if opcode == EXECUTION_MODE and words[at + 2] == SUBGROUP_SIZE:
            words[at + 3] = WIDTH
    return struct.pack(f"<{len(words)}I", *words), float64


def compile_module(module, device, folder, *options):
    """Returns the compiler's output and the binary, which is empty if the compilation failed."""
    source = os.path.join(folder, "module.spv")
    with open(source, "wb") as file:
        file.write(module)
    run = subprocess.run([ocloc, "compile", "-spirv_input", "-file", source, "-device", device, "-output", "module",
                          "-out_dir", folder, "--format", "zebin", *options], capture_output=True, text=True, check=False)
    for name in os.listdir(folder):
        if run.returncode == 0 and name.endswith(".bin"):
            with open(os.path.join(folder, name), "rb") as file:
                return run.stdout + run.stderr, file.read()
    return run.stdout + run.stderr, b""


def kernels_of(binary):
    """Returns the bytes that each kernel spills per thread, from the section .ze_info of a binary."""
    begin = binary.find(b"kernels:")
    out, kernel, spill = {}, "", False
    for line in binary[max(begin, 0):].split(b"\0", 1)[0].decode("utf-8", "replace").splitlines():
        if name := re.match(r"  - name:\s*(\S+)", line):
            kernel = name[1]
            out.setdefault(kernel, 0)
        elif usage := re.match(r"\s*usage:\s*(\S+)", line):
            spill = usage[1] == "spill_fill_space"
        elif size := re.match(r"\s*size:\s*(\d+)", line):
            out[kernel] += int(size[1]) if spill else 0
            spill = False
    return out


def examine(device, module):
    """Compiles a module for a device. Returns the compiler's output, and the bytes that each kernel spills."""
    with tempfile.TemporaryDirectory() as folder:
        said, binary = compile_module(module, device, folder)
        found = kernels_of(binary)
        if any(found.values()):
            said, binary = compile_module(module, device, folder, "-options", LARGE)
            found = {kernel: min(size, found[kernel]) for kernel, size in kernels_of(binary).items()}
    return said, found


ocloc, *paths = sys.argv[1:]
modules = {os.path.basename(path): module_for_plugin(path) for path in sorted(paths)}
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    examined = {device: {name: pool.submit(examine, device, module)
                         for name, (module, float64) in modules.items() if has_f64 or not float64}
                for device, has_f64 in DEVICES.items()}
    for device, results in examined.items():
        failed, spilling, kernels = [], [], 0
        for name, result in results.items():
            said, found = result.result()
            kernels += len(found)
            if not found:
                failed.append(f"{name}: {said}")
            spilling += [f"{name}: {kernel}: {size} bytes" for kernel, size in found.items() if size and not MAY_SPILL.match(kernel)]
        print(f"# {device}: {kernels} kernels", flush=True)
        tap.check(f"{device}: {len(results)} modules compile", not failed, "\n".join(failed[:5]))
        tap.check(f"{device}: no kernel spills registers", not spilling, "\n".join(spilling))
tap.done()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the compiled kernels of the hip plugin: spills_test.py READELF ARCHITECTURES MODULE.hsaco...

A module is a bundle with one code object per architecture. The metadata of a code object states the width of
sub-groups, the largest group and the spilled registers of each kernel. No kernel may spill vector registers, except
those in MAY_SPILL."""
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import tap

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
GROUP_SIZES = (256, 128)  # kMaxGroupSize in runtime/stack.cpp, and the size of small blocks (device/block.h)
MAY_SPILL = re.compile("(?!)")


def code_objects(path):
    """Returns the code object of each architecture of a bundle."""
    with open(path, "rb") as file:
        data = file.read()
    if not data.startswith(MAGIC):
        return {}
    (count,), at, out = struct.unpack_from("<Q", data, len(MAGIC)), len(MAGIC) + 8, {}
    for _ in range(count):
        offset, size, length = struct.unpack_from("<3Q", data, at)
        target = data[at + 24:at + 24 + length].decode()
        at += 24 + length
        if size and not target.startswith("host"):
            out[target.split("--")[1]] = data[offset:offset + size]
    return out


def kernels_of(code):
    """Returns the metadata of each kernel, by the kernel's name: the number in each line of the form
    `.NAME: NUMBER`."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(code)
        file.flush()
        notes = subprocess.run([readelf, "--notes", file.name], capture_output=True, text=True, check=True).stdout
    kernels = notes.partition("amdhsa.kernels:")[2].partition("amdhsa.target:")[0]
    out = {}
    for part in re.split(r"^  - ", kernels, flags=re.MULTILINE)[1:]:
        name = re.search(r"^ *\.symbol: *'?(\w+)\.kd", part, re.MULTILINE)
        out[name[1]] = {key: int(value) for key, value in re.findall(r"^ {0,4}\.(\w+): *(\d+)$", part, re.MULTILINE)}
    return out


readelf, architectures, *paths = sys.argv[1:]
for architecture in architectures.split(","):
    width = 64 if architecture.startswith("gfx9") else 32
    missing, spilling, wrong, count = [], [], [], 0
    for path in sorted(paths):
        kernels = kernels_of(code_objects(path).get(architecture, b""))
        module = os.path.basename(path)
        if not kernels:
            missing.append(module)
        for name, facts in kernels.items():
            count += 1
            spilled = facts["vgpr_spill_count"]
            if spilled and not MAY_SPILL.fullmatch(name):
                spilling.append(f"{module}: {name}: {spilled} registers")
            if facts["wavefront_size"] != width or facts["max_flat_workgroup_size"] not in GROUP_SIZES:
                wrong.append(f"{module}: {name}: {facts}")
    print(f"# {architecture}: {count} kernels")
    tap.check(f"{architecture}: {len(paths)} modules have kernels", not missing, "\n".join(missing))
    tap.check(f"{architecture}: no kernel spills vector registers", not spilling, "\n".join(spilling))
    tap.check(f"{architecture}: sub-groups have {width} lanes and groups {GROUP_SIZES[0]} work items or fewer", not wrong, "\n".join(wrong))
tap.done()

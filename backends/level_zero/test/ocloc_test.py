#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles modules for Intel GPUs: ocloc_test.py [--record] OCLOC RESULTS MODULE.spv...

The test sets the width of sub-groups that the plugin would choose. For devices without f64, the
test skips modules that declare f64. If a module spills registers, the test compiles it again with
the large register file, as the plugin does. No kernel may then spill, except those in MAY_SPILL.

The compilation of all modules takes minutes. The file RESULTS contains results by the digest of the
compiler, the device and the module. The test compiles each module that has no result, and one
sixteenth of the other modules, whose results must not change. With --record, the test then writes
RESULTS. With a new compiler or changed kernels, the test is slow until someone runs it with --record."""
import concurrent.futures
import ctypes
import hashlib
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
FORMATS = ["-spirv_input", "--format", "zebin"]
LARGE = "-ze-opt-large-register-file"
REPEATED = 16  # a result in RESULTS is tested again if its digest is a multiple of this number
# These kernels spill up to 512 bytes on dg2, because each kernel contains its loops once per kind of tile (SIMT_TILE_*
# in backends/simt/device/tile_params.h). softmax_columns of f16, which keeps columns in registers, spills 1,024 bytes
# there. The GEMM kernels whose names contain `chunks` or `packs` are for few rows. The plugins use these kernels only
# with sub-groups of at least 32 threads (simt::has_few_rows), but the test compiles them for 16.
MAY_SPILL = re.compile("cross_entropy|norm|norm_bwd|softmax_columns|(matmul|quantized[48])_(chunks|packs)(_one)?$")

# The plugins compile these modules only for sub-groups of at least 32 threads (simt::has_blocks, ops/attention.cpp).
WIDE = re.compile("(conv|matmul)_block_|attention_blocks_")


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
    run = subprocess.run([ocloc, "compile", *FORMATS, "-file", source, "-device", device, "-output", "module",
                          "-out_dir", folder, *options], capture_output=True, text=True, check=False)
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


def compiler_digest():
    """Returns the digest of the compiler's files and options, or None if its library libigc.so.1 cannot be loaded."""
    try:
        ctypes.CDLL("libigc.so.1")  # ocloc loads this library
    except OSError:
        return None
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split()[-1] for line in maps if "/libigc.so" in line}
    digest = hashlib.sha256(repr([FORMATS, LARGE]).encode())
    for path in (ocloc, *sorted(paths)):
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.digest()


def read_results(path):
    """Returns the number of kernels and the bytes that each kernel spills, by digest."""
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file if not line.startswith("#")]
    return {digest: (int(kernels), {kernel: int(size) for kernel, size in (word.split("=") for word in spills)})
            for digest, kernels, *spills in lines}


def write_results(path, results):
    with open(path, "w", encoding="utf-8") as file:
        file.write("# Written by ocloc_test.py --record; do not edit. Each line contains the digest of a compiler, a device and a module,\n"
                   "# the number of kernels, and the bytes per thread of each kernel that spills.\n")
        for digest, (kernels, spills) in sorted(results.items()):
            file.write(" ".join([digest, str(kernels), *(f"{kernel}={size}" for kernel, size in spills.items())]) + "\n")


def examine(device, module):
    """Compiles a module for a device. Returns the compiler's output, the number of kernels, and the bytes that each
    kernel spills."""
    with tempfile.TemporaryDirectory() as folder:
        said, binary = compile_module(module, device, folder)
        found = kernels_of(binary)
        if any(found.values()):
            said, binary = compile_module(module, device, folder, "-options", LARGE)
            found = {kernel: min(size, found[kernel]) for kernel, size in kernels_of(binary).items()}
    return said, (len(found), {kernel: size for kernel, size in found.items() if size})


record = "--record" in sys.argv
ocloc, results_path, *paths = [word for word in sys.argv[1:] if word != "--record"]
compiler = compiler_digest()
known = {} if compiler is None else read_results(results_path)
modules = {os.path.basename(path): module_for_plugin(path) for path in sorted(paths)
           if not WIDE.match(os.path.basename(path))}
jobs = {(device, name): hashlib.sha256((compiler or b"") + device.encode() + module).hexdigest()[:32]
        for device, has_f64 in DEVICES.items() for name, (module, float64) in modules.items() if has_f64 or not float64}
results, differing = {}, []
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    pending = {job: pool.submit(examine, job[0], modules[job[1]][0])
               for job, digest in jobs.items() if digest not in known or int(digest, 16) % REPEATED == 0}
    for device in DEVICES:
        failed, spilling, all_kernels = [], [], 0
        own = {name: digest for (each, name), digest in jobs.items() if each == device}
        for name, digest in own.items():
            result = known.get(digest)
            if (device, name) in pending:
                said, result = pending[device, name].result()
                if not result[0]:
                    failed.append(f"{name}: {said}")
                if result != known.get(digest, result):
                    differing.append(f"{device}: {name}: {result} instead of {known[digest]}")
            results[digest] = result
            all_kernels += result[0]
            spilling += [f"{name}: {kernel}: {size} bytes" for kernel, size in result[1].items() if not MAY_SPILL.match(kernel)]
        compiled = sum(each == device for each, _ in pending)
        print(f"# {device}: {all_kernels} kernels; {compiled} of {len(own)} modules were compiled now", flush=True)
        tap.check(f"{device}: {len(own)} modules compile", not failed, "\n".join(failed[:5]))
        tap.check(f"{device}: no kernel spills registers", not spilling, "\n".join(spilling))
tap.check("modules that were compiled again have the results of the file", not differing, "\n".join(differing[:5]))
if record and compiler is not None:
    write_results(results_path, {digest: result for digest, result in results.items() if result[0]})
tap.done()

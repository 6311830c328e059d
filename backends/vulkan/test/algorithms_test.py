#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests every GEMM algorithm and reduction setting that the device supports: algorithms_test.py COMMAND LIBRARY

The device does not open with an algorithm that is unknown or that it does not support. The error names the setting and
the remedy."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import certified
import tap

command, library = sys.argv[1:]
certified.skip_without_device(command, library)


def refused(algorithm):
    """Returns the reason why the device does not open with this setting, or an empty string if it opens."""
    run = subprocess.run([command, "run", "matmul", "--device", "vulkan:0", "--repeat", "0"], capture_output=True, text=True, check=False,
                         env={**os.environ, "BACKPLANE_PLUGIN_PATH": os.path.dirname(library), "BACKPLANE_VULKAN_MATMUL": algorithm})
    return run.stderr if run.returncode != 0 else ""


def deep(algorithm):
    """Returns the printed result of a GEMM whose K is so long that every algorithm uses split-K. The dtype is an
    integer, so that all algorithms agree."""
    run = subprocess.run([command, "run", "matmul", "--device", "vulkan:0", "--dtype", "i8", "--shape", "65x65536", "--shape", "65536x65", "--repeat", "0"],
                         capture_output=True, text=True, check=False,
                         env={**os.environ, "BACKPLANE_PLUGIN_PATH": os.path.dirname(library), "BACKPLANE_VULKAN_MATMUL": algorithm})
    return run.stdout.partition("output 0:")[2].rpartition("]")[0] or run.stderr


def check_passes(what, groups, least, **environment):
    certificate, said, _ = certified.certify(command, library, "--profile", "train", "--timeout", "300", *certified.filters(groups),
                                             environment=environment)
    if certificate is None:
        sys.exit(said)
    certified.check_failures(f"{what}: no case fails", certified.failures_of(certificate))
    passed = certificate["verdict"]["counts"]["pass"]
    tap.check(f"{what}: cases pass", passed >= least, f"{passed} passed")


said = refused("sideways")
tap.check("an unknown algorithm is refused by name", "sideways" in said and "direct" in said, said)
# The groups cover whole and partial tiles, single rows, batches, every layout, split-K (33,000 and
# 70,001 terms), and integers with zero points. They exclude the suite's case of 70,001 matrices,
# which is slow with algorithms that a device would not choose.
groups = [f"numeric.matmul.{dtypes}.{shape}" for dtypes in ("f32", "f16", "i8", "u8_i8")
          for shape in ("9x11", "17x19", "65x34", "33x32", "1x5", "3x5x6", "66x3", "3x33")]
groups += [f"numeric.quantized_matmul.{dtypes}.{shape}" for dtypes in ("f32_i8", "bf16_u8") for shape in ("19x131", "19x5", "2x5x4")]
groups += ["numeric.linear.bf16", "numeric.conv_transpose.f32", "numeric.conv_bwd_weight.bf16"]
listed = subprocess.run([command, "certify", library, "--list", "--profile", "train"], capture_output=True, text=True, check=False).stdout.split()
groups = [group for group in groups if any(case.startswith(group + ".") for case in listed)]  # not every dtype has every shape
tap.check("each dtype of the products has cases", len({group.split(".")[2] for group in groups}) == 7, groups)
ran, results = 0, {}
for algorithm in ("direct", "shared", "subgroup", "cooperative", "dot", "wide"):
    said = refused(algorithm)
    if said:
        tap.check(f"{algorithm}: the refusal says what is lacking", "BACKPLANE_VULKAN_MATMUL" in said and "unset it" in said, said)
        continue
    ran += 1
    results[algorithm] = deep(algorithm)
    wanted = [group for group in groups if algorithm != "dot" or "8" in group.split(".")[2]]  # the other dtypes use `shared`
    check_passes(algorithm, wanted, 60 if algorithm == "dot" else 300, BACKPLANE_VULKAN_MATMUL=algorithm)
tap.check("all algorithms give the same result for a long K", len(set(results.values())) == 1 and "[[" in results["direct"], json.dumps(results, indent=1))
tap.check("the device has algorithms that need no extension", ran >= 2, str(ran))
# Runs the reduction and copy kernels for GPUs, once with shuffles and once with shared memory. Rows
# of at least 1,025 elements stay in registers.
reductions = ["numeric.softmax.f32", "numeric.softmax_bwd.bf16", "numeric.log_softmax.f16", "numeric.layer_norm.f16", "numeric.group_norm.f32",
        "numeric.batch_norm.bf16", "numeric.norm_bwd.f32", "numeric.cross_entropy.f16", "numeric.reduce_sum.f32", "numeric.topk.i64",
        "numeric.copy.u8", "numeric.copy.f32", "numeric.copy.i64"]
for tuning, subgroups in (("gpu", "on"), ("gpu", "off")):
    check_passes(f"reductions as on a {tuning}, subgroups {subgroups}", reductions, 1000, BACKPLANE_VULKAN_ROWS=tuning, BACKPLANE_VULKAN_SUBGROUPS=subgroups)
tap.done()

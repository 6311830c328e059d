#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each way to multiply and through rows that the device has, also those that it would not choose: algorithms_test.py COMMAND LIBRARY

A setting that names none, or one that the device lacks, is refused when the device is opened, with the ways that there are."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import certified
import tap

command, library = sys.argv[1:]
certified.skip_without_device(command, library)


def refused(way):
    """-> why the device does not open with this setting; empty: it does."""
    run = subprocess.run([command, "run", "matmul", "--device", "vulkan:0", "--repeat", "0"], capture_output=True, text=True, check=False,
                         env={**os.environ, "BACKPLANE_PLUGIN_PATH": os.path.dirname(library), "BACKPLANE_VULKAN_MATMUL": way})
    return run.stderr if run.returncode != 0 else ""


def deep(way):
    """-> a product of sums so long that an invocation of no driver may take one whole, as it is printed; whole numbers, so all ways agree."""
    run = subprocess.run([command, "run", "matmul", "--device", "vulkan:0", "--dtype", "i8", "--shape", "65x65536", "--shape", "65536x65", "--repeat", "0"],
                         capture_output=True, text=True, check=False,
                         env={**os.environ, "BACKPLANE_PLUGIN_PATH": os.path.dirname(library), "BACKPLANE_VULKAN_MATMUL": way})
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
tap.check("a way that is none is refused by name", "sideways" in said and "direct" in said, said)
# Whole and cut tiles, a row, a batch, every layout, sums of 33,000 and 70,001 terms, which are divided; integer rows with zero points. 70,001 matrices, which the suite has
# too, are slow in a way that a device would not take.
groups = [f"numeric.matmul.{dtypes}.{shape}" for dtypes in ("f32", "f16", "i8", "u8_i8")
          for shape in ("9x11", "17x19", "65x34", "33x32", "1x5", "3x5x6", "66x3", "3x33")]
groups += [f"numeric.quantized_matmul.{dtypes}.{shape}" for dtypes in ("f32_i8", "bf16_u8") for shape in ("19x131", "19x5", "2x5x4")]
groups += ["numeric.linear.bf16", "numeric.conv_transpose.f32", "numeric.conv_bwd_weight.bf16"]
listed = subprocess.run([command, "certify", library, "--list", "--profile", "train"], capture_output=True, text=True, check=False).stdout.split()
groups = [group for group in groups if any(case.startswith(group + ".") for case in listed)]  # not each shape is there for each dtype
tap.check("each dtype of the products has cases", len({group.split(".")[2] for group in groups}) == 7, groups)
ran, products = 0, {}
for way in ("direct", "shared", "subgroup", "cooperative", "dot"):
    said = refused(way)
    if said:
        tap.check(f"{way}: the refusal says what is lacking", "BACKPLANE_VULKAN_MATMUL" in said and "unset it" in said, said)
        continue
    ran += 1
    products[way] = deep(way)
    asked = [group for group in groups if way != "dot" or "8" in group.split(".")[2]]  # the others go the way `shared`
    check_passes(way, asked, 60 if way == "dot" else 300, BACKPLANE_VULKAN_MATMUL=way)
tap.check("all ways give one deep product", len(set(products.values())) == 1 and "[[" in products["direct"], json.dumps(products, indent=1))
tap.check("the device has ways that need nothing of it", ran >= 2, str(ran))
# Rows as on a GPU: workgroups hold those of 1,025 elements and more, and copy by tiles; joined by shuffles, or in shared memory.
rows = ["numeric.softmax.f32", "numeric.softmax_bwd.bf16", "numeric.log_softmax.f16", "numeric.layer_norm.f16", "numeric.group_norm.f32",
        "numeric.batch_norm.bf16", "numeric.norm_bwd.f32", "numeric.cross_entropy.f16", "numeric.reduce_sum.f32", "numeric.topk.i64",
        "numeric.copy.u8", "numeric.copy.f32", "numeric.copy.i64"]
for way, subgroups in (("gpu", "on"), ("gpu", "off")):
    check_passes(f"rows as on a {way}, subgroups {subgroups}", rows, 1000, BACKPLANE_VULKAN_ROWS=way, BACKPLANE_VULKAN_SUBGROUPS=subgroups)
tap.done()

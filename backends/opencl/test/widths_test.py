#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Certifies the kernels that depend on the width of sub-groups, at each width that the first device offers:
widths_test.py COMMAND LIBRARY OPERATOR[.DTYPE]..."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import certified
import tap

command, library, *operators = sys.argv[1:]
certified.skip_without_device(command, library)
for width in ("8", "16", "64"):  # certify_opencl_simt certifies 32
    environment = {"BACKPLANE_OPENCL_SUBGROUP": width}
    said = certified.listing(command, [os.path.dirname(library)], environment)
    if "opencl:0" not in said:
        tap.check(f"width {width}: the device does not offer it, and the message says so", "does not offer" in said, said)
        continue
    groups = [f"numeric.{operator}" for operator in operators]
    certificate, output, _ = certified.certify(command, library, "--profile", "train", *certified.filters(groups), environment=environment)
    if certificate is None:
        sys.exit(output)
    certified.check_failures(f"width {width}: no case fails", certified.failures_of(certificate))
    for operator in operators:
        passed = certificate["groups"][f"numeric.{operator.split('.')[0]}"]["counts"]["pass"]
        tap.check(f"width {width}: cases of {operator} pass", passed >= 20, f"{passed} passed")
tap.done()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests two processes that use one device and one pipeline cache at once: together_test.py COMMAND LIBRARY

Both processes pass and leave one valid file. Then the test damages the file. A third process passes and replaces the
damaged file."""
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import certified
import tap

command, library = sys.argv[1:]
certified.skip_without_device(command, library)


def passes(folder):
    certificate, said, _ = certified.certify(command, library, "--profile", "core", "--filter", "numeric.neg", "--filter", "runtime.stream",
                                        environment={"BACKPLANE_VULKAN_CACHE": folder})
    return certificate is not None and not certified.failures_of(certificate) and certificate["verdict"]["counts"]["pass"] >= 100, said


with tempfile.TemporaryDirectory() as folder:
    with ThreadPoolExecutor(2) as pool:
        for name, (passed, said) in zip(("one", "the other"), pool.map(passes, [folder] * 2)):
            tap.check(f"{name} of two at once passes", passed, said)
    files = os.listdir(folder)
    tap.check("they leave one file", len(files) == 1 and files[0].endswith(".cache"), str(files))
    path = os.path.join(folder, files[0])
    whole = os.path.getsize(path)
    os.truncate(path, whole // 2)
    passed, said = passes(folder)
    tap.check("one that finds it damaged passes", passed, said)
    tap.check("and replaces it", os.listdir(folder) == files and os.path.getsize(path) == whole, str(os.listdir(folder)))
tap.done()

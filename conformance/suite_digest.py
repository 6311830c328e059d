#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a header with the suite's version and SHA-256: suite_digest.py VERSION OUT DEPFILE ROOT.

The digest covers all files that affect an outcome or a verdict: cases, harness, oracle, their headers, the rules of
the verdict, and the operator tables. Files are hashed in the order of their names, so that two builds of the same
sources have the same digest."""
import hashlib
import os
import sys

folders = ("conformance/cases", "conformance/harness", "conformance/oracle", "abi/include/backplane")
files = ("conformance/report/verdict.cpp", "conformance/report/verdict.hpp")

version, out, depfile, root = sys.argv[1:]
names = list(files)
for folder in folders:
    for directory, _, found in os.walk(os.path.join(root, folder)):
        names += [os.path.relpath(os.path.join(directory, name), root) for name in found if name.endswith((".cpp", ".hpp", ".h", ".def"))]
digest = hashlib.sha256()
for name in sorted(name.replace(os.sep, "/") for name in names):
    with open(os.path.join(root, name), "rb") as file:
        content = file.read()
    digest.update(f"{name} {len(content)}\n".encode())
    digest.update(content)
with open(out, "w", encoding="utf-8") as file:
    file.write(f'#define BACKPLANE_SUITE_VERSION "{version}"\n#define BACKPLANE_SUITE_DIGEST "{digest.hexdigest()}"\n')
with open(depfile, "w", encoding="utf-8") as file:
    file.write(f"{out}: " + " ".join(os.path.join(root, name).replace(" ", "\\ ") for name in sorted(names)) + "\n")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A header with the version and the SHA-256 of the suite's sources: suite_digest.py VERSION OUT FILE...

The digest goes over the contents in the order of the file names, so that two builds of the same sources agree."""
import hashlib
import os
import sys

version, out, files = sys.argv[1], sys.argv[2], sys.argv[3:]
digest = hashlib.sha256()
for path in sorted(files, key=lambda path: path.split("conformance" + os.sep)[-1]):
    with open(path, "rb") as file:
        content = file.read()
    digest.update(f"{os.path.basename(path)} {len(content)}\n".encode())
    digest.update(content)
with open(out, "w", encoding="utf-8") as file:
    file.write(f'#define BACKPLANE_SUITE_VERSION "{version}"\n#define BACKPLANE_SUITE_DIGEST "{digest.hexdigest()}"\n')

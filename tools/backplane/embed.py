#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of the skeleton as C++, for `backplane new`: embed.py OUT FILE..."""
import os
import sys

out, *files = sys.argv[1:]
with open(out, "w", encoding="utf-8") as target:
    target.write('// Made by embed.py from samples/skeleton_plugin.\n#include "skeleton.hpp"\n\nnamespace tool {\n\n'
                 "const std::vector<SkeletonFile>& skeleton_files() {\n  static const std::vector<SkeletonFile> files = {\n")
    for file in files:
        with open(file, encoding="utf-8") as source:
            text = source.read()
        if ')embedded"' in text:
            sys.exit(f"embed.py: {file} holds the delimiter )embedded\"")
        target.write(f'      {{"{os.path.basename(file)}", R"embedded({text})embedded"}},\n')
    target.write("  };\n  return files;\n}\n\n}  // namespace tool\n")

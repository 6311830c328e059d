#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of shapes as C++, for `backplane bench ops`: embed_shapes.py OUT FILE..."""
import os
import sys

out, *files = sys.argv[1:]
with open(out, "w", encoding="utf-8") as target:
    target.write('// Made by embed_shapes.py from tools/bench/shapes.\n#include "bench/shape_file.hpp"\n\nnamespace tool {\n\n'
                 "const std::vector<ShapeFile>& shape_files() {\n  static const std::vector<ShapeFile> files = {\n")
    for file in files:
        with open(file, encoding="utf-8") as source:
            text = source.read()
        if ')shapes"' in text:
            sys.exit(f"embed_shapes.py: {file} holds the delimiter )shapes\"")
        target.write(f'      {{"{os.path.basename(file)}", R"shapes({text})shapes"}},\n')
    target.write("  };\n  return files;\n}\n\n}  // namespace tool\n")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes files as C++, as a function of embedded_file.hpp gives them: embed.py FUNCTION OUT FILE..."""
import os
import sys

function, out, *files = sys.argv[1:]
with open(out, "w", encoding="utf-8") as target:
    target.write('// Made by embed.py.\n#include "embedded_file.hpp"\n\nnamespace tool {\n\n'
                 f"const std::vector<EmbeddedFile>& {function}() {{\n  static const std::vector<EmbeddedFile> files = {{\n")
    for file in files:
        with open(file, encoding="utf-8") as source:
            text = source.read()
        if ')embedded"' in text:
            sys.exit(f"embed.py: {file} holds the delimiter )embedded\"")
        target.write(f'      {{"{os.path.basename(file)}", R"embedded({text})embedded"}},\n')
    target.write("  };\n  return files;\n}\n\n}  // namespace tool\n")

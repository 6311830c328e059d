#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C++ function that returns the contents of FILE..., for embedded_file.hpp: embed.py FUNCTION OUT
FILE..."""
import os
import sys

function, out, *files = sys.argv[1:]


def array_of(name, content):
    """Returns the bytes as a char array. Compilers limit the length of a string literal."""
    values = [f"'\\x{byte:02x}'" for byte in content + b"\0"]
    lines = [", ".join(values[at:at + 16]) for at in range(0, len(values), 16)]
    return f"constexpr char {name}[] = {{\n    " + ",\n    ".join(lines) + "};\n"


contents = []
for file in files:
    with open(file, "rb") as source:
        contents.append(source.read())
with open(out, "w", encoding="utf-8") as target:
    target.write('// Made by embed.py.\n#include "embedded_file.hpp"\n\nnamespace tool {\n\nnamespace {\n\n')
    target.writelines(array_of(f"{function}_{i}", content) for i, content in enumerate(contents))
    target.write(f"\n}}  // namespace\n\nconst std::vector<EmbeddedFile>& {function}() {{\n"
                 "  static const std::vector<EmbeddedFile> files = {\n")
    target.writelines(f'      {{"{os.path.basename(file)}", {{{function}_{i}, {len(contents[i])}}}}},\n' for i, file in enumerate(files))
    target.write("  };\n  return files;\n}\n\n}  // namespace tool\n")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes SPIR-V as C++ arrays: embed_shaders.py OUT.cpp HEADER NAMESPACE NAME.spv...

HEADER declares Shader, kShaders and kShaderCount in NAMESPACE."""
import array
import os
import sys

out, header, namespace, *modules = sys.argv[1:]
with open(out, "w", encoding="utf-8") as file:
    file.write(f'// SPDX-License-Identifier: Apache-2.0\n#include "{header}"\n\nnamespace {namespace} {{\n\nnamespace {{\n')
    entries = []
    for module in modules:
        name = os.path.splitext(os.path.basename(module))[0]
        with open(module, "rb") as binary:
            words = array.array("I", binary.read())
        if not words or words[0] != 0x07230203:
            sys.exit(f"{module} is not SPIR-V in this machine's byte order")
        file.write(f"constexpr uint32_t k_{name}[] = {{{','.join(map(hex, words))}}};\n")
        entries.append(f'    {{"{name}", k_{name}, {len(words)}}},\n')
    file.write("}  // namespace\n\nconst Shader kShaders[] = {\n" + "".join(entries) + "};\n")
    file.write(f"const std::size_t kShaderCount = {len(entries)};\n\n}}  // namespace {namespace}\n")

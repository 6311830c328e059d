#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each public C header alone, as C11 and as C++20: headers_alone.py INCLUDE... HEADER...

Uses each compiler of `languages` that is installed. INCLUDE is a directory. HEADER is a name as in
an #include. -Wpadded is an error, because no struct may have a hole."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/checks"))
import tap

flags = "-fsyntax-only -Wall -Wextra -Wpedantic -Wpadded -Werror".split()
languages = {"c": ("gcc", "clang-16", "-std=c11"), "cpp": ("g++", "clang++-16", "-std=c++20")}

includes = [argument for argument in sys.argv[1:] if os.path.isdir(argument)]
headers = [argument for argument in sys.argv[1:] if not os.path.isdir(argument)]


def compile_text(compiler, standard, extension, text):
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "alone." + extension)
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        command = [compiler, standard, *flags, *[f"-I{path}" for path in includes], source]
        return subprocess.run(command, capture_output=True, text=True, check=False)


for extension, (*compilers, standard) in languages.items():
    found = [compiler for compiler in compilers if shutil.which(compiler)]
    tap.check(f"a compiler for {standard}", found, f"none of {', '.join(compilers)} is installed")
    for compiler in found:
        for header in headers:
            text = f"#include <{header}>\n#include <{header}>\nint not_empty;\n"
            run = compile_text(compiler, standard, extension, text)
            tap.check(f"{header} {compiler} {standard}", run.returncode == 0, run.stderr)
        hole = "#include <backplane/base.h>\nstruct hole { uint32_t a; uint64_t b; };\nint size[sizeof(struct hole)];\n"
        tap.check(f"a planted hole is an error {compiler} {standard}",
                  "padd" in compile_text(compiler, standard, extension, hole).stderr, "accepted")
tap.done()

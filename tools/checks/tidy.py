#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the shipped sources of a build: tidy.py BUILD [PATTERN].

Most of clang-tidy's time goes into standard headers. In a unity build the script therefore checks each translation
unit, which joins several sources. In other builds it checks the sources one by one. PATTERN is a regular expression for
paths; a unit is checked if it contains a source that matches. Prints each finding once, then a TAP line."""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

import tap

shipped = r"(core/src|backends/(cache|cpu_kernels|cuda|gpu_host|hip|level_zero|onednn|opencl|reference|simt|vulkan)|samples|tools/(backplane|bench)|conformance)/"
# Debian's clang has no omp.h, which the peers of the benchmarks include.
excluded = r"(^|/)(test|mutants|peers)/"
# Compile options that clang-tidy does not need. The build itself reports the compiler's warnings. A precompiled header
# fits only the compiler that wrote it. gcc names such a header with -include.
dropped = re.compile(r"-W.*|-fsanitize=.*|-M[DQF]|-o|-c|-include(-pch)?|-fpch-preprocess|-fcolor-diagnostics|-fdiagnostics-color=.*")
with_value = ("-MQ", "-MF", "-o", "-include", "-include-pch", "-c")


def arguments_of(entry):
    """Returns the compile options, without the compiler, the source and dropped options."""
    words, kept = shlex.split(entry["command"]), []
    skip = False
    for word in words[1:]:
        if skip or dropped.fullmatch(word):
            skip = not skip and word in with_value
        elif word != entry["file"] and not word.endswith(("c++", "clang++", "clang++-16")):
            kept.append(word)
    return tuple(kept)


def is_joined(unit):
    """Returns whether a unity build made this translation unit."""
    return re.search(r"-unity\d+\.cpp$", unit) is not None


def sources_of(unit):
    """Returns the sources of a translation unit."""
    if not is_joined(unit):
        return [unit]
    with open(unit, encoding="utf-8") as file:
        return [os.path.normpath(path) for path in re.findall(r"#include ?<(.+)>", file.read())]


def check(unit, options, directory):
    """Returns the findings of clang-tidy for a translation unit."""
    # The sources of a joined unit are included files.
    joined = ["--header-filter=/(abi|core|backends|conformance|samples|tools)/.*\\.(h|hpp|cpp)$", "--checks=-bugprone-suspicious-include"]
    run = subprocess.run(["clang-tidy-16", "-quiet", f"--config-file={root}/.clang-tidy", *(joined if is_joined(unit) else []), unit, "--", "-w", *options],
                         capture_output=True, text=True, cwd=directory, check=False)
    return run.stdout if run.returncode else ""


def findings_of(outputs, directory):
    """Returns each finding once, except those in sources that the build generates in its directory."""
    found = []
    for output in outputs:
        for block in re.split(r"^(?=\S+:\d+:\d+: (?:warning|error))", output, flags=re.M):
            located = re.match(r"(\S+):\d+:\d+: ", block)
            generated = located and os.path.normpath(os.path.join(directory, located[1])).startswith(directory + os.sep)
            if block.strip() and block not in found and not generated:
                found.append(block)
    return found


build = os.path.abspath(sys.argv[1])
wanted = re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
root = os.getcwd()
with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
    entries = json.load(file)
units, seen = [], set()
for entry in entries:
    unit = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
    sources = [os.path.relpath(path, root) for path in sources_of(unit)]
    # The growth test compiles core's sources again as a later version.
    new = {name for name in sources if name.endswith(".cpp") and re.match(shipped, name) and not re.search(excluded, name) and wanted.search(name)} - seen
    if new and "abi/test" not in entry["output"]:
        seen |= new
        units.append((len(sources), unit, arguments_of(entry), entry["directory"]))
units.sort(reverse=True)  # the longest first

with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    results = list(pool.map(lambda unit: check(*unit[1:]), units))
    # As in a build, the unit names the sources by a path through the directory of the build.
    planted = os.path.join(scratch, "build", "planted-unity0.cpp")
    for folder in ("build", "core"):
        os.mkdir(os.path.join(scratch, folder))
    with open(planted, "w", encoding="utf-8") as joined:
        for name in ("first", "second"):
            joined.write(f"#include<{scratch}/build/../core/{name}.cpp>\n")
            with open(os.path.join(scratch, "core", f"{name}.cpp"), "w", encoding="utf-8") as file:
                file.write(f"void Planted_{name}() {{}}\n")
    directory = os.path.dirname(planted)
    together = "".join(findings_of([check(planted, ("-std=c++20",), directory)], directory))
findings = findings_of(results, build)
print(f"# {len(seen)} sources in {len(units)} translation units")
tap.check("clang-tidy finds nothing", not findings, "".join(findings))
tap.check("planted findings of sources that a unit joins are found", all(f"'Planted_{name}'" in together for name in ("first", "second")), together)
tap.check("sources are checked", len(seen) > 0, f"{build}/compile_commands.json names no shipped source that matches")
tap.done()

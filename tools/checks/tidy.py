#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the shipped sources of a build: tidy.py BUILD [PATTERN].

Most of clang-tidy's time goes into standard headers. The script therefore checks several translation units with the
same options at once. In a unity build, each unit joins several sources. If units cannot be compiled together, the
script splits them into halves and checks each half. PATTERN is a regular expression; the script checks only units that
contain a source whose path matches it. Prints each finding once, then a TAP line."""
import concurrent.futures
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile

import tap

shipped = r"(core/src|backends/(cache|cpu_kernels|cuda|gpu_host|hip|level_zero|onednn|opencl|reference|simt|vulkan)|samples|tools/(backplane|bench)|conformance)/"
# Folders that are not checked: tests, mutants, and the peers of the benchmarks. The peers include omp.h, which Debian's
# clang does not have.
excluded = r"(^|/)(test|mutants|peers)/"
# Compile options that clang-tidy does not need. The build itself reports the compiler's warnings. A precompiled header
# fits only the compiler that wrote it. gcc names such a header with -include.
dropped = re.compile(r"-W.*|-fsanitize=.*|-M[DQF]|-o|-c|-include(-pch)?|-fpch-preprocess|-fcolor-diagnostics|-fdiagnostics-color=.*")
# The library Highway compiles a source once per instruction set. These options make it compile each source once, on x86
# for AVX-512.
once = ["-DHWY_COMPILE_ONLY_STATIC", *(["-march=x86-64-v4"] if platform.machine() == "x86_64" else [])]
most_together = 5  # more units need more memory, and save little time
with_value = ("-MQ", "-MF", "-o", "-include", "-include-pch", "-c")


def arguments_of(entry):
    """Returns the options of a compile command, without the compiler, the source, and the options in `dropped`."""
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


def check_together(units, options, directory, scratch):
    """Returns the findings for units with the same options."""
    if len(units) == 1:
        return check(units[0], options, directory)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=scratch, suffix="-unity0.cpp") as joined:
        joined.writelines(f"#include<{unit}>\n" for unit in units)
        joined.flush()
        found = check(joined.name, options, directory)
    if "[clang-diagnostic-error]" in found:
        half = len(units) // 2
        return "".join(check_together(some, options, directory, scratch) for some in (units[:half], units[half:]))
    return found


def check(unit, options, directory):
    """Returns the findings of clang-tidy for a translation unit."""
    # The sources of a joined unit are included files.
    joined = ["--header-filter=/(abi|core|backends|conformance|samples|tools)/.*\\.(h|hpp|cpp)$", "--checks=-bugprone-suspicious-include"]
    run = subprocess.run(["clang-tidy-16", "-quiet", f"--config-file={root}/.clang-tidy", *(joined if is_joined(unit) else []), unit, "--", "-w", *options, *once],
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
units, seen = {}, set()
for entry in entries:
    unit = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
    sources = [os.path.relpath(path, root) for path in sources_of(unit)]
    # Omits the growth test in abi/test, which compiles core's sources again as a later version.
    new = {name for name in sources if name.endswith(".cpp") and re.match(shipped, name) and not re.search(excluded, name) and wanted.search(name)} - seen
    if new and "abi/test" not in entry["output"]:
        seen |= new
        units.setdefault((arguments_of(entry), entry["directory"]), []).append(unit)
groups = []
for (options, directory), members in units.items():
    groups += [(members[at:at + most_together], options, directory) for at in range(0, len(members), most_together)]
groups.sort(key=lambda group: len(group[0]), reverse=True)  # groups with the most units first, as they take longest


def planted_findings(scratch, text):
    """Returns the findings for two units, each of one source. A source consists of `text` and of a function whose name
    clang-tidy must report."""
    # As in a real build, each unit includes its source by a path that leads through the build directory.
    directory = os.path.join(scratch, "build")
    for folder in ("build", "core"):
        os.makedirs(os.path.join(scratch, folder), exist_ok=True)
    planted = []
    for name in ("first", "second"):
        with open(os.path.join(scratch, "core", f"{name}.cpp"), "w", encoding="utf-8") as file:
            file.write(f"{text}\nvoid Planted_{name}() {{}}\n")
        planted.append(os.path.join(directory, f"{name}-unity0.cpp"))
        with open(planted[-1], "w", encoding="utf-8") as file:
            file.write(f"#include<{directory}/../core/{name}.cpp>\n")
    return "".join(findings_of([check_together(planted, ("-std=c++20",), directory, scratch)], directory))


with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    results = list(pool.map(lambda group: check_together(*group, scratch), groups))
    planted = {"can": planted_findings(scratch, ""), "cannot": planted_findings(scratch, "static int clash;")}
findings = findings_of(results, build)
print(f"# {len(seen)} sources in {len(groups)} translation units")
tap.check("clang-tidy finds nothing", not findings, "".join(findings))
for can, found in planted.items():
    tap.check(f"planted findings of units that {can} be compiled together are found", all(f"'Planted_{name}'" in found for name in ("first", "second")) and
              "clang-diagnostic-error" not in found, found)
tap.check("sources are checked", len(seen) > 0, f"{build}/compile_commands.json names no shipped source that matches")
tap.done()

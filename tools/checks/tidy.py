#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the shipped sources of a build: tidy.py BUILD [PATTERN].

Most of clang-tidy's time goes into standard headers. The script therefore checks up to eight sources of one folder in
one translation unit. It groups only sources that define no common name. If a group does not compile, the script checks
its sources one by one. PATTERN is a regular expression that selects paths. Prints each finding once, then a TAP
line."""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

import tap

shipped = r"(core/src|backends/(cpu_kernels|reference|onednn|vulkan)|samples|tools/(backplane|bench)|conformance)/"
tests = r"(^|/)(test|mutants)/"
sources_per_group = 8
# Names that a source defines for itself: functions and variables at column 0, types, macros.
definition = re.compile(r"^(?:struct|class|enum(?: class)?|union|using|concept) (\w+)|^#define (\w+)|^namespace (\w+) = |^enum \w+ \{(.*?)\}|"
                        r"^(?:[A-Za-z_\[][\w:<>,*&\[\]. ]*[ *&>])(\w+)(?:\(|\{|;| = |\[)", re.M | re.S)
# Compile options that clang-tidy does not need. The build itself reports the compiler's warnings, and sources of a
# group would shadow each other's names. A precompiled header fits only the compiler that wrote it.
dropped = re.compile(r"-W.*|-fsanitize=.*|-M[DQF]|-o|-c|-include-pch|-fpch-preprocess|-fcolor-diagnostics|-fdiagnostics-color=.*")
with_value = ("-MQ", "-MF", "-o", "-include-pch", "-c")


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


def names_of(text):
    """Returns the names that a source defines at column 0, and the values of its enumerations."""
    return {name for match in definition.finditer(text) for found in match.groups() if found for name in re.findall(r"\w+", found)}


def groups_of(sources):
    """Groups sources of one folder with equal options and disjoint names. A source that Highway includes again for
    each target is alone."""
    groups = []
    for path, key, names, alone in sources:
        for group in groups:
            if not alone and not group["alone"] and group["key"] == key and len(group["paths"]) < sources_per_group and not group["names"] & names:
                group["paths"].append(path)
                group["names"] |= names
                break
        else:
            groups.append({"key": key, "paths": [path], "names": set(names), "alone": alone})
    return groups


def check(paths, options, directory, folder):
    """Returns the findings of clang-tidy for sources in one translation unit, and whether it compiled."""
    source = paths[0]
    if len(paths) > 1:
        handle, source = tempfile.mkstemp(suffix=".cpp", dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("".join(f'#include "{path}"  // NOLINT\n' for path in paths))
    filters = [] if len(paths) == 1 else ["--header-filter=/(abi|core|backends|conformance|samples|tools)/.*\\.(h|hpp|cpp)$"]
    run = subprocess.run(["clang-tidy-16", "-quiet", f"--config-file={root}/.clang-tidy", *filters, source, "--", "-w", *options, f"-I{os.path.dirname(paths[0])}"],
                         capture_output=True, text=True, cwd=directory, check=False)
    compiled = "clang-diagnostic-error" not in run.stdout
    return run.stdout if run.returncode else "", compiled


def check_group(group):
    options, directory = group["key"]
    output, compiled = check(group["paths"], options, directory, scratch)
    if compiled or len(group["paths"]) == 1:
        return output, 0
    return "".join(check([path], options, directory, scratch)[0] for path in group["paths"]), len(group["paths"])


build = os.path.abspath(sys.argv[1])
wanted = re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
root = os.getcwd()
with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
    entries = json.load(file)
folders, seen = {}, set()
for entry in entries:
    path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
    name = os.path.relpath(path, root)
    # The growth test compiles core's sources again as a later version.
    if not path.endswith(".cpp") or not re.match(shipped, name) or re.search(tests, name) or path in seen or "abi/test" in entry["output"]:
        continue
    if not wanted.search(name):
        continue
    seen.add(path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    folders.setdefault(os.path.dirname(path), []).append(
        (path, (arguments_of(entry), entry["directory"]), names_of(text), "foreach_target.h" in text))
groups = sorted((group for sources in folders.values() for group in groups_of(sources)), key=lambda group: -len(group["paths"]))

with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    results = list(pool.map(check_group, groups))
    planted = []
    os.mkdir(os.path.join(scratch, "core"))
    for name in ("first", "second"):
        planted.append(os.path.join(scratch, "core", f"{name}.cpp"))
        with open(planted[-1], "w", encoding="utf-8") as file:
            file.write(f"#ifdef COMMON\nint common = 0;\n#endif\nvoid Planted_{name}() {{}}\n")
    together, separate = (check_group({"key": (("-std=c++20", *extra), scratch), "paths": planted}) for extra in ((), ("-DCOMMON",)))
findings, shown = [], set()
for output, _ in results:
    for block in re.split(r"^(?=/\S+:\d+:\d+: (?:warning|error))", output, flags=re.M):
        if block.strip() and block not in shown:
            shown.add(block)
            findings.append(block)
print(f"# {len(seen)} sources in {len(groups)} groups; {sum(again for _, again in results)} were checked one by one")
tap.check("clang-tidy finds nothing", not findings, "".join(findings))
for what, (output, again), expected in ("together", together, 0), ("one by one", separate, 2):
    tap.check(f"planted findings of sources that are checked {what} are found",
              again == expected and all(f"'Planted_{name}'" in output for name in ("first", "second")), output)
tap.check("sources are checked", len(seen) > 0, f"{build}/compile_commands.json names no shipped source that matches")
tap.done()

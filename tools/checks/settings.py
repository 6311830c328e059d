#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/dev/settings.md: settings.py ROOT.

The page must list all build options, and all environment variables that shipped code reads. The row of a variable must
name the folder that reads the variable. Variables of tests, samples and frozen copies need no row."""
import os
import re
import sys

import tap

page = "docs/dev/settings.md"
# Each key is a folder of shipped code, and its value contains the suffixes of the sources.
code = (".c", ".h", ".hpp", ".cpp")
folders = {"core/src": code, "core/include": code, "core/python": (".py",), "backends": code, "conformance": code, "tools": code}
skipped = {"test", "frozen", "by_hand"}
row = re.compile(r"^\| (`[A-Z][A-Z0-9_]+`(?:, `[A-Z][A-Z0-9_]+`)*) \|.*\| `([\w/]+)` \|$", flags=re.M)
option_row = re.compile(r"^\| `([a-z_]+)` \|", flags=re.M)
reads = re.compile(r'(?:getenv|\w*environment|xdg_base|variable|envname)\(\s*"([A-Z][A-Z0-9_]*)"')
named = re.compile(r'"(BACKPLANE_[A-Z0-9_]+|(?:DNNL|ONEDNN)_[A-Z0-9_]+)"')


def sources(root):
    for top, suffixes in folders.items():
        for folder, below, files in os.walk(os.path.join(root, top)):
            below[:] = [name for name in below if name not in skipped]
            for file in files:
                if file.endswith(suffixes):
                    path = os.path.join(folder, file)
                    with open(path, encoding="utf-8", errors="replace") as opened:
                        yield os.path.relpath(path, root), opened.read()


def variables_of(texts):
    """Returns a dictionary from each variable to the files that read the variable."""
    found = {}
    for name, text in texts:
        for variable in set(reads.findall(text)) | set(named.findall(text)):
            found.setdefault(variable, set()).add(name)
    return found


def variable_faults(read, text):
    listed = {}
    for names, folder in row.findall(text):
        for variable in re.findall(r"\w+", names):
            listed[variable] = folder
    faults = [f"{page}: no row for {variable}, which {min(files)} reads" for variable, files in read.items() if variable not in listed]
    for variable, folder in listed.items():
        if not any(name.startswith(folder + "/") for name in read.get(variable, ())):
            faults.append(f"{page}: {variable} is not read in {folder}/")
    return faults


def option_faults(options, text):
    declared = set(re.findall(r"^option\('(\w+)'", options, flags=re.M))
    listed = set(option_row.findall(text.split("## Build options", 1)[-1]))
    return [f"{page}: the build option {name} is in one of meson_options.txt and the table" for name in declared ^ listed]


def main(root):
    with open(os.path.join(root, page), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(root, "meson_options.txt"), encoding="utf-8") as file:
        options = file.read()
    texts = list(sources(root))
    read = variables_of(texts)
    faults, undeclared = variable_faults(read, text), option_faults(options, text)
    tap.check("every environment variable has a row", not faults, "\n".join(faults))
    tap.check("every build option has a row", not undeclared, "\n".join(undeclared))
    tap.check("variables are found", len(read) > 15, sorted(read))
    planted = texts + [("core/src/planted.cpp", 'const char* value = std::getenv("BACKPLANE_PLANTED");')]
    tap.check("caught: a variable without a row", variable_faults(variables_of(planted), text), "unseen")
    tap.check("caught: a row that nothing reads", variable_faults(read, text.replace("`BACKPLANE_NATIVE`", "`BACKPLANE_PLANTED`")), "unseen")
    tap.check("caught: a row of another folder", variable_faults(read, text.replace("| `backends/reference` |", "| `backends/vulkan` |")), "unseen")
    tap.check("caught: an option without a row", option_faults(options + "option('planted', type: 'feature')\n", text), "unseen")
    tap.done()


main(*sys.argv[1:])

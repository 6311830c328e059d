#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that docs/dev names only existing files, and that its table of families agrees with ops.def: map.py ROOT.

Text in backticks is a path if it begins with a folder of the repository, or if it is the name of a file without a
folder. FAMILY, PLUGIN, NAME and TOPIC are placeholders for any word. Files that a build generates are not checked."""
import glob
import os
import re
import sys

import tap

folder = "docs/dev"
tops = "abi|core|backends|conformance|tools|samples|docs"
path = re.compile(rf"`((?:{tops})/[\w./*-]*)`")
bare = re.compile(r"`([\w-]+\.(?:c|h|hpp|cpp|def|py|comp|build))`")
placeholder = re.compile(r"FAMILY|PLUGIN|NAME|TOPIC")
families_row = re.compile(r"^\| ([a-z]+) \| ([a-z0-9_, ]+) \|$", flags=re.M)
families_table = "| family | operators |\n|---|---|\n"
built = {"tools/backplane/backplane"}
skipped = {"build", ".git", "__pycache__", "frozen"}


def file_names(root):
    names = set()
    for folder_path, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in skipped]
        names.update(files)
    return names


def exists(root, name):
    return name in built or name.endswith(".so") or glob.glob(os.path.join(root, placeholder.sub("*", name)))


def missing(root, names, text):
    """Returns a message for each path and file name in `text` that does not exist."""
    faults = []
    for number, line in enumerate(text.splitlines(), 1):
        faults += [f"{number}: {name} is not there" for name in path.findall(line) if not exists(root, name)]
        faults += [f"{number}: no file is named {name}" for name in bare.findall(line)
                   if name not in names and not placeholder.search(name)]
    return faults


def families_of(definitions):
    rows = re.findall(r'^BP_OP_ROW\(\d+, \w+, "(\w+)", .*, (\w+), ".*?"\)', definitions, flags=re.M)
    families = {}
    for operator, family in rows:
        families.setdefault(family, []).append(operator)
    return {family: ", ".join(operators) for family, operators in families.items()}


def family_faults(families, text):
    listed = dict(families_row.findall(text.partition(families_table)[2].partition("\n\n")[0]))
    return [f"the row of {name} is not what ops.def says: {families.get(name)}" for name in {**families, **listed}
            if listed.get(name) != families.get(name)]


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8") as file:
        return file.read()


def main(root):
    pages = {name: read(root, f"{folder}/{name}") for name in sorted(os.listdir(os.path.join(root, folder)))}
    pages["CONTRIBUTING.md"] = read(root, "CONTRIBUTING.md")
    names = file_names(root)
    faults = [f"{name}:{fault}" for name, text in pages.items() for fault in missing(root, names, text)]
    families = families_of(read(root, "abi/include/backplane/ops.def"))
    changed = family_faults(families, pages["map.md"])
    tap.check("every path that docs/dev names exists", not faults, "\n".join(faults))
    tap.check("the table of families is that of ops.def", len(families) > 15 and not changed, "\n".join(changed))
    tap.check("paths are named", len(re.findall(path, "".join(pages.values()))) > 60, "few")
    for name, planted in {"a path that is not there": "see `core/src/planted.cpp`",
                          "a family that is nowhere": "`backends/planted/ops/FAMILY.cpp`",
                          "a bare name that is not there": "see `planted.hpp`"}.items():
        tap.check(f"caught: {name}", missing(root, names, planted), "unseen")
    tap.check("caught: an operator of another family", family_faults(families, pages["map.md"].replace("| rope |", "| loss |", 1)), "unseen")
    tap.done()


main(*sys.argv[1:])

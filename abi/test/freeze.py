#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps a copy of each ABI version's headers, so that tests can build programs against old
versions: freeze.py copy|check|finish [ROOT].

abi/test/frozen/MAJOR.MINOR/include is a copy of the public headers, the rules and the kit.
`copy` updates this copy; run it after each change of the headers until the version is finished.
`finish` writes a digest; afterwards the copy must not change. `check` compares an unfinished copy
with the tree, and a finished copy with its digest."""
import filecmp
import hashlib
import os
import re
import shutil
import sys
import tempfile

sources = ("abi/include", "core/include", "backends/kit/include")
copies = "abi/test/frozen"


def version_of(root):
    with open(os.path.join(root, "abi/include/backplane/base.h"), encoding="utf-8") as file:
        text = file.read()
    return ".".join(re.search(rf"#define BP_ABI_VERSION_{part} (\d+)u", text).group(1) for part in ("MAJOR", "MINOR"))


def files_below(folder):
    return sorted(os.path.relpath(os.path.join(directory, name), folder) for directory, _, names in os.walk(folder) for name in names)


def public_files(root):
    """Returns {path below include: path of the file}."""
    return {name: os.path.join(root, source, name) for source in sources for name in files_below(os.path.join(root, source))}


def digest_of(folder):
    digest = hashlib.sha256()
    for name in files_below(folder):
        with open(os.path.join(folder, name), "rb") as file:
            digest.update(f"{name}\0{hashlib.sha256(file.read()).hexdigest()}\n".encode())
    return digest.hexdigest()


def faults_of(root, version):
    """Returns the problems of a version's copy as sentences."""
    folder = os.path.join(root, copies, version)
    copy, record = os.path.join(folder, "include"), os.path.join(folder, "digest")
    if os.path.exists(record):
        with open(record, encoding="utf-8") as file:
            same = file.read().strip() == digest_of(copy)
        return [] if same else [f"{version} is finished, and its copy was edited: undo the edit"]
    if version != version_of(root):
        return [f"{version} is past and was never finished: abi/test/freeze.py finish belongs to its last commit"]
    files = public_files(root)
    faults = [f"{name} is not in the copy" for name in files if not os.path.exists(os.path.join(copy, name))]
    faults += [f"{name} is in the copy alone" for name in files_below(copy) if name not in files]
    faults += [f"{name} differs" for name, path in files.items()
               if os.path.exists(os.path.join(copy, name)) and not filecmp.cmp(path, os.path.join(copy, name), shallow=False)]
    return faults + (["run abi/test/freeze.py copy"] if faults else [])


def copy_headers(root, version):
    folder = os.path.join(root, copies, version)
    if os.path.exists(os.path.join(folder, "digest")):
        sys.exit(f"{version} is finished: a change belongs into the next minor (BP_ABI_VERSION_MINOR)")
    shutil.rmtree(os.path.join(folder, "include"), ignore_errors=True)
    for name, path in public_files(root).items():
        target = os.path.join(folder, "include", name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(path, target)


def finish(root, version):
    faults = faults_of(root, version)
    if faults:
        sys.exit("\n".join(faults))
    with open(os.path.join(root, copies, version, "digest"), "w", encoding="utf-8") as file:
        file.write(digest_of(os.path.join(root, copies, version, "include")) + "\n")


def change(path, old, new):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert old in text
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))


def caught(root, version, plant):
    """Returns True if the check finds a defect that `plant` puts into a copy of the tree."""
    with tempfile.TemporaryDirectory() as folder:
        for source in (*sources, copies):
            shutil.copytree(os.path.join(root, source), os.path.join(folder, source))
        if os.path.exists(os.path.join(folder, copies, version, "digest")):
            os.remove(os.path.join(folder, copies, version, "digest"))
        copy_headers(folder, version)
        clean = not faults_of(folder, version)
        plant(folder)
        return clean and bool(faults_of(folder, version))


def check(root):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/checks"))
    import tap
    versions = sorted(os.listdir(os.path.join(root, copies)))
    current = version_of(root)
    tap.check(f"there is a copy of {current}", current in versions, "run abi/test/freeze.py copy")
    for version in versions:
        faults = faults_of(root, version)
        tap.check(f"the copy of {version} is as it must be", not faults, "\n".join(faults))
    copy = os.path.join(copies, current, "include/backplane/base.h")
    tree = "abi/include/backplane/base.h"

    def edited_when_finished(folder):
        finish(folder, current)
        change(os.path.join(folder, copy), "frozen", "thawed")

    def left_unfinished(folder):
        change(os.path.join(folder, tree), "BP_ABI_VERSION_MINOR ", "BP_ABI_VERSION_MINOR 9")

    plants = {"the tree moved on": lambda folder: change(os.path.join(folder, tree), "frozen", "thawed"),
              "a header is new": lambda folder: shutil.copy(os.path.join(folder, tree), os.path.join(folder, "abi/include/new.h")),
              "the copy has files that the tree lacks": lambda folder: os.remove(os.path.join(folder, "abi/include/backplane/rules/text.hpp")),
              "a finished copy was edited": edited_when_finished, "a version was left unfinished": left_unfinished}
    for name, plant in plants.items():
        tap.check(f"caught: {name}", caught(root, current, plant), "unseen")
    tap.done()


if __name__ == "__main__":
    verb, root = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    if verb == "check":
        check(root)
    else:
        {"copy": copy_headers, "finish": finish}[verb](root, version_of(root))

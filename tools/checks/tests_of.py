#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the tests of a folder for `meson test`: tests_of.py BUILD FOLDER.

A test belongs to the folder if the test's program or script is in the folder, or if the test uses the folder's plugin.
Prints the name of one test per line."""
import json
import os
import subprocess
import sys

build, folder = sys.argv[1:]
root = os.getcwd()
wanted = os.path.normpath(folder)
listing = subprocess.run(["meson", "introspect", "--tests", build], capture_output=True, text=True, check=True).stdout


def folder_of(path):
    """Returns the source folder of a file in the source tree or the build folder. Returns None for other files."""
    path = os.path.normpath(os.path.join(os.path.abspath(build), path))
    for base in (os.path.abspath(build), root):
        if path.startswith(base + "/"):
            return os.path.dirname(os.path.relpath(path, base))
    return None


def folders_of(test):
    """Returns the folders that contain a test's program, its script, or a plugin (*.so) in its arguments or
    environment."""
    given = test["cmd"][2:] + list(test["env"].values())
    parts = test["cmd"][:2] + [part for part in given if part.endswith(".so")]
    return {each for each in map(folder_of, parts) if each}


folders = {test["name"]: folders_of(test) for test in json.loads(listing)}
names = [name for name, each in folders.items() if any((folder + "/").startswith(wanted + "/") for folder in each)]
if not names:
    sys.exit(f"no test is in {wanted}/; tests are in: " + ", ".join(sorted(set().union(*folders.values()))))
print("\n".join(dict.fromkeys(names)))

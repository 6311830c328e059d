#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tools/cpu_check on the reference plugin: cpu_check_test.py CPU_CHECK BUILD."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import tap

script, build = sys.argv[1:]


def run(*arguments):
    return subprocess.run([sys.executable, script, "--build", build, *arguments], capture_output=True, text=True, check=False)


names = run("--list").stdout.split()
tap.check("the list contains the reference plugin", "reference" in names, names)
missing = run("no_such_configuration")
tap.check("a pattern without a configuration: a message that names the remedy", missing.returncode == 2 and "--list names all" in missing.stderr, missing.stderr)
elsewhere = subprocess.run([sys.executable, script, "--build", "/nonexistent"], capture_output=True, text=True, check=False)
tap.check("no build: a message that names the remedy", elsewhere.returncode == 2 and "tools/test" in elsewhere.stderr, elsewhere.stderr)

with tempfile.TemporaryDirectory() as folder:
    part = ["--output", folder, "--seed", "7", "--filter", "numeric.add.f32", "^reference$"]
    first = run(*part)
    found = re.search(r"\| reference \| 7 \| [^|]+ \| (\d+) \| 0 \| 0 \|", first.stdout)
    tap.check("the table counts the cases", first.returncode == 0 and found and int(found[1]) > 50, first.stdout + first.stderr)
    again = run(*part)
    tap.check("the next run repeats no certificate", again.returncode == 0 and "seed 7" not in again.stderr and again.stdout == first.stdout, again.stderr)
    part[part.index("numeric.add.f32")] = "numeric.sub.f32"
    other = run(*part)
    tap.check("a certificate of other cases does not count", other.returncode == 0 and "seed 7" in other.stderr, other.stderr)
    path = glob.glob(os.path.join(folder, "train/reference/7/*.json"))[0]
    with open(path, encoding="utf-8") as file:
        certificate = json.load(file)
    certificate["plugin"]["sha256"] = "0" * 64
    with open(path, "w", encoding="utf-8") as file:
        json.dump(certificate, file)
    tap.check("a certificate of another file of the plugin does not count", "seed 7" in run(*part).stderr, path)
    os.remove(path)
    with open(os.path.join(os.path.dirname(path), "libbackplane_reference.journal"), "w", encoding="utf-8") as file:
        file.write('{"key": "plugin 0, device 0, suite 0, seed 7"}\n')
    resumed = run(*part)
    tap.check("an interrupted run of another file of the plugin is not resumed", resumed.returncode == 0 and os.path.exists(path), resumed.stdout)
    part[part.index("numeric.sub.f32")] = "numeric.nothing"
    failing = run(*part, "--output", os.path.join(folder, "failing"))
    tap.check("no case: exit status 1, and the row names the log", failing.returncode == 1 and "/log" in failing.stdout, failing.stdout)
tap.done()

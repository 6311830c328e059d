#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the package and tests it on two plugins: test.py PYTHON BUILD INCLUDES LIBRARY DEVICE DEVICE.

PYTHON is an interpreter with PyTorch, BUILD the folder of the package, INCLUDES the folders of the headers, separated
by ':', and LIBRARY the path of libbackplane."""
import os
import re
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../../../tools/checks"))
import tap

python, build, includes, library, *devices = sys.argv[1:]
package = os.path.join(build, "lib")
environment = {
    **os.environ, "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1", "MAX_JOBS": "2", "OMP_NUM_THREADS": "1", "BACKPLANE_ONEDNN_THREADS": "1",
    "BACKPLANE_CFLAGS": " ".join(f"-I{folder}" for folder in includes.split(":")),
    "BACKPLANE_LIBS": f"-L{os.path.dirname(library)} -lbackplane"}


def run(*command):
    result = subprocess.run([python, *command], capture_output=True, text=True, env=environment, check=False)
    return result.returncode, result.stdout, result.stderr


code, _, log = run(os.path.join(here, "../setup.py"), "--quiet", "build", "--build-lib", package, "--build-temp", os.path.join(build, "temp"))
tap.check("the package builds", code == 0, log)

for script in ("operators.py", "training.py", "runtime.py"):
    code, out, err = run(os.path.join(here, script), *devices)
    results = re.findall(r"^(ok|not ok) \d+ - (.*)$((?:\n# .*)*)", out, flags=re.M)
    for outcome, name, detail in results:
        tap.check(name, outcome == "ok", detail)
    tap.check(f"{script} ends with status 0", code == 0 and results, err)

accuracies = []
for device in devices:
    code, out, err = run(os.path.join(here, "../examples/digits_cnn.py"), device, "--epochs", "2")
    found = re.search(r"^([0-9.]+) % of 359 .* 0 CPU fallbacks$", out, flags=re.M)
    tap.check(f"the digits on {device}", code == 0 and found and float(found[1]) >= 80, out + err)
    accuracies += [found and found[1]]
tap.check("both plugins read the same digits", len(set(accuracies)) == 1, accuracies)

with open(os.path.join(here, "../README.md"), encoding="utf-8") as file:
    page = file.read()
code, table, err = run("-m", "backplane_torch.overloads")
tap.check("README.md contains the table of overloads", code == 0 and table in page, "replace the table by the output of: python -m backplane_torch.overloads\n" + err)
tap.done()

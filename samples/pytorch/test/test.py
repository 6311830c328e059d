#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the package, and tests it on two plugins and on a plugin that is built after the package: test.py
PYTHON BUILD INCLUDES LIBRARY DEVICE DEVICE.

PYTHON is an interpreter with PyTorch, and BUILD is the folder for the package. INCLUDES are the folders of the
headers, separated by ':'. LIBRARY is the path of libbackplane."""
import os
import platform
import re
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../../../tools/checks"))
import tap

python, build, includes, library, *devices = sys.argv[1:]
package = os.path.join(build, "lib")
environment = {
    **os.environ, "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1", "MAX_JOBS": "2", "OMP_NUM_THREADS": "1", "BACKPLANE_ONEDNN_THREADS": "1",
    # -O1 overrides -O2, so that the compiler takes less time. The slower code does not matter, because the
    # plugins execute the kernels.
    "BACKPLANE_CFLAGS": " ".join([*(f"-I{folder}" for folder in includes.split(":")), "-O1"]),
    "BACKPLANE_LIBS": f"-L{os.path.dirname(library)} -lbackplane"}


def run(*command, **variables):
    result = subprocess.run([python, *command], capture_output=True, text=True, env={**environment, **variables}, check=False)
    return result.returncode, result.stdout, result.stderr


def build_plugin(folder):
    """Builds samples/skeleton_plugin with the operators add and mul, and with a device that does not report free
    memory. Returns the messages of the compiler."""
    skeleton = os.path.join(here, "../../skeleton_plugin")
    with open(os.path.join(skeleton, "plugin.cpp"), encoding="utf-8") as file:
        source = file.read()
    line = "    kernels().add(BP_OP_ADD, BP_F32, add_f32);\n"
    product = line.replace("ADD", "MUL").replace("add_f32", "[](const Call& call) { map_binary<float, float, float>(call, [](float a, float b) { return a * b; }); }")
    driver = "class Driver : public HostDriver {\n public:\n"
    device = """struct Silent : HostDevice {
  using HostDevice::HostDevice;
  Status memory_info(uint32_t kind, bp_memory_info& out) const {
    Status status = HostDevice::memory_info(kind, out);
    out.free_bytes = UINT64_MAX;
    return status;
  }
};
"""
    opened = "  using Device = Silent;\n  Result<Device*> open(uint32_t index, std::string_view options) const { return open_device<Device>(index, options); }\n"
    with open(os.path.join(folder, "plugin.cpp"), "w", encoding="utf-8") as file:
        file.write(source.replace(line, line + product).replace(driver, device + driver + opened))
    with open(os.path.join(skeleton, "manifest.json.in"), encoding="utf-8") as file:
        manifest = file.read()
    with open(os.path.join(folder, "skeleton.json"), "w", encoding="utf-8") as file:
        file.write(re.sub(r"@(\w+)@", lambda match: {"abi_oldest": "0.2", "abi": "0.2", "architecture": platform.machine()}[match[1]], manifest))
    command = ["c++", "-std=c++20", "-shared", "-fPIC", "-pthread", '-DPLUGIN_VERSION="0.1.0"', *environment["BACKPLANE_CFLAGS"].split(),
               "-o", os.path.join(folder, "libbackplane_skeleton.so"), os.path.join(folder, "plugin.cpp")]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


code, _, log = run(os.path.join(here, "../setup.py"), "--quiet", "build", "--build-lib", package, "--build-temp", os.path.join(build, "temp"))
tap.check("the package builds", code == 0, log)

for script, *arguments in (["operators.py"], ["training.py"], ["runtime.py"], ["opinfo.py", "--samples", "2"]):
    code, out, err = run(os.path.join(here, script), *arguments, *devices)
    results = re.findall(r"^(ok|not ok) \d+ - (.*)$((?:\n# .*)*)", out, flags=re.M)
    for outcome, name, detail in results:
        tap.check(name, outcome == "ok", detail)
    tap.check(f"{script} ends with status 0", code == 0 and results, err)

accuracies = []
for device in devices:
    code, out, err = run(os.path.join(here, "../examples/digits_cnn.py"), device, "--epochs", "3")
    found = re.search(r"^([0-9.]+) % of 359 .* 0 CPU fallbacks$", out, flags=re.M)
    tap.check(f"the digits on {device}", code == 0 and found and float(found[1]) >= 90, out + err)
    accuracies += [float(found[1])] if found else []
tap.check("both plugins read the digits equally well", len(accuracies) == 2 and abs(accuracies[0] - accuracies[1]) < 1, accuracies)

with tempfile.TemporaryDirectory() as folder:
    problem = build_plugin(folder)
    tap.check("a plugin with two operators builds after the package", not problem, problem)
    code, out, err = run(os.path.join(here, "late_plugin.py"), BACKPLANE_PLUGIN_PATH=folder)
    tap.check("PyTorch uses the plugin, and errors name the operators that it lacks", code == 0, out + err)

with open(os.path.join(here, "../README.md"), encoding="utf-8") as file:
    page = file.read()
code, table, err = run("-m", "backplane_torch.overloads")
tap.check("README.md contains the table of overloads", code == 0 and table in page, "replace the table by the output of: python -m backplane_torch.overloads\n" + err)
tap.done()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tools/gpu_check on a device for CPUs: gpu_check_test.py GPU_CHECK BUILD DEVICE."""
import json
import os
import subprocess
import sys
import tempfile

import tap

script, build, device = sys.argv[1:]
steps = ["certify", "bench_memory", "bench_dispatch", "bench_large", "bench_model", "digits"]


def run(*arguments):
    return subprocess.run([sys.executable, script, "--build", build, *arguments], capture_output=True, text=True, check=False)


dry = run("--dry-run")
for plugin in ("opencl", "vulkan"):
    tap.check(f"a dry run shows each step of {plugin}", all(f"{plugin}:0 {step}: " in dry.stdout for step in steps), dry.stdout + dry.stderr)
tap.check("a dry run shows the steps for the kernels of cuda", all(f"cuda:0 {kind}_{variant}: " in dry.stdout for kind in ("certify", "bench")
                                                                     for variant in ("kernels", "tensor", "warpgroups", "trial")), dry.stdout)
tap.check("a dry run shows the steps for shared memory", all(f"{plugin}:0 {step}: " in dry.stdout for plugin in ("cuda", "vulkan")
                                                              for step in ("certify_external", "exchange_cuda", "exchange_vulkan")), dry.stdout)
missing = run("--device", "missing:0")
tap.check("a device that is not there: usage error, with the devices", missing.returncode == 2 and device in missing.stderr, missing.stderr)

with tempfile.TemporaryDirectory() as folder:
    part = ["--output", folder, "--device", device, "--filter", "numeric.add.f32", "--step", "certify", "--step", "bench_memory"]
    short = run(*part, "--minutes", "0")
    tap.check("without time, all steps remain", short.returncode == 3 and "2 steps remain" in short.stdout, short.stdout + short.stderr)
    whole = run(*part)
    tap.check("with time, all steps pass", whole.returncode == 0, whole.stdout + whole.stderr)
    [results] = [os.path.join(path, name) for path, _, names in os.walk(folder) for name in names if name == "results.json"]
    with open(results, encoding="utf-8") as file:
        state = json.load(file)[device]
    tap.check("the results name each step", {name: step["result"] for name, step in state.items()} ==
              {"certify": "passed", "bench_memory": "passed"}, state)
    again = run(*part)
    tap.check("the next run repeats no step that passed", again.returncode == 0 and "s left" not in again.stdout, again.stdout)
    part[part.index("numeric.add.f32")] = "numeric.sub.f32"
    other = run(*part)
    tap.check("a step with another command runs again, and no other step", other.returncode == 0 and f"{device} certify (" in other.stdout
              and f"{device} bench_memory (" not in other.stdout, other.stdout)
    with open(results, encoding="utf-8") as file:
        edited = json.load(file)
    for step in edited[device].values():
        step["plugin_sha256"] = "0" * 64
    with open(results, "w", encoding="utf-8") as file:
        json.dump(edited, file)
    # An interrupted run of the other file of the plugin left this journal.
    journal = os.path.join(os.path.dirname(results), f"{device.replace(':', '_')}_certificate", f"libbackplane_{device.split(':')[0]}.journal")
    with open(journal, "w", encoding="utf-8") as file:
        file.write('{"key": "plugin 0, device 0, suite 0, seed 1"}\n')
    rebuilt = run(*part)
    tap.check("the steps of another file of the plugin run again, and resume no run", rebuilt.returncode == 0 and rebuilt.stdout.count("s left)") == 2,
              rebuilt.stdout + rebuilt.stderr)
    part[part.index("numeric.sub.f32")] = "numeric.nothing"
    failing = run(*part, "--output", os.path.join(folder, "failing"))
    tap.check("a step that fails: exit status 1", failing.returncode == 1 and "failed with status" in failing.stdout, failing.stdout)

    collected = os.path.join(folder, "collected")
    made = run("--collect", collected, "--device", device)
    tap.check("the plugins of the named devices are collected", made.returncode == 0 and os.path.exists(os.path.join(collected, "core/libbackplane.so.0.2"))
              and os.listdir(os.path.join(collected, "backends")) == [device.split(":")[0]], made.stdout + made.stderr)
    own = [sys.executable, os.path.join(collected, "tools/gpu_check"), "--device", device, "--step", "certify", "--filter", "numeric.add.f32"]
    environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    there = subprocess.run(own, capture_output=True, text=True, check=False, env=environment)
    tap.check("a collected folder certifies with its own files", there.returncode == 0 and "| passed |" in there.stdout
              and os.path.exists(os.path.join(collected, "docs/measurements/reference/results.json")), there.stdout + there.stderr)
tap.done()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs and moves the SDK, and builds a consumer of each kind with the SDK: install_test.py MESON
BUILD WORK PREFIX PLUGIN PROJECT...

The consumers run without Backplane's environment variables, so the plugin must come from the directory of the
moved SDK. Each PROJECT is a vendor's folder that builds and certifies a plugin."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

own_folder = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(own_folder, ".."))
import tap

meson, build, work, prefix, plugin, *projects = sys.argv[1:]
sdk = os.path.join(work, "moved", "sdk")
environment = {name: value for name, value in os.environ.items() if not name.startswith(("BACKPLANE", "LD_LIBRARY", "DESTDIR"))}


def run(name, *command, cwd=None, **variables):
    """Runs a command, and reports its success as one check. Returns the command's output, or None if the command
    failed."""
    result = subprocess.run(command, cwd=cwd, env={**environment, **variables}, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False)
    return result.stdout if tap.check(name, result.returncode == 0, " ".join(command) + "\n" + result.stdout) else None


def one(pattern):
    found = glob.glob(os.path.join(sdk, pattern), recursive=True)
    return found[0] if found else None


def consumer(kind, binary):
    output = run(f"{kind}: runs, with '{plugin}' loaded by name", binary, plugin) or ""
    tap.check(f"{kind}: the plugin is the moved SDK's", output.startswith(os.path.realpath(sdk) + "/"), output)


def tiny(kind, pattern):
    found = glob.glob(pattern)
    symbols = subprocess.run(["nm", "-D", "--defined-only", *found], capture_output=True, text=True, check=False).stdout
    names = [line.split()[-1] for line in symbols.splitlines()]
    tap.check(f"{kind}: an outside plugin exports one symbol", found and names == ["bp_plugin_query"], symbols)


def certified(name, folder, output, device=None):
    """Checks the output and the certificate of `meson test` in a vendor's folder."""
    try:
        with open(os.path.join(folder, f"build/certificate/libbackplane_{name}.json"), encoding="utf-8") as file:
            verdict = json.load(file)["verdict"]
    except (OSError, ValueError) as failure:
        return tap.check(f"{name}: a certificate", False, f"{failure}\n{output}")
    bad = {outcome: count for outcome, count in verdict["counts"].items() if count and outcome not in ("pass", "not_claimed")}
    tap.check(f"{name}: nothing fails", not bad and verdict["counts"]["pass"], bad)
    return tap.check(f"{name}: the test shows the certificate's statement", verdict["statement"] in output and
                     f"{name} 0.1.0 on {name if device is None else device}" in verdict["statement"], f"{verdict['statement']}\n{output}")


def new_project(name, bin_folder, *options, device=None):
    """Runs `backplane new`, and then runs the commands that `backplane new` recommends in a shell."""
    parent = os.path.join(work, "new project")
    os.makedirs(parent, exist_ok=True)
    written = run("backplane new", os.path.join(bin_folder, "backplane"), "--json", "new", name, *options, cwd=parent)
    output = run(f"{name}: the commands that new shows", "sh", "-e", "-c", "\n".join(json.loads(written or "{}").get("next", ["false"])),
                 cwd=parent, PATH=os.path.dirname(meson) + ":" + os.environ["PATH"])
    certified(name, os.path.join(parent, name), output or "", device)


shutil.rmtree(work, ignore_errors=True)
stage = os.path.join(work, "stage")
run("meson install", meson, "install", "--quiet", "--no-rebuild", "-C", build, "--destdir", stage)
new_project("acme", os.path.join(stage + prefix, "bin"))
new_project("acme_queue", os.path.join(stage + prefix, "bin"), "--queue", device="card")
os.makedirs(os.path.dirname(sdk))
shutil.move(stage + prefix, sdk)

for pattern in ("include/backplane/plugin.h", "include/backplane/ops.def", "include/backplane/backplane.h",
                "include/backplane/backplane.hpp", "include/backplane/kit/plugin.hpp", "include/backplane/rules/composite.hpp",
                "share/backplane/plugin.map", "share/backplane/python/pyproject.toml", "share/backplane/python/backplane/ops.py",
                "share/backplane/schemas/operators.schema.json",
                "share/doc/backplane/spec/operators.md", "share/doc/backplane/requirements.md",
                "lib*/**/libbackplane.so", "lib*/**/pkgconfig/backplane.pc", "lib*/**/pkgconfig/backplane-plugin.pc",
                "lib*/**/cmake/Backplane/BackplaneConfig.cmake", f"lib*/**/backplane/plugins/{plugin}.json",
                f"lib*/**/backplane/plugins/libbackplane_{plugin}.so"):
    tap.check(f"installed: {pattern}", one(pattern), "not there")
dynamic = subprocess.run(["objdump", "-p", one("lib*/**/libbackplane.so") or "none"], capture_output=True, text=True, check=False)
tap.check("soname libbackplane.so.0.2", "libbackplane.so.0.2\n" in dynamic.stdout, dynamic.stdout + dynamic.stderr)

bound = run("the installed command shows a bound", os.path.join(sdk, "bin", "backplane"), "certify", "--bound", "matmul", "f32") or ""
named = re.findall(r"share/\S+\.md", bound)
tap.check("the pages that explain it are installed", len(named) == 2 and all(one(name) for name in named), bound)
docs = os.path.join(own_folder, *[".."] * 3, "docs")
guides = [os.path.relpath(path, docs) for path in glob.glob(docs + "/*.md") + glob.glob(docs + "/spec/*.md")]
missing = [name for name in guides if not one(f"share/doc/backplane/{name}")]
tap.check("every guide and the specification are installed", len(guides) > 10 and not missing, missing)
pages = glob.glob(os.path.join(sdk, "share/doc/backplane/**/*.md"), recursive=True)


def links_of(page):
    with open(page, encoding="utf-8") as file:
        prose = re.sub(r"^```.*?^```", "", file.read(), flags=re.M | re.S)
    return re.findall(r"\w\W?\]\((?!\w+:|#)([^()#\s]+)", prose)


links = [(page, link) for page in pages for link in links_of(page)]
dead = [f"{page}: {link}" for page, link in links if not os.path.exists(os.path.join(os.path.dirname(page), link))]
tap.check("every link of an installed page leads somewhere", len(links) > 100 and not dead, "\n".join(dead))

output = run("the installed command lists the plugin", os.path.join(sdk, "bin", "backplane"), "list") or ""
tap.check("the installed command finds the moved SDK's plugin", f"{plugin}:0" in output and os.path.realpath(sdk) in output, output)

packages = {"PKG_CONFIG_PATH": os.path.dirname(one("lib*/**/pkgconfig/backplane.pc") or "")}
out = os.path.join(work, "pkg_config")
os.makedirs(out)
flags = run("pkg-config: found", "pkg-config", "--cflags", "--libs", "backplane", **packages) or ""
libdir = (run("pkg-config: libdir", "pkg-config", "--variable=libdir", "backplane", **packages) or "").strip()
plugindir = (run("pkg-config: plugindir", "pkg-config", "--variable=plugindir", "backplane", **packages) or "").strip()
tap.check("pkg-config: plugindir moved too", os.path.isfile(os.path.join(plugindir, plugin + ".json")), plugindir)
run("pkg-config: builds", "g++", "-std=c++20", os.path.join(own_folder, "consumer.cpp"), "-o", os.path.join(out, "consumer"),
    *flags.split(), f"-Wl,-rpath,{libdir}")
consumer("pkg-config", os.path.join(out, "consumer"))

first_test = 'import backplane as bp; d = bp.open("reference:0"); print(bp.ops.add(d.tensor([1., 2.]), d.tensor([3., 4.])).tolist())'
output = run("python: the installed package adds", sys.executable, "-c", first_test, PYTHONPATH=os.path.join(sdk, "share/backplane/python"), **packages)
tap.check("python: the sum is right", output == "[4.0, 6.0]\n", output)

out = os.path.join(work, "cmake")
run("cmake: configures", "cmake", "-S", own_folder, "-B", out, f"-DCMAKE_PREFIX_PATH={sdk}")
run("cmake: builds", "cmake", "--build", out)
consumer("cmake", os.path.join(out, "consumer"))
tiny("cmake", os.path.join(out, "libtiny.so"))
with open(os.path.join(out, "plugin_dir"), encoding="utf-8") as file:
    tap.check("cmake: BACKPLANE_PLUGIN_DIR moved too", os.path.isfile(os.path.join(file.read(), plugin + ".json")))

out = os.path.join(work, "meson")
os.makedirs(out)
for name, target in (("consumer.cpp", "consumer.cpp"), ("plugin.cpp", "plugin.cpp"), ("meson.build.consumer", "meson.build")):
    shutil.copy(os.path.join(own_folder, name), os.path.join(out, target))
run("meson: configures", meson, "setup", os.path.join(out, "build"), out, **packages)
run("meson: builds", "ninja", "-C", os.path.join(out, "build"))
consumer("meson", os.path.join(out, "build", "consumer"))
tiny("meson", os.path.join(out, "build", "libtiny.so"))

for project in projects:
    with open(os.path.join(project, "manifest.json.in"), encoding="utf-8") as file:
        name = json.load(file)["name"]
    out = os.path.join(work, name)
    shutil.copytree(project, out)
    run(f"{name}: configures", meson, "setup", "build", cwd=out, **packages)
    run(f"{name}: builds", "ninja", "-C", "build", cwd=out)
    # Without an OpenCL device, the test only lists the sample. Device names depend on the driver.
    if project.endswith("opencl_first_op"):
        found = run(f"{name}: is listed", os.path.join(sdk, "bin", "backplane"), "list", BACKPLANE_PLUGIN_PATH=os.path.join(out, "build"))
        if f"{name}:0" not in (found or ""):
            print(f"# {name} is not certified here: {found}")
            continue
    certified(name, out, run(f"{name}: certifies", meson, "test", "-C", "build", cwd=out) or "",
              "" if project.endswith("opencl_first_op") else None)
    run(f"{name}: installs", meson, "install", "-C", "build", cwd=out)
    run(f"{name}: runs from where it is installed", os.path.join(sdk, "bin", "backplane"), "run", "add", "--device", f"{name}:0")
tap.done()

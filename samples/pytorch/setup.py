# SPDX-License-Identifier: Apache-2.0
"""Builds the library of the package. pkg-config finds libbackplane.

The variables BACKPLANE_CFLAGS and BACKPLANE_LIBS replace the output of pkg-config, for example for a library
that is not installed."""
import glob
import os
import shlex
import subprocess

import setuptools
from torch.utils import cpp_extension

root = os.path.dirname(os.path.abspath(__file__))


def flags(option):
    """Returns the compiler's flags for the pkg-config option `--cflags` or `--libs`."""
    given = os.environ.get("BACKPLANE_" + option.strip("-").upper())
    if given is not None:
        return shlex.split(given)
    found = subprocess.run(["pkg-config", option, "backplane"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise SystemExit(f"backplane_torch: pkg-config does not find backplane: {found.stderr.strip()}\n"
                         "Install the SDK and add its pkgconfig folder to PKG_CONFIG_PATH.")
    return shlex.split(found.stdout)


class Build(cpp_extension.BuildExtension):
    """Joins the sources into two translation units. This saves time, because the compiler needs most of its
    time for PyTorch's headers."""

    def build_extensions(self):
        sources = sorted(glob.glob("src/*.cpp") + glob.glob("src/ops/*.cpp"), key=os.path.getsize)
        os.makedirs(self.build_temp, exist_ok=True)
        for extension in self.extensions:
            extension.sources = [self.joined(i, sources[i::2]) for i in range(2)]
        super().build_extensions()

    def joined(self, number, sources):
        unit = os.path.join(self.build_temp, f"unit{number}.cpp")
        text = "".join(f'#include "{os.path.join(root, source)}"\n' for source in sources)
        if not os.path.exists(unit) or open(unit, encoding="utf-8").read() != text:
            with open(unit, "w", encoding="utf-8") as file:
                file.write(text)
        return unit


os.chdir(root)
libraries = flags("--libs")
bridge = cpp_extension.CppExtension(
    "backplane_torch._bridge", [], extra_compile_args=["-std=c++20", "-O2", "-g0", "-fvisibility=hidden", *flags("--cflags")],
    extra_link_args=libraries + [f"-Wl,-rpath,{flag[2:]}" for flag in libraries if flag.startswith("-L")])

setuptools.setup(packages=["backplane_torch"], ext_modules=[bridge], cmdclass={"build_ext": Build})

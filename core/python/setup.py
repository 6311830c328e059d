# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of the package.

The folder core/python of a build directory, and the folder share/backplane/python of an installed SDK, contain the
generated modules. In the source tree, BACKPLANE_BUILD_DIR names a build directory, whose generated modules the wheel
receives. If BACKPLANE_WHEEL_LIBRARY names a file, the wheel contains this copy of libbackplane."""
import os
import re
import shutil
import sysconfig

from setuptools import setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

here = os.path.dirname(os.path.abspath(__file__))
generated = ("_operators.py", "_structs.py", "constants.py", "ops.py", "ops.pyi")
library = os.environ.get("BACKPLANE_WHEEL_LIBRARY")


def generated_folder():
    """Returns the folder with the generated modules."""
    build = os.environ.get("BACKPLANE_BUILD_DIR")
    folders = [os.path.join(here, "backplane")] + ([os.path.join(build, "core", "python", "backplane")] if build else [])
    for folder in folders:
        if all(os.path.isfile(os.path.join(folder, name)) for name in generated):
            return folder
    raise SystemExit(f"backplane: none of {', '.join(folders)} contains the generated modules {', '.join(generated)}; build the SDK "
                     "(ninja -C build), and set BACKPLANE_BUILD_DIR to its build directory, or build the wheel from build/core/python")


def version():
    with open(os.path.join(generated_folder(), "_structs.py"), encoding="utf-8") as file:
        return re.search(r'^PACKAGE_VERSION = "(.*)"$', file.read(), flags=re.M)[1]


class BuildPackage(build_py):
    """Adds the generated modules and the library."""

    def run(self):
        super().run()
        target, source = os.path.join(self.build_lib, "backplane"), generated_folder()
        for name in generated:
            self.copy_file(os.path.join(source, name), os.path.join(target, name))
        shutil.rmtree(os.path.join(target, "lib"), ignore_errors=True)
        if library:
            self.mkpath(os.path.join(target, "lib"))
            shutil.copyfile(library, os.path.join(target, "lib", "libbackplane.so"))


class Wheel(bdist_wheel):
    """Tags the wheel for any version of Python 3, and for this platform only if the wheel contains the library."""

    def get_tag(self):
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_") if library else "any"
        return "py3", "none", platform


setup(version=version(), cmdclass={"build_py": BuildPackage, "bdist_wheel": Wheel})

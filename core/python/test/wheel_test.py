# SPDX-License-Identifier: Apache-2.0
"""Builds wheels without network access, and uses the package that they contain."""
import glob
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import backplane as bp
from support import package, python, root

example = """if True:
    import backplane as bp
    d = bp.open("reference:0")
    print(bp.__file__, bp.library_path(), bp.ops.add(d.tensor([1., 2.]), d.tensor([3., 4.])).tolist())
    """


def can_build():
    """Returns whether pip and setuptools can build a wheel without other packages."""
    def version(name):
        try:
            return tuple(map(int, importlib.metadata.version(name).split(".")[:2]))
        except importlib.metadata.PackageNotFoundError:
            return None

    setuptools = version("setuptools")
    return version("pip") is not None and setuptools is not None and (setuptools >= (70, 1) or version("wheel") is not None)


@unittest.skipUnless(can_build(), "pip, setuptools or wheel is missing")
class WheelTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)

    def wheel_of(self, source, **variables):
        """Builds the wheel of a copy of the source folder, because setuptools writes to this folder."""
        copy = os.path.join(self.folder, "source")
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("test", "__pycache__"))
        run = subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps", "--no-index", "--no-build-isolation",
                              "--wheel-dir", self.folder, copy], text=True, capture_output=True, env={**os.environ, "PYTHONPATH": "", **variables})
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return glob.glob(os.path.join(self.folder, "*.whl"))[0]

    def installed(self, wheel):
        target = os.path.join(self.folder, "target")
        zipfile.ZipFile(wheel).extractall(target)  # pip does the same with a pure wheel, but slower
        return target

    def test_a_wheel_of_the_build_directory(self):
        wheel = self.wheel_of(package)
        self.assertEqual(os.path.basename(wheel), f"backplane-{bp.__version__}-py3-none-any.whl")
        names = [os.path.relpath(path, package) for path in glob.glob(os.path.join(package, "backplane", "*.py*")) if os.path.isfile(path)]
        self.assertEqual([name for name in names + ["backplane/py.typed"] if name not in zipfile.ZipFile(wheel).namelist()], [])
        target = self.installed(wheel)
        run = python(example, PYTHONPATH=target)
        self.assertEqual(run.stdout.split()[0], os.path.join(target, "backplane", "__init__.py"), run.stderr)
        self.assertIn("[4.0, 6.0]", run.stdout)

    def test_a_wheel_of_the_source_tree_with_the_library(self):
        build = os.path.dirname(os.path.dirname(package))
        wheel = self.wheel_of(os.path.join(root, "core/python"), BACKPLANE_BUILD_DIR=build, BACKPLANE_WHEEL_LIBRARY=os.environ["BACKPLANE_LIBRARY"])
        self.assertRegex(os.path.basename(wheel), r"-py3-none-linux_\w+\.whl$")
        target = self.installed(wheel)
        run = python(example, PYTHONPATH=target, BACKPLANE_LIBRARY=None)
        self.assertEqual(run.stdout.split()[1:2], [os.path.join(target, "backplane", "lib", "libbackplane.so")], run.stderr)
        self.assertIn("[4.0, 6.0]", run.stdout)

    def test_a_source_tree_without_a_build(self):
        run = subprocess.run([sys.executable, "setup.py", "--version"], text=True, capture_output=True, cwd=os.path.join(root, "core/python"),
                             env={**os.environ, "PYTHONPATH": "", "BACKPLANE_BUILD_DIR": "/no/such/build"})
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("set BACKPLANE_BUILD_DIR to its build directory", run.stdout + run.stderr)

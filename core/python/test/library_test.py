# SPDX-License-Identifier: Apache-2.0
"""Tests of the search for libbackplane and of its version check."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import backplane as bp
from backplane._structs import SONAME
from support import package, python

library = os.environ["BACKPLANE_LIBRARY"]
show = "import backplane as bp; print(bp.load()); print(bp.library_path())"
fails = """if True:
    import sys, backplane as bp
    try:
        bp.load(*sys.argv[1:])
    except bp.Error as failure:
        print(type(failure).__name__, failure)
    """


class LibraryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)

    def found(self, expected, **variables):
        run = python(show, **{"BACKPLANE_LIBRARY": None, **variables})
        self.assertEqual(run.returncode, 0, run.stderr)
        version, path = run.stdout.split()
        self.assertEqual((version, os.path.realpath(path) if os.sep in path else path), (bp.__version__, expected))

    def built(self, source):
        """Returns a library that is compiled from C."""
        path = os.path.join(self.folder, "libother.so")
        subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", path], input=source, text=True, check=True)
        return path

    def test_the_variable_comes_first(self):
        self.found(os.path.realpath(library), BACKPLANE_LIBRARY=library)

    def test_then_the_copy_in_the_package(self):
        shutil.copytree(os.path.join(package, "backplane"), os.path.join(self.folder, "backplane"))
        inside = os.path.join(self.folder, "backplane", "lib", "libbackplane.so")
        os.makedirs(os.path.dirname(inside))
        shutil.copy(library, inside)
        self.found(inside, PYTHONPATH=self.folder, PKG_CONFIG_PATH=self.pkg_config())

    def pkg_config(self):
        folder = os.path.join(self.folder, "pkgconfig")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "backplane.pc"), "w", encoding="utf-8") as file:
            file.write(f"libdir={os.path.dirname(library)}\nName: backplane\nDescription: test\nVersion: 0\n")
        return folder

    @unittest.skipIf(shutil.which("pkg-config") is None, "pkg-config is missing")
    def test_then_pkg_config(self):
        self.found(os.path.realpath(library), PKG_CONFIG_PATH=self.pkg_config())

    def test_then_the_dynamic_linker(self):
        self.found(SONAME, PKG_CONFIG_LIBDIR=self.folder, LD_LIBRARY_PATH=os.path.dirname(library))

    def failing(self, *arguments, **variables):
        run = python(fails, *arguments, **variables)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout

    def test_no_library(self):
        text = self.failing(BACKPLANE_LIBRARY=None, PKG_CONFIG_LIBDIR=self.folder, LD_LIBRARY_PATH=None)
        for part in ("Unavailable", SONAME, "BACKPLANE_LIBRARY", "backplane.load(path)", "PKG_CONFIG_PATH"):
            self.assertIn(part, text)
        self.assertIn("/no/such/file", self.failing("/no/such/file"))

    @unittest.skipIf(shutil.which("gcc") is None, "gcc is missing")
    def test_another_library(self):
        text = self.failing(self.built("int nothing;"))
        self.assertIn("Unavailable", text)
        self.assertIn("is not libbackplane", text)

    @unittest.skipIf(shutil.which("gcc") is None, "gcc is missing")
    def test_another_version(self):
        for version in ("0x00000001", "0x00000063", "0x00010000"):  # too old; after a break; another major version
            text = self.failing(self.built(f"unsigned bph_abi_version(void) {{ return {version}; }}"))
            for part in ("AbiMismatch", "the library has ABI", SONAME, "of the same version"):
                self.assertIn(part, text)

    @unittest.skipIf(shutil.which("gcc") is None, "gcc is missing")
    def test_an_older_library_lacks_functions(self):
        path = self.built('unsigned bph_abi_version(void) { return 2; } const char* bph_version(void) { return "0.1"; }')
        run = python("import sys, backplane as bp; print(bp.load(sys.argv[1])); bp.devices()", path)
        self.assertIn("0.1", run.stdout)
        self.assertIn("bph_registry_create", run.stderr)
        self.assertIn("lacks this function; install libbackplane", run.stderr)

    def test_paths_need_not_be_utf_8(self):
        folder = os.path.join(self.folder, os.fsdecode(b"\xff\xc3"))
        os.mkdir(folder)
        plugin = shutil.copy(os.environ["BACKPLANE_TEST_PLUGIN"], folder)
        manifest = shutil.copy(os.path.join(os.path.dirname(os.environ["BACKPLANE_TEST_PLUGIN"]), "reference.json"), folder)
        for path in (plugin, manifest, pathlib.Path(plugin)):
            with bp.Registry(default_paths=False) as registry, registry.load(path) as loaded:
                self.assertEqual((loaded.info.library, loaded.device_count()), (plugin, 1))
        with bp.Registry(folder, default_paths=False) as registry:
            self.assertEqual(registry.devices(), ["reference:0"])
            self.assertEqual([(each.manifest, each.library) for each in registry.candidates()], [(manifest, plugin)])
            with registry.open(plugin) as device:
                self.assertEqual(device.tensor([1.]).tolist(), [1])

    def test_a_process_loads_one_library(self):
        bp.load(library)
        with self.assertRaises(bp.InvalidArgument) as caught:
            bp.load("/another/library.so")
        self.assertIn("already loaded", str(caught.exception))

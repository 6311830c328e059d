# SPDX-License-Identifier: Apache-2.0
"""Runs mutated files for 8 seconds. Also checks that fuzz.py notices crashes, hangs and wrong exceptions."""
import os
import subprocess
import sys
import unittest

script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fuzz.py")


def run(*arguments, **variables):
    return subprocess.run([sys.executable, script, *arguments], env={**os.environ, **variables}, capture_output=True, text=True, timeout=200)


class FuzzTest(unittest.TestCase):
    def test_mutated_files(self):
        found = run("8", "--seed", "7")
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)
        self.assertIn("0 failures", found.stdout)

    def test_failures_are_noticed(self):
        for defect, text in (("crash", "crash"), ("wrong", "RuntimeError"), ("hang", "hang")):
            with self.subTest(defect=defect):
                found = run("8" if defect == "hang" else "3", "--seed", "7", BACKPLANE_ONNX_DEFECT=defect, BACKPLANE_ONNX_HANG_S="3")
                self.assertEqual(found.returncode, 1, found.stdout + found.stderr)
                self.assertIn(text, found.stdout)

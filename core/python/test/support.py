# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests."""
import os
import subprocess
import sys
import unittest

import backplane as bp

try:
    import numpy
except ImportError:
    numpy = None

needs_numpy = unittest.skipIf(numpy is None, "NumPy is missing")
root = os.environ["BACKPLANE_TEST_ROOT"]
package = os.environ["BACKPLANE_TEST_PACKAGE"]
plugin = os.environ["BACKPLANE_TEST_PLUGIN"]


class DeviceTest(unittest.TestCase):
    """Opens the reference device for the tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.device = bp.open("reference:0")

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def message(self, error, parts, function, *arguments, **named):
        """Checks that a call raises an exception of class `error`, and that its text contains each of the parts."""
        with self.assertRaises(error) as caught:
            function(*arguments, **named)
        for part in parts:
            self.assertIn(part, str(caught.exception))


def python(program, *arguments, **variables):
    """Runs a program in another Python. Returns the completed process."""
    environment = {**os.environ, **variables}
    return subprocess.run([sys.executable, "-c", program, *arguments], env={name: value for name, value in environment.items() if value is not None},
                          capture_output=True, text=True, timeout=50)

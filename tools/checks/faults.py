# SPDX-License-Identifier: Apache-2.0
"""Functions for scripts that test failures of drivers and devices. The environment variables TEST_DRIVER_* select the
calls at which a test driver fails."""
import os
import subprocess

import certified
import tap


class Plugin:
    """A plugin under test, and another plugin that its failures must not affect."""

    def __init__(self, command, library, other):
        self.command = command
        self.library = library
        self.name, self.other = map(certified.name_of, (library, other))
        self.folders = [os.path.dirname(os.path.abspath(path)) for path in (library, other)]

    def expect_absent(self, what, environment, *words):
        """Checks that the plugin offers no device for a reason that contains `words`, and that the other plugin still
        has a device."""
        said = certified.listing(self.command, self.folders, environment)
        absent = f"{self.name}:0" not in said
        tap.check(f"{what}: no device, and why", absent and all(word in said for word in words), said)
        tap.check(f"{what}: the other plugin is there", f"{self.other}:0" in said, said)

    def expect_product(self, what, environment, good, *words):
        """Checks that a matrix product succeeds, or fails if `good` is false, and that the output contains `words`."""
        status, said = self._run("matmul", "--shape", "2x3", "--shape", "3x2", "--data", "1,2,3,4,5,6", "--data", "1,0,0,1,1,1",
                                 environment=environment)
        if good:
            words = (*words, "4", "5", "10", "11")
        right = (status == 0) == good and status not in (-6, -11) and all(word in said for word in words)
        tap.check(f"{what}: a {'product' if good else 'message'}", right, f"{status}: {said}")

    def expect_message(self, what, environment, *words):
        """Checks that `backplane info` of the device succeeds, and that the output contains `words`."""
        run = subprocess.run([self.command, "info", f"{self.name}:0"], capture_output=True, text=True, check=False, timeout=120,
                             env={**os.environ, "BACKPLANE_PLUGIN_PATH": os.pathsep.join(self.folders), **environment})
        good = run.returncode == 0 and all(word in run.stdout for word in words)
        tap.check(f"{what}: info says so", good, f"{run.returncode}: {run.stdout}{run.stderr}")

    def expect_result(self, what, environment, *words):
        """Checks that an addition succeeds, and that the output contains `words`."""
        status, said = self._add(environment)
        good = status == 0 and all(word in said for word in ("11", "22", "33", *words))
        tap.check(f"{what}: the result is right", good, f"{status}: {said}")

    def expect_failure(self, what, fail, *words, **environment):
        """Checks that an addition fails with a message that contains `words`. `fail` is the value of TEST_DRIVER_FAIL,
        which lists the driver's calls that fail."""
        status, said = self._add({"TEST_DRIVER_FAIL": fail, **environment})
        good = status not in (0, -6, -11) and all(word in said for word in words)
        tap.check(f"{what}: a message", good, f"{status}: {said}")

    def expect_cases(self, what, cases, environment, *words):
        """Checks that the cases pass. If `words` are given, checks instead that a case fails with a message that
        contains all `words`."""
        certificate, said, status = certified.certify(self.command, self.library, "--filter", cases, environment=environment)
        failed = certificate is None or status != 0
        said += str(certificate)
        tap.check(f"{what}: {'a message' if words else 'the cases pass'}", failed == bool(words) and all(word in said for word in words),
                  f"{status}: {said}")

    def _add(self, environment):
        return self._run("add", "--shape", "3", "--data", "1,2,3", "--data", "10,20,30", environment=environment)

    def _run(self, *arguments, environment):
        """Runs an operator. Returns the exit status and all output."""
        run = subprocess.run([self.command, "run", *arguments, "--device", f"{self.name}:0"], capture_output=True, text=True, check=False,
                             timeout=120, env={**os.environ, "BACKPLANE_PLUGIN_PATH": os.pathsep.join(self.folders), **environment})
        return run.returncode, run.stdout + run.stderr

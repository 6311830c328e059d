# SPDX-License-Identifier: Apache-2.0
"""What the scripts share: the checks' output, a run of the command, and the visible skip where no device is."""
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("BACKPLANE_VULKAN_CACHE", "off")  # the tests leave the user's alone
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))


def certify(command, library, *arguments, environment=None):
    """-> the certificate, or what was said instead, as text."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([command, "--json", "certify", library, "--quiet", "--output", folder, *arguments],
                             capture_output=True, text=True, check=False, env={**os.environ, **(environment or {})})
    try:
        return json.loads(run.stdout), run.stderr
    except ValueError:
        return None, run.stdout + run.stderr


def listing(command, folders, environment=None):
    """-> what `backplane list` and `backplane doctor` say with the plugins of `folders`."""
    path = os.pathsep.join(os.path.abspath(folder) for folder in folders)
    runs = [subprocess.run([command, word], capture_output=True, text=True, check=False,
                           env={**os.environ, "BACKPLANE_PLUGIN_PATH": path, **(environment or {})})
            for word in ("list", "doctor")]
    return "".join(run.stdout + run.stderr for run in runs)


def skip_without_device(command, library):
    said = listing(command, [os.path.dirname(library)])
    if "vulkan:0" not in said:
        print(f"1..0 # SKIP no Vulkan device: {' '.join(said.split())}")
        sys.exit(0)


def failures_of(certificate):
    return [one for one in certificate["non_passes"] if one["outcome"] != "not_claimed"]

# SPDX-License-Identifier: Apache-2.0
"""Functions for scripts that certify plugins. The functions run `backplane certify`, list failures, and skip a test if
the plugin has no device. A skipped test prints the reason."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import tap


def given(*flags):
    """Parses the command line. Returns, in this order: a boolean for --skip-without-device and for each of `flags`,
    the command, the plugin's library, and the list of the remaining words."""
    parser = argparse.ArgumentParser()
    flags = ("--skip-without-device", *flags)
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    parser.add_argument("command")
    parser.add_argument("library")
    parser.add_argument("words", nargs="+")
    found = parser.parse_args()
    return (*(getattr(found, flag[2:].replace("-", "_")) for flag in flags), found.command, found.library, found.words)


def certify(command, library, *arguments, environment=None):
    """Certifies a plugin. Returns the certificate, the text of standard error, and the exit status. If the run wrote no
    certificate, returns None, the text of standard output and standard error, and the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([command, "--json", "certify", library, "--quiet", "--output", folder, *arguments],
                             capture_output=True, text=True, check=False, env={**os.environ, **(environment or {})})
    try:
        return json.loads(run.stdout), run.stderr, run.returncode
    except ValueError:
        return None, run.stdout + run.stderr, run.returncode


def filters(groups):
    return [word for group in groups for word in ("--filter", group)]


def listing(command, folders, environment=None):
    """Returns the output of `backplane list` and `backplane doctor` with the plugins in `folders`."""
    path = os.pathsep.join(os.path.abspath(folder) for folder in folders)
    runs = [subprocess.run([command, word], capture_output=True, text=True, check=False,
                           env={**os.environ, "BACKPLANE_PLUGIN_PATH": path, **(environment or {})})
            for word in ("list", "doctor")]
    return "".join(run.stdout + run.stderr for run in runs)


def name_of(library):
    """Returns the name of the plugin in a library."""
    return os.path.basename(library).removeprefix("libbackplane_").removesuffix(".so")


def skip_without_device(command, library):
    """Skips the test if the plugin has no device on this machine."""
    name = name_of(library)
    said = listing(command, [os.path.dirname(library)])
    if f"{name}:0" not in said:
        print(f"1..0 # SKIP no device of {name}: {' '.join(said.split())}")
        sys.exit(0)


def failures_of(certificate):
    return [one for one in certificate["non_passes"] if one["outcome"] != "not_claimed"]


def described(failure):
    return " | ".join([failure["id"], failure["outcome"], " ".join(failure["reason"].split()), failure.get("repro", "")])


def check_failures(what, failures):
    """Checks that there are no failures, and otherwise prints the number and the first 20."""
    tap.check(what, not failures, "\n".join([f"{len(failures)} failures", *map(described, failures[:20])]))


def lasting(certificate, command, library, *arguments):
    """Returns the failures of a certificate that are not unstable. Returns all failures if there are more than 5.
    Otherwise, runs the failed cases three more times with the same arguments and the seed of the certificate, so that
    the cases have the same data. A case that passes all three times is unstable, for example because of load or a race.
    The function prints unstable cases, and tools/test lists them at its end. They do not fail the test."""
    failures = failures_of(certificate)
    if not 0 < len(failures) <= 5:
        return failures
    again = set()
    for _ in range(3):
        repeated, said, _ = certify(command, library, *arguments, "--seed", str(certificate["run"]["seed"]), *filters([one["id"] for one in failures]))
        if repeated is None:
            print(f"# {said}")
            return failures
        again |= {one["id"] for one in failures_of(repeated)}
    for one in failures:
        if one["id"] not in again:
            print(f"# unstable: {described(one)}")
    return [one for one in failures if one["id"] in again]

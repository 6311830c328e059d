# SPDX-License-Identifier: Apache-2.0
"""Writes the Test Anything Protocol for the check scripts, with one line per check, so that the runner counts each
check."""
import sys

_results = []


def check(name, passed, detail=""):
    """Records one check. If the check failed, prints `detail`, which is the reason."""
    _results.append(bool(passed))
    print(f"{'ok' if passed else 'not ok'} {len(_results)} - {name}")
    if not passed:
        for line in str(detail).splitlines() or ["no detail"]:
            print(f"# {line}")
            print(f"{name}: {line}", file=sys.stderr)
    return passed


def done():
    """Prints the number of checks and ends the process. The exit status is 0 if there were checks and all passed."""
    print(f"1..{len(_results)}")
    sys.exit(0 if _results and all(_results) else 1)

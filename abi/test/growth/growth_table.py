#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests all combinations of old and new components: growth_table.py BUILD CORE.

Prints the table of docs/spec/growth.md with the result of each cell. F is the framework, C is
libbackplane, and P is the plugin. C0 is today's library. F0 and P0 are built against the frozen
copy of 0.2. F1, C1 and P1 are built against the next minor version, which grow.py makes. BUILD is
the folder of this test's programs. CORE is the folder of today's libbackplane."""
import itertools
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import layout
import tap

build, core = sys.argv[1:]
libraries = {0: core, 1: build}
frameworks = {0: "frozen_framework", 1: "grown_framework"}
plugins = {"plain C": {0: "frozen_c.so", 1: "grown_c.so"}, "kit": {0: "frozen_kit.so", 1: "grown_kit.so"}}
combinations = list(itertools.product((0, 1), repeat=3))  # (framework, core, plugin)


def run(program, core_dir, *arguments, **environment):
    """Returns (exit status, {row: outcome}, all output)."""
    variables = dict(os.environ, LD_LIBRARY_PATH=core_dir, **environment)
    variables = {key: value for key, value in variables.items() if not key.startswith("BACKPLANE_")}
    done = subprocess.run([os.path.join(build, program), *arguments], env=variables, capture_output=True, text=True, check=False)
    lines = [line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line]
    return done.returncode, dict(lines), done.stdout + done.stderr


# Each row of new_rows has a function that returns the expected outcome of a call with additions. Its
# parameters c and p are 0 or 1, as in C0 and P1.
def works(*_):
    return "native"


def gated(otherwise):
    """Returns a function for a row of new_rows whose call needs a newer plugin. An older core refuses the
    call. A newer core does not pass the call to an older plugin; the outcome is then `otherwise`."""
    return lambda c, p: "UNSUPPORTED" if not c else "native" if p else otherwise


old_rows = ["attribute", "operand", "scalar", "dtype", "set of dtypes", "flag", "permission bit", "hint bit", "enumerator", "host struct",
            "output field"]
new_rows = {
    "attribute, zero": works,
    "attribute, given": gated("decomposed"),
    "operand, absent": works,
    "operand, given": gated("decomposed"),
    "scalar, zero": works,
    "scalar, minus zero": gated("decomposed"),
    "scalar, given": gated("decomposed"),
    "dtype, given": gated("UNSUPPORTED"),
    "set of dtypes, given": gated("UNSUPPORTED"),
    "flag, given": gated("UNSUPPORTED"),
    "permission bit, given": works,
    "hint bit, given": works,
    "enumerator, given": gated("decomposed"),
    "host struct, given": lambda c, p: "native" if c else "UNSUPPORTED",
    "operator, given": gated("UNSUPPORTED"),
    "composite of 0.3": lambda c, p: "decomposed",
    "slot, called by a bph_ function": lambda c, p: "no function" if not c else "7" if p else "UNSUPPORTED",
    "interface slot, given": lambda c, p, style: "9" if p else "no slot" if style == "kit" else "no interface",
    "output field, read": lambda c, p: "5" if c and p else "not said",
}


def expected(row, style, f, c, p):
    if row in old_rows:
        return "read" if row == "output field" else "native"
    if not f:
        return None
    rule = new_rows[row]
    return rule(c, p, style) if rule.__code__.co_argcount == 3 and rule is not works else rule(c, p)


def print_table(style, cells):
    width = max(len(row) for row in [*old_rows, *new_rows]) + 2
    print(f"# plugins in {style}".ljust(width + 4) + "".join(f"F{f}C{c}P{p}".ljust(13) for f, c, p in combinations))
    for row in [*old_rows, *new_rows]:
        print(f"#   {row.ljust(width)}" + "".join((cells[combination].get(row) or "-").ljust(13) for combination in combinations).rstrip())


def check_combinations(style):
    cells = {}
    for f, c, p in combinations:
        status, cells[f, c, p], text = run(frameworks[f], libraries[c], os.path.join(build, plugins[style][p]))
        tap.check(f"{style}: F{f}C{c}P{p} runs to its end", status == 0, text)
    print_table(style, cells)
    for row in [*old_rows, *new_rows]:
        wrong = [f"F{f}C{c}P{p}: {cells[f, c, p].get(row)}, not {expected(row, style, f, c, p)}" for f, c, p in combinations
                 if cells[f, c, p].get(row) != expected(row, style, f, c, p)]
        tap.check(f"{style}: {row}", not wrong, "\n".join(wrong))


def check_function():
    """Tests a framework that links to a later bph_ function instead of looking it up at run
    time."""
    outcomes = {c: run("grown_direct", libraries[c]) for c in (0, 1)}
    results = {c: "does not start" if status == 127 else "".join(cells.values()) for c, (status, cells, _) in outcomes.items()}
    print(f"# bph_ function, not looked up: F1C0 {results[0]}, F1C1 {results[1]}")
    tap.check("a later bph_ function that is not looked up needs the later library",
              results == {0: "does not start", 1: "INVALID_ARGUMENT"} and "bph_device_later" in outcomes[0][2], outcomes)


def check_majors():
    for name in ("frozen_c.so", "frozen_kit.so", "grown_c.so", "grown_kit.so", "major_c.so"):
        status, cells, text = run("major_framework", build, os.path.join(build, name))
        good = status == 0 and all(cells.get(row) == expected(row, "", 0, 0, 0) for row in old_rows)
        print(f"# a host of 1.0 with {name}: {'all calls as before' if good else cells}")
        tap.check(f"a host of 1.0 with {name}", good, text)
    for f, c in itertools.product((0, 1), repeat=2):
        status, cells, text = run(frameworks[f], libraries[c], os.path.join(build, "major_c.so"))
        print(f"# a host of 0.x with a plugin of 1.0: F{f}C{c} {cells.get('load', '').split(':')[0]}")
        tap.check(f"a host of 0.x refuses a plugin of 1.0: F{f}C{c}", status == 1 and cells.get("load", "").startswith("ABI_MISMATCH: "),
                  text)


def check_suite():
    """A newer suite must not revoke an older plugin's certificate. A plugin of the suite's version
    must pass the new cases."""
    old, new = (run("newer_suite", core, os.path.join(build, name)) for name in ("frozen_kit.so", "grown_kit.so"))
    for name, (_, cells, _) in (("frozen_kit.so", old), ("grown_kit.so", new)):
        for suite, verdict in cells.items():
            print(f"# suite {suite}, {name}: {verdict}")
    tap.check("a newer suite leaves an older plugin its verdict", " is certified at CORE of ABI 0.2; " in old[1].get("today", "") and
              len({verdict.rsplit(";", 1)[0] for verdict in old[1].values()}) == 1 and len(old[1]) == 3, old[2])
    tap.check("a newer suite queries a newer plugin", " is certified at CORE of ABI 0.4; " in new[1].get("later, kept", "") and
              " not certified at CORE of ABI 0.4: " in new[1].get("later, broken", ""), new[2])


def check_growth():
    """The comparison with the golden file must accept the edits of grow.py as growth."""
    golden = layout.read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../layout.txt")).splitlines()
    for what in ("minor", "major"):
        lines = layout.dump("backplane/backplane.h", [os.path.join(build, what, "include")])
        faults = layout.compare(golden, lines) + layout.holes(lines)
        allowed = [] if what == "minor" else ["BP_ABI_VERSION_MAJOR", "BP_ABI_VERSION_MINOR", "BP_ABI_VERSION_OLDEST"]
        faults = [fault for fault in faults if fault.split(":")[0] not in allowed]
        tap.check(f"the golden takes the {what} version for growth", not faults, "\n".join(faults))


def check_hazards():
    """Shows that version checks are needed. Without these checks, a plugin of 0.2 receives calls
    that it does not know."""
    status, cells, text = run("grown_framework", build, os.path.join(build, "frozen_c.so"), FROZEN_CLAIMS="4")
    wrong = [row for row, outcome in cells.items() if outcome == "WRONG"]
    print(f"# a plugin of 0.2 that claims to be of 0.4: WRONG in {', '.join(wrong) or 'nothing'}; it ends with {status}")
    tap.check("without the gate an old plugin computes another operation than requested", len(wrong) >= 4, text)
    tap.check("without the version of its table its private fields are called", status != 0, text)


check_growth()
for each in plugins:
    check_combinations(each)
check_function()
check_majors()
check_suite()
check_hazards()
tap.done()

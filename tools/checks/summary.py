#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up the results of tools/test: summary.py REPORT.

Each line of REPORT is `junit <pass> <file> <status>` or `passed|failed|skipped <step>`. Prints one line per pass, and
then the failures. The last line is `N passed, N failed[, N skipped]`. Exits with status 1 if there is a failure."""
import sys
import xml.etree.ElementTree as ElementTree


def count_junit(path):
    """Returns [passed, failed, skipped] and the names of failed cases. Counts the cases of a GoogleTest executable, not
    the executable."""
    counts, failures = [0, 0, 0], []
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        for case in suite.findall("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                counts[1] += 1
                failures.append(f"{suite.get('name')}: {case.get('name')}")
            elif case.find("skipped") is not None or case.get("result") == "skipped":
                counts[2] += 1
            else:
                counts[0] += 1
    return counts, failures


def main(report):
    total, failures = [0, 0, 0], []
    for line in open(report, encoding="utf-8"):
        kind, name, *rest = line.split()
        if kind == "junit":
            try:
                counts, failed = count_junit(rest[0])
            except (OSError, ElementTree.ParseError) as error:
                counts, failed = [0, 1, 0], [f"no result file: {error}"]
            if rest[1] != "0" and not counts[1]:  # the program crashed or timed out outside any test case
                counts[1], failed = 1, [f"the runner ended with status {rest[1]}; see its output above"]
        else:
            counts = [int(kind == outcome) for outcome in ("passed", "failed", "skipped")]
            failed = ["see its output above"] if kind == "failed" else []
        total = [a + b for a, b in zip(total, counts)]
        failures += [f"{name}: {text}" for text in failed]
        print(f"{name:<16} {counts[0]:>6} passed {counts[1]:>4} failed {counts[2]:>4} skipped")
    for text in failures:
        print("FAILED", text)
    print(f"{total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

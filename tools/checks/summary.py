#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up the results of tools/test: summary.py REPORT.

Each line of REPORT has the form `junit <pass> <file> <status>` or `passed|failed|skipped <step>`. A pass is a run of
`meson test` in one build. The script prints one line per pass, then each unstable case (certified.py), and then each
failure with the first lines of its reason. The last line is `N passed, N failed[, N skipped]`. Exits with status 1 if
there is a failure."""
import sys
import xml.etree.ElementTree as ElementTree

REASON_LINES, REASON_WIDTH = 12, 240


def reason_of(suite, case):
    """Returns the reason of a failed case. In results of a GoogleTest program, the case contains the reason. A script
    that uses tap.py prints the reason as comments after the line of the check, and Meson stores the script's whole
    output."""
    text = "".join(case.findtext(kind) or "" for kind in ("failure", "error"))
    output = (suite.findtext("system-out") or "").splitlines()
    line = f"not ok {case.get('name')}"
    for comment in output[output.index(line) + 1:] if line in output else []:
        if not comment.startswith("#"):
            break
        text += f"\n{comment[1:].strip()}"
    lines = [one.strip() for one in text.splitlines() if one.strip()]
    return lines or (case.findtext("system-err") or suite.findtext("system-err") or "").splitlines()[-REASON_LINES:]


def count_junit(path):
    """Returns [passed, failed, skipped] and the names of failed cases with their reasons. Counts the cases of a
    GoogleTest executable, not the executable."""
    counts, failures = [0, 0, 0], []
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        for case in suite.findall("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                counts[1] += 1
                reason = [f"    {line[:REASON_WIDTH]}" for line in reason_of(suite, case)[:REASON_LINES]]
                failures.append("\n".join([f"{suite.get('name')}: {case.get('name')}", *reason]))
            elif case.find("skipped") is not None or case.get("result") == "skipped":
                counts[2] += 1
            else:
                counts[0] += 1
    return counts, failures


def unstable_of(path):
    """Returns the cases that scripts report as unstable in their output."""
    outputs = (suite.findtext("system-out") or "" for suite in ElementTree.parse(path).getroot().iter("testsuite"))
    lines = (line for output in outputs for line in output.splitlines())
    return [line.removeprefix("# unstable: ") for line in lines if line.startswith("# unstable: ")]


def main(report):
    total, failures, unstable = [0, 0, 0], [], []
    for line in open(report, encoding="utf-8"):
        kind, name, *rest = line.split()
        if kind == "junit":
            try:
                counts, failed = count_junit(rest[0])
                unstable += [f"{name}: {text[:REASON_WIDTH]}" for text in unstable_of(rest[0])]
            except (OSError, ElementTree.ParseError) as error:
                counts, failed = [0, 1, 0], [f"no result file: {error}"]
            if rest[1] != "0" and not counts[1]:  # a test program crashed or timed out outside any test case
                counts[1], failed = 1, [f"the runner ended with status {rest[1]}; see its output above"]
        else:
            counts = [int(kind == outcome) for outcome in ("passed", "failed", "skipped")]
            failed = ["see its output above"] if kind == "failed" else []
        total = [a + b for a, b in zip(total, counts)]
        failures += [f"{name}: {text}" for text in failed]
        print(f"{name:<16} {counts[0]:>6} passed {counts[1]:>4} failed {counts[2]:>4} skipped")
    for text in unstable:
        print("UNSTABLE", text)
    for text in failures:
        print("FAILED", text)
    print(f"{total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

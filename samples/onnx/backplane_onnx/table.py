# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of onnx.backend.test, and writes the tables of README.md:

   python3 -m backplane_onnx.table README.md [--device DEVICE]... [--check]
   python3 -m backplane_onnx.table README.md --others --device DEVICE...

With --check, the script compares the page with the runs, and does not change the page. With --others, it writes
the short table of devices that not every machine has."""
import argparse
import re
import sys
import warnings
from collections import Counter, defaultdict
from typing import Optional

import onnx

from .cases import NO_CALL, OUTCOMES, all_cases, run_case


def markers(section: str) -> "tuple[str, str]":
    return f"<!-- {section}: begin -->", f"<!-- {section}: end -->"


def outcomes(device_name: str) -> "list[tuple[str, str, str, str]]":
    """Returns (name, outcome, operator, message) of each case."""
    import backplane as bp
    warnings.simplefilter("ignore")
    with bp.open(device_name) as device:
        return [(case.name, *run_case(case, device)) for _, case in all_cases()]


def reason_of(message: str) -> str:
    """Returns the reason of a refusal, without the names that belong to one case."""
    found = re.search(r"has the type (\w+)|no dtype for (\w+)", message)
    if found:
        return f"dtype {found[1] or found[2]}"
    if "no mapping for this operator" in message:
        return "no mapping"
    if "depends on the value" in message:
        return "the shape of the result depends on data"
    found = re.search(r"\)(?: with inputs .*?)?: (?!.*\): )(.*?);", message, re.S)
    return found[1].strip() if found else message.split(": ", 1)[-1].split(";")[0].strip()


def counts_of(runs: "dict[str, list]") -> "list[str]":
    """Returns the lines of the table of outcomes."""
    lines = [f"Cases of onnx {onnx.__version__}:", "", "| device | cases | " + " | ".join(OUTCOMES) + " | passed | without a call |",
             "|---|" + "--:|" * (len(OUTCOMES) + 3)]
    for device, rows in runs.items():
        counts = Counter(row[1] for row in rows)
        lines.append(f"| {device.partition(':')[0]} | {len(rows)} | " + " | ".join(str(counts[name]) for name in OUTCOMES) +
                     f" | {100 * counts['pass'] / len(rows):.1f} % | {sum(row[3] == NO_CALL for row in rows)} |")
    return lines


def text_of(runs: "dict[str, list]") -> "list[str]":
    """Returns the lines of the table of outcomes, and of the tables of cases that do not pass."""
    lines = counts_of(runs)
    lines += ["", "Cases that are not supported, by operator and reason:", "", "| operator | cases | reasons |", "|---|--:|---|"]
    first = next(iter(runs.values()))
    reasons: "dict[str, Counter]" = defaultdict(Counter)
    for _, outcome, operator, message in first:
        if outcome == "unsupported":
            reasons[operator][reason_of(message)] += 1
    for operator, found in sorted(reasons.items(), key=lambda item: (-sum(item[1].values()), item[0])):
        lines.append(f"| {operator} | {sum(found.values())} | {', '.join(sorted(found))} |")
    others = [f"| {name} | {operator} |" for name, outcome, operator, _ in first if outcome in ("rounding", "wrong", "error")]
    if others:
        lines += ["", "Cases with the outcomes rounding, wrong or error:", "", "| case | operator |", "|---|---|", *others]
    differing = sorted({f"{name} on {device}: {row_outcome}" for device, rows in runs.items() for (name, row_outcome, *_), one in zip(rows, first)
                        if row_outcome != one[1]})
    return lines + ["", f"Cases whose outcome differs between these devices: {', '.join(differing) or 'none'}."]


def main(arguments: "Optional[list[str]]" = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m backplane_onnx.table", description="Writes the tables of a page.")
    parser.add_argument("page")
    parser.add_argument("--device", action="append", help="default reference:0 and onednn:0")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--others", action="store_true")
    options = parser.parse_args(arguments)
    with open(options.page, encoding="utf-8") as file:
        page = file.read()
    begin, end = markers("other devices" if options.others else "cases")
    if begin not in page or end not in page:
        print(f"{options.page}: the lines {begin} and {end} are missing; add them where the tables belong", file=sys.stderr)
        return 2
    runs = {name: outcomes(name) for name in options.device or ["reference:0", "onednn:0"]}
    lines = counts_of(runs) if options.others else text_of(runs)
    new = page[:page.index(begin)] + "\n".join([begin, *lines, end]) + page[page.index(end) + len(end):]
    if options.check:
        return same(page, new, options.page)
    with open(options.page, "w", encoding="utf-8") as file:
        file.write(new)
    return 0


def comparable(page: str) -> "list[str]":
    """Returns the lines of a page with the outcomes pass and rounding added together. Which of the two a case
    has may depend on the processor, because the last bits of a result may."""
    def merged(match: "re.Match[str]") -> str:
        passed, unsupported, rounding, rest = match.groups()
        return f"{int(passed) + int(rounding)} | {unsupported} | {rest}"

    page = re.sub(r"(\d+) \| (\d+) \| (\d+) \| (\d+ \| \d+) \| [\d.]+ % \|", merged, page)
    return re.sub(r"\n(Cases with the outcomes rounding|Cases whose outcome differs).*?<!--", "<!--", page, flags=re.S).splitlines()


def same(page: str, new: str, name: str) -> int:
    """Prints the lines of a page that differ from the new page. Returns the exit code: 0 if the pages are
    equal, otherwise 1."""
    old_lines, new_lines = comparable(page), comparable(new)
    for old, now in [(old, now) for old, now in zip(old_lines, new_lines) if old != now][:10]:
        print(f"{name} states\n  {old}\nand the run gives\n  {now}\nrun python3 -m backplane_onnx.table {name}")
    return 1 if old_lines != new_lines else 0


if __name__ == "__main__":
    sys.exit(main())

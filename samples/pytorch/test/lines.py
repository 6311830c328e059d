#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a table of the bridge's lines of code by topic, without comments and empty lines: lines.py [--write FILE].
`--write` replaces the table in a page."""
import glob
import os
import sys

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
begin_mark, end_mark = "<!-- from lines.py -->", "<!-- end of lines.py -->"
topics = {
    "devices, streams, events": ["src/devices.*", "src/guard.*", "src/hooks.*"],
    "memory, copies, views": ["src/allocator.*", "src/pinned.*", "src/copy.*", "src/views.*"],
    "conversion of a tensor, one call, errors, registration": ["src/call.*", "src/errors.*", "src/overloads.*"],
    "fallback to the CPU": ["src/fallback.*"],
    "random numbers": ["src/generator.*", "src/ops/random.*"],
    "autocast": ["src/autocast.*"],
    "kernels of ATen overloads": ["src/ops/*"],
    "Python package and its build": ["src/module.*", "backplane_torch/*.py", "setup.py"],
}


def lines_of(path):
    comment = "#" if path.endswith(".py") else "//"
    with open(path, encoding="utf-8") as file:
        return sum(1 for line in file if line.strip() and not line.lstrip().startswith(comment))


def main():
    counted, rows = set(), ["| topic | lines |", "|---|---|"]
    for topic, patterns in topics.items():
        paths = {path for pattern in patterns for path in glob.glob(os.path.join(root, pattern))} - counted
        counted |= paths
        rows.append(f"| {topic} | {sum(map(lines_of, paths))} |")
    rows.append(f"| all | {sum(map(lines_of, counted))} |")
    table = "\n".join(rows) + "\n"
    if sys.argv[1:2] != ["--write"]:
        print(table, end="")
        return
    with open(sys.argv[2], encoding="utf-8") as file:
        before, rest = file.read().split(begin_mark)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(f"{before}{begin_mark}\n{table}{end_mark}{rest.split(end_mark)[1]}")


if __name__ == "__main__":
    main()

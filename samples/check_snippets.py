#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every C and C++ snippet of a page is a region of a compiled sample: check_snippets.py [--write]
ROOT PAGE...

A line `<!-- FILE [REGION] -->` precedes the fence of a snippet. In FILE, the comments [REGION] and [/REGION]
mark the beginning and the end of the region. Without REGION, the snippet is the whole file without its licence
line. With --write, the script does not check the pages, but copies the samples' text into them."""
import os
import pathlib
import re
import sys
import textwrap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools/checks"))
import tap

snippet = re.compile(r"(?:<!-- (?P<file>\S+)(?: \[(?P<region>\w+)\])? -->\n)?^```(?:c|cpp)\n(?P<text>.*?)^```$", re.M | re.S)


def region(root, file, name):
    text = (root / file).read_text(encoding="utf-8")
    if not name:
        return text.split("\n", 1)[1]
    marked = re.search(rf"^[^\n]*\[{name}\][^\n]*\n(.*?)^[^\n]*\[/{name}\][^\n]*$", text, re.M | re.S)
    if not marked:
        raise KeyError(f"{file} has no region [{name}]")
    # Removes the markers of other regions inside this region.
    unmarked = re.sub(r"^\s*(?://|/\*) \[/?\w+\].*\n", "", marked[1], flags=re.M)
    return textwrap.dedent(unmarked).strip("\n") + "\n"


def compare(root, text):
    """Returns the page with its snippets replaced by the samples' regions, and the problems of its current
    snippets."""
    faults = []

    def visit(match):
        line = text.count("\n", 0, match.start()) + 1
        if not match["file"]:
            faults.append(f"line {line}: a snippet without a line <!-- FILE [REGION] --> before it")
            return match[0]
        try:
            wanted = region(root, match["file"], match["region"])
        except (KeyError, OSError) as error:
            faults.append(f"line {line}: {error}")
            return match[0]
        if match["text"] != wanted:
            faults.append(f"line {line}: differs from {match['file']} [{match['region'] or 'all'}]; mend with --write")
        return text[match.start():match.start("text")] + wanted + "```"

    updated = snippet.sub(visit, text)
    return updated, faults if snippet.search(text) else ["no snippet found"]


arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
root, *pages = [pathlib.Path(argument) for argument in arguments]
for page in pages:
    original = page.read_text(encoding="utf-8")
    updated, faults = compare(root, original)
    if "--write" in sys.argv:
        page.write_text(updated, encoding="utf-8")
        continue
    tap.check(f"{page.name} agrees with the samples", not faults, "\n".join(faults))
    tap.check(f"{page.name}: a changed snippet is noticed", compare(root, original.replace("```cpp\n", "```cpp\n//\n", 1))[1])
    tap.check(f"{page.name}: an unmarked snippet is noticed", compare(root, original + "\n```cpp\nint x;\n```\n")[1])
if "--write" not in sys.argv:
    tap.done()

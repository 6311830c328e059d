#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares docs/spec/operators.md with the tables: operators.py COMMAND ROOT [--write].

Each operator has a section, in the order of ops.def. A section contains a generated block and text that an author
writes, namely corner cases and the decomposition of a composite. The block is generated from the tables and
docs/spec/accuracy.md. --write updates the blocks in the page."""
import json
import os
import re
import subprocess
import sys

import tap

page_name = "docs/spec/operators.md"
begin, end = "<!-- from the tables: {} -->", "<!-- end of the tables -->"
any_block = re.compile(r"<!-- from the tables: (\w+) -->\n(.*?)" + re.escape(end), flags=re.S)
section = re.compile(r"^### (\w+)\n(.*?)(?=^##|\Z)", flags=re.S | re.M)
wide, narrow = ("f32", "f64"), ("f16", "bf16")


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def cells_of(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def table_of(text, heading):
    """Returns the rows of the first table after a heading, without the header and the line below it."""
    body = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return [cells_of(line) for line in body.splitlines() if line.startswith("|")][2:]


class Accuracy:
    """The tables of docs/spec/accuracy.md."""

    def __init__(self, text):
        self.classes = {re.match(r"\*\*(\w)", row[0])[1]: row[1:] for row in table_of(text, "Classes")}
        self.own = {name: row[1:] for row in table_of(text, "Primitives with a bound of their own") for name in row[0].split(", ")}
        self.ulps = {name: row[1] for row in table_of(text, "Primitives of class U") for name in row[0].split(", ")}
        self.composites = {}
        for names, bound in table_of(text, "Composites"):
            operators, _, part = names.partition(": ")
            for name in operators.split(", "):
                self.composites.setdefault(name, []).append((part, bound.replace("](#", "](accuracy.md#")))

    def rows(self, op):
        """Returns (dtypes, part, bound) tuples for an operator."""
        if op["kind"] == "composite":
            return [(op["dtypes"], part, bound) for part, bound in self.composites.get(op["name"], [])]
        letter = op["accuracy"][0]
        cells = self.own.get(op["name"]) or self.classes[letter]
        if cells[1].startswith("the same"):
            cells = [cells[0], cells[0] + cells[1].removeprefix("the same")]
        if letter == "U" and op["name"] not in self.own:
            ulps = op["accuracy"][2:-1]
            cells = [cell.replace(" k ", f" {ulps} ") for cell in cells]
        groups = [([each for each in op["dtypes"] if each not in wide + narrow], "exact"),
                  ([each for each in op["dtypes"] if each in wide], cells[0]),
                  ([each for each in op["dtypes"] if each in narrow], cells[1])]
        if letter == "E":
            return [(op["dtypes"], "", cells[0])]
        if op["name"] == "cast":  # one bound for all T, because T is the input's dtype and the bound concerns the output
            return [(op["dtypes"], "", cells[0])]
        if cells[1] in (cells[0], "as f32"):
            groups[1:] = [([each for each in op["dtypes"] if each in wide + narrow], cells[0])]
        return [(dtypes, "", bound) for dtypes, bound in groups if dtypes]

    def faults(self, operators):
        names = {op["name"]: op for op in operators}
        faults = [f"docs/spec/accuracy.md: {name} is no operator" for name in [*self.own, *self.ulps, *self.composites] if name not in names]
        faults += [f"docs/spec/accuracy.md: {name} has {ulps} ulp, ops.def has {names[name]['accuracy']}"
                   for name, ulps in self.ulps.items() if name in names and names[name]["accuracy"] != f"U({ulps})"]
        return faults + [f"docs/spec/accuracy.md: no bound for {op['name']}" for op in operators if not self.rows(op)]


class Rules:
    """The meanings of dtype and shape rules in ops.h, and of patterns in signatures.hpp."""

    def __init__(self, root):
        text = read(root, "abi/include/backplane/ops.h")
        self.meanings = {name.lower(): " ".join(meaning.split())
                         for name, meaning in re.findall(r"BP_((?:RULE|SHAPE)_\w+) = \d+,?\s*/\* (.*?) \*/", text, flags=re.S)}
        comment = re.search(r"// An operand: (.*?)struct Pattern", read(root, "abi/include/backplane/rules/signatures.hpp"), flags=re.S)[1]
        self.patterns = re.sub(r"^// ?", "", "// " + comment, flags=re.M).rstrip()


def counted(least, most, noun):
    if most == 0:
        return ""
    return f"{least} {noun}" + ("s" if least != 1 else "") if least == most else f"{least} to {most} {noun}s"


def pattern_text(patterns, least):
    return ", ".join(f"`{text}`" if index < least else f"[`{text}`]" for index, text in enumerate(patterns))


def row_of(*cells):
    return "| " + " | ".join(cells) + " |\n"


def number(value):
    if abs(value) == 2**63 or value == 2**63 - 1:
        return "-2^63" if value < 0 else "2^63 - 1"
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def block_of(op, rules, accuracy):
    """Returns an operator's block, generated from the tables."""
    out = row_of("", "") + row_of("---", "---").replace(" ", "")
    out += row_of("meaning", op["meaning"].replace("|", "\\|"))
    out += row_of("row", f"{op['id']}, {op['kind']}, profile {op['profile']}, since ABI {op['since']}")
    scalars = counted(*op["scalars"], "scalar")
    if scalars:
        scalars += " of the output's dtype" if op["scalar_dtype"] == "out" else f" of {op['scalar_dtype']}"
    operands = [counted(*op["inputs"], "input"), counted(*op["outputs"], "output"), scalars]
    out += row_of("operands", ", ".join(each for each in operands if each))
    i64 = f"; i64 mandatory from {op['i64_from']} on" if op["i64_from"] else ""
    out += row_of("T", ", ".join(op["dtypes"]) + i64)
    if "signature" in op:
        patterns = op["signature"]
        out += row_of("patterns", f"{pattern_text(patterns['inputs'], op['inputs'][0])} → {pattern_text(patterns['outputs'], op['outputs'][0])}")
    else:
        out += row_of("dtypes", rules.meanings["rule_" + op["dtype_rule"]]) + row_of("shapes", rules.meanings["shape_" + op["shape_rule"]])
    for field in op["attributes"]["fields"]:
        array = f"[{field['count']}]" if field["count"] > 1 else ""
        out += row_of(f"`{field['name']}{array}`", f"{field['type']}, {number(field['least'])} to {number(field['greatest'])}: {field['meaning']}")
    out += row_of("accuracy", f"[{op['accuracy']}](accuracy.md#{'composites' if op['kind'] == 'composite' else 'classes'})")
    for dtypes, part, bound in accuracy.rows(op):
        out += row_of("bound of " + ", ".join(dtypes) + (f": {part}" if part else ""), bound)
    return out


class Page:
    """The expected content of the page."""

    def __init__(self, root, operators):
        self.operators, self.rules, self.accuracy = operators, Rules(root), Accuracy(read(root, "docs/spec/accuracy.md"))
        self.blocks = {op["name"]: block_of(op, self.rules, self.accuracy) for op in operators}
        self.blocks["patterns"] = f"```\n{self.rules.patterns}\n```\n"

    def written(self, text):
        return any_block.sub(lambda match: begin.format(match[1]) + "\n" + self.blocks.get(match[1], "") + end, text)

    def faults(self, text):
        faults = []
        names = [op["name"] for op in self.operators]
        sections = section.findall(text)
        found = [name for name, _ in sections]
        faults += [f"{page_name}: no section '### {name}'" for name in names if name not in found]
        faults += [f"{page_name}: section '{name}' is of no operator" for name in found if name not in names]
        if not faults and found != names:
            faults.append(f"{page_name}: sections are not in the order of ops.def: {found}")
        composites = {op["name"] for op in self.operators if op["kind"] == "composite"}
        for name, body in sections:
            if name not in [block for block, _ in any_block.findall(body)]:
                faults.append(f"{page_name}: section '{name}' has no block {begin.format(name)}")
            wanted = ["*Formula.*", "*Corners.*"] + (["*Decomposition.*"] if name in composites else [])
            faults += [f"{page_name}: section '{name}' says nothing after {word}" for word in wanted
                       if not re.search(re.escape(word) + r"\s+\S", body)]
        for name, block in any_block.findall(text):
            if block != self.blocks.get(name):
                faults.append(f"{page_name}: the block of '{name}' is not what the tables say; run operators.py COMMAND ROOT --write")
        return faults


def main(command, root, *options):
    listing = subprocess.run([command, "info", "--operators", "--json"], capture_output=True, text=True, check=True)
    operators = json.loads(listing.stdout)["operators"]
    page, text = Page(root, operators), read(root, page_name)
    if options:
        with open(os.path.join(root, page_name), "w", encoding="utf-8") as file:
            file.write(page.written(text))
        return
    faults, bounds = page.faults(text), page.accuracy.faults(operators)
    tap.check("every operator has its section, and its block is what the tables say", not faults, "\n".join(faults))
    tap.check("every operator has a bound, and classes agree with ops.def", not bounds, "\n".join(bounds))

    first, last = operators[0]["name"], operators[-1]["name"]
    planted = {
        "an operator without a section": text.replace(f"### {last}\n", "### planted\n"),
        "an operator that the page does not know": text.replace(f"### {first}\n", "### Planted\n"),
        "a block that says something else": text.replace("U(8)", "U(9)"),
        "a section without its block": text.replace(begin.format(last) + "\n", ""),
        "a section without corners": re.sub(r"(### gelu\n.*?)\*Corners\.\*", r"\1", text, flags=re.S, count=1),
        "a composite without a decomposition": re.sub(r"(### gelu\n.*?)\*Decomposition\.\*", r"\1", text, flags=re.S, count=1),
        "sections out of order": text.replace(f"### {first}\n", "### .\n").replace("### copy\n", f"### {first}\n").replace("### .\n", "### copy\n"),
    }
    for name, changed in planted.items():
        tap.check(f"caught: {name}", changed != text and page.faults(changed), "unseen")
    for name, before, after in (("ulps that ops.def does not have", "| erf | 8 |", "| erf | 9 |"), ("a composite without a bound", "| rope |", "| planted |")):
        changed = Accuracy(read(root, "docs/spec/accuracy.md").replace(before, after))
        tap.check(f"caught: {name}", changed.faults(operators), "unseen")
    tap.done()


main(*sys.argv[1:])

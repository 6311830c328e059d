#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of docs/dev/writing.md that a program can check: writing.py ROOT [--all].

Covered files must obey these rules. For other files, the script prints the number of findings. With --all, it also
prints each finding."""
import os
import re
import subprocess
import sys

import tap

# Folders and files that must obey the rules.
covered = ("abi/", "backends/", "conformance/", "core/", "docs/", "samples/", "tools/", "meson.build", "meson_options.txt", "README.md",
           "CONTRIBUTING.md", "GOVERNANCE.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
# Historical records, generated pages, and the page with the rules, which contains examples of bad
# English.
exempt = ("docs/decisions/", "docs/measurements/", "docs/mutants.md", "docs/dev/writing.md", "abi/test/frozen/", "samples/digits/data/digits",
          "abi/layout.txt", "LICENSE")

header_columns, comment_columns, page_columns = 100, 120, 140
headers = ("abi/include/", "core/include/")
braced = (".c", ".h", ".hpp", ".cpp", ".def", ".comp", ".glsl")
hashed = (".py", ".sh", ".build", "meson_options.txt")

# Each entry is a pattern and its replacement. The script searches comments and pages, except code
# in backticks and quotations.
words = [
    (r"\banew\b", "again"),
    (r"\b[Ff]or ever\b", "forever"),
    (r"\btold\b", "receives, is passed, is logged"),
    (r"\b[Bb]ut for\b(?! the (?:first|second) time)", "except"),
    (r"\bheld to\b", "checked against, must keep"),
    (r"\b[Hh]a(?:s|ve|d) not(?=[,.;:)]|$| (?:a|an|the|any|what|to|it)\b)", "does not have"),
    (r"\b[Hh]a(?:s|ve) (?:it|them|this|that|none) not\b", "does not have"),
    (r"\b(?:knows|needs|wants|makes|gives|takes|counts) not\b(?! (?:only|just))", "does not ..."),
    (r"(?:^|(?<=[.:;] ))Who (?![^.]*\?)", "a noun as subject"),
    (r"(?<=[;:,] )(?:and )?who (?!(?:is|are|has|have|may|can|need|use|want|cannot|must|might|would|did|does)\b)", "a noun as subject"),
    (r"\b(?:from|for|to|of|by|with|than|at) who\b", "a noun"),
    (r"\b[Ll]ies? side by side\b", "is contiguous, is coalesced"),
    (r"\bbehind (?:each other|one another|it|them|those|that|which|the (?:last|first|next|latest|copy|work))\b", "after"),
    (r"\b(?:to|can|could|cannot|may) be had\b", "is available, obtain"),
    (r"\b(?:therein|thereof|whereof|whereto|whither|thence|hither|thereby|whereupon)\b", "plain words"),
    (r"\bthe least (?:of|that)\b(?= [a-z]+ (?:a|an|it)\b)", "the minimum"),
    (r"\bfor want of\b", "without, because there is no"),
    (r"\bno (?:other|more) (?:is|are|was|were) (?:asked|needed|there)\b", "nothing else"),
    (r"\bnot (?:there|here) (?:yet|any more)\b(?= is)", "is not available yet"),
    (r"\b(?:is|are|was|were) asked (?:for|after)\b", "is requested"),
    (r"\bthat it has(?= not\b)", "without"),
    (r"\bturned round\b", "transposed"),
]
# A comment after code must not begin with one of these words, which continue a sentence that begins with an identifier
# of the code.
fragment = re.compile(r"//+ (?:of|that|which|whose|with|its|it|they|their|who|and|but|so|than|by) ")
patterns = [(re.compile(pattern, flags=re.M), remedy) for pattern, remedy in words]


def files_of(root):
    run = subprocess.run(["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    return sorted(set(name for name in run.stdout.splitlines() if os.path.isfile(os.path.join(root, name))))


def is_hashed(name, text):
    return name.endswith(hashed) or text.startswith("#!") and not name.endswith(".md")


def blanked(match):
    """Replaces the matched text by underscores, so that columns and lines do not change."""
    return re.sub(r"[^\n]", "_", match[0])


def comments_of(name, text):
    """Yields the line number, text and width of each comment line, and whether code precedes the comment."""
    if name.endswith(braced):
        without_strings = re.sub(r'"(?:\\.|[^"\\\n])*"', blanked, text)
        for match in re.finditer(r"//[^\n]*|/\*.*?\*/", without_strings, flags=re.S):
            first = text.count("\n", 0, match.start()) + 1
            column = match.start() - text.rfind("\n", 0, match.start()) - 1
            after_code = bool(without_strings[match.start() - column:match.start()].strip())
            for offset, line in enumerate(match[0].split("\n")):
                yield first + offset, line, len(line) + (column if offset == 0 else 0), after_code
    elif is_hashed(name, text):
        pattern = r'^\s*"""(?:[^"\\]|\\.)*?"""|^\s*#(?!define|include|undef)[^\n]*' if name.endswith(".py") else r"^\s*#[^\n]*"
        for match in re.finditer(pattern, text, flags=re.S | re.M):
            first = text.count("\n", 0, match.start()) + 1
            for offset, line in enumerate(match[0].split("\n")):
                yield first + offset, line.replace('"""', ""), len(line), False


def page_lines(text):
    """Yields (number, text, counts) for each line outside fences and HTML comments. `counts` is
    true if the rule for line lengths applies."""
    text = re.sub(r"<!--.*?-->", blanked, text, flags=re.S)
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line, not line.startswith("|") and "](" not in line


def prose(line):
    """Returns the line without code, quotations and link targets."""
    line = re.sub(r"`[^`]*`|\S+/\S+\.\w+", "`code`", line)
    line = re.sub(r'"[^"]*"|“[^”]*”', "_", line)
    return re.sub(r"\]\([^)]*\)", "]", line).strip().lstrip("#*/- ").strip()


def word_faults(number, line):
    text = prose(line)
    return [f"{number}: '{found[0]}': write {remedy}" for pattern, remedy in patterns for found in [pattern.search(text)] if found]


def faults_of(name, text):
    faults = []
    if name.endswith(".md"):
        for number, line, counts in page_lines(text):
            faults += word_faults(number, line)
            if counts and len(line) > page_columns:
                faults.append(f"{number}: {len(line)} columns; a page has {page_columns}")
        return [f"{name}:{fault}" for fault in faults]
    limit = header_columns if name.startswith(headers) else comment_columns
    for number, line, width, after_code in comments_of(name, text):
        faults += word_faults(number, line)
        if after_code and fragment.match(line):
            faults.append(f"{number}: '{line[:20]}': begin with a noun or a verb")
        if width > limit and "http" not in line:
            faults.append(f"{number}: a comment of {width} columns; here it has {limit}")
    return [f"{name}:{fault}" for fault in faults]


def is_covered(name):
    return name.startswith(covered) and not name.startswith(exempt)


def main(root, *options):
    texts = {}
    for name in files_of(root):
        if not name.startswith(exempt) and (name.endswith(braced + hashed + (".md",)) or "." not in os.path.basename(name)):
            with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
                texts[name] = file.read()
    faults = [fault for name, text in texts.items() if is_covered(name) for fault in faults_of(name, text)]
    tap.check("covered pages and comments keep to the rules of writing", not faults, "\n".join(faults))
    tap.check("files are covered", sum(is_covered(name) for name in texts) > 40, "few")
    rest = [fault for name, text in texts.items() if not is_covered(name) for fault in faults_of(name, text)]
    if options:
        print("\n".join(f"# {fault}" for fault in rest))
    pending = {}
    for fault in rest:
        folder = "/".join(fault.split(":")[0].split("/")[:2])
        pending[folder] = pending.get(folder, 0) + 1
    for folder, count in sorted(pending.items(), key=lambda item: -item[1]):
        print(f"# not covered yet: {folder}: {count}")

    for name, where, planted in (
            ("a word", "docs/planted.md", "It is made anew.\n"),
            ("a subject", "docs/planted.md", "Ends. Who fails is out.\n"),
            ("a negation", "abi/include/backplane/planted.h", "/* A plugin that has not the slot. */\n"),
            ("a word in a script", "tools/checks/planted.py", '"' * 3 + "What a caller is told." + '"' * 3 + "\n"),
            ("a long line of a page", "docs/planted.md", "word " * 30 + "\n"),
            ("a long comment of a header", "abi/include/backplane/planted.h", "  int a; // " + "word " * 20 + "\n"),
            ("a fragment", "core/src/planted.cpp", "int a;  // of the output\n"),
            ("a long comment", "core/src/planted.cpp", "// " + "word " * 25 + "\n")):
        tap.check(f"caught: {name}", faults_of(where, planted), "unseen")
    for name, where, honest in (
            ("code in backticks", "docs/planted.md", "Call `told()`.\n"),
            ("a fence", "docs/planted.md", "```\nit is told anew\n```\n"),
            ("a table", "docs/planted.md", "| " + "word " * 40 + "|\n"),
            ("a string", "core/src/planted.cpp", 'f("it is told anew");\n'),
            ("the perfect tense", "docs/planted.md", "A stream that has not ended. Who may decide? It has not been set.\n")):
        tap.check(f"passed: {name}", not faults_of(where, honest), "\n".join(faults_of(where, honest)))
    tap.done()


main(*sys.argv[1:])

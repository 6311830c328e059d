#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the sample end to end with a plugin that the command line names by path: test.py DIGITS PLUGIN DATA."""
import gzip
import html.parser
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/checks"))
import tap

digits, plugin, data = sys.argv[1:]
folder = tempfile.TemporaryDirectory()
page = os.path.join(folder.name, "digits.html")


def run(*arguments, **environment):
    return subprocess.run([digits, *arguments, "--html", page], capture_output=True, text=True, check=False, timeout=280,
                          env={**os.environ, **environment})


def weights(result):
    found = re.search(r"^weights ([0-9a-f]{16})$", result.stdout, re.M)
    return found and found[1]


class Page(html.parser.HTMLParser):
    """Collects the open tags and the errors of a page. A link is an error, because the page must be
    self-contained."""
    void = ("meta", "line", "polyline", "circle", "rect")

    def __init__(self, text):
        super().__init__()
        self.open, self.faults, self.images = [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.images += tag == "li"
        self.faults += [f"{tag} {name}={value}" for name, value in attrs if name in ("src", "href", "srcset")]
        if tag not in self.void and tag not in ("dt", "dd", "html"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.void and tag not in ("dt", "dd", "html") and (not self.open or self.open.pop() != tag):
            self.faults.append(f"</{tag}> closes nothing")


full = run(plugin, "--seed", "1", "--epochs", "40")
tap.check("it trains", full.returncode == 0, full.stdout + full.stderr)
accuracy = re.search(r"^([0-9.]+) % of 359 held-out digits", full.stdout, re.M)
tap.check("97 % of the digits that it has not seen", accuracy and float(accuracy[1]) >= 97, full.stdout)
tap.check("a line an epoch", len(re.findall(r"^epoch +\d+/", full.stdout, re.M)) == 40, full.stdout)
tap.check("no terminal, no escapes", "\x1b" not in full.stdout and "\r" not in full.stdout, repr(full.stdout[:300]))
with open(page, encoding="utf-8") as file:
    text = file.read()
parsed = Page(text)
tap.check("the page is well formed and needs nothing else", not parsed.faults and not parsed.open and "url(" not in text,
          f"{parsed.faults} open: {parsed.open}")
misread = round((1 - float(accuracy[1]) / 100) * 359) if accuracy else -1
tap.check("the page draws each misread digit", parsed.images == misread, f"{parsed.images} drawn, {misread} misread")
tap.check("the page names the weights", weights(full) and weights(full) in text, weights(full))

quick = [run(plugin, "--quick", "--seed", seed) for seed in ("7", "7", "8")]
tap.check("--quick takes two epochs", len(re.findall(r"^epoch", quick[0].stdout, re.M)) == 2, quick[0].stdout + quick[0].stderr)
tap.check("the same seed gives the same bits", weights(quick[0]) and weights(quick[0]) == weights(quick[1]), quick[1].stdout)
tap.check("another seed gives others", weights(quick[0]) != weights(quick[2]), quick[2].stdout)


def refuses(name, code, words, *arguments):
    result = run(*arguments)
    lines = result.stderr.strip().splitlines()
    tap.check(name, result.returncode == code and words in result.stderr and 1 <= len(lines) <= 12 and "epoch" not in result.stdout,
              f"exit {result.returncode}\n{result.stdout[:500]}{result.stderr}")


def write(name, content):
    path = os.path.join(folder.name, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


with open(data, "rb") as file:
    packed = file.read()
rows = gzip.decompress(packed).decode().splitlines()
refuses("no plugin named", 2, "PLUGIN is required")
refuses("no such plugin", 1, "nonesuch", "nonesuch")
refuses("no such library", 1, "no such library", "/nowhere/plugin.so")
refuses("no such device", 1, "7", plugin + ":7")
refuses("no epochs", 2, "--epochs", plugin, "--epochs", "0")
refuses("epochs that are no number", 2, "--epochs", plugin, "--epochs", "many")
refuses("a negative seed", 2, "--seed", plugin, "--seed", "-1")
refuses("an unknown option", 2, "--fast", plugin, "--fast")
refuses("no data file", 1, "no file", plugin, "--data", "/nowhere/digits.csv")
refuses("data cut short", 1, "damaged or cut short", plugin, "--data", write("short.gz", packed[:20000]))
refuses("data damaged", 1, "damaged or cut short", plugin, "--data", write("bad.gz", packed[:9000] + b"?" * 200 + packed[9200:]))
refuses("data empty", 1, "0 digits", plugin, "--data", write("empty", b""))
refuses("data that is something else", 1, "line 1", plugin, "--data", digits)
refuses("a pixel out of range", 1, "line 3", plugin, "--data", write("pixel", "\n".join(rows[:2] + ["17" + rows[2][1:]]).encode()))
refuses("a row too long", 1, "line 2", plugin, "--data", write("long", "\n".join([rows[0], rows[1] + ",1"]).encode()))
refuses("a row too short", 1, "line 2", plugin, "--data", write("cut", "\n".join([rows[0], rows[1][:-2], rows[2]]).encode()))
page = os.path.join(folder.name, "nowhere", "digits.html")
refuses("a report that cannot be written", 1, "cannot write", plugin)
tap.done()

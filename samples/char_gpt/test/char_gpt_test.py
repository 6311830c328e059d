#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the sample end to end with plugins that the command line names by path: char_gpt_test.py CHAR_GPT
PLUGIN [OTHER_PLUGIN]."""
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import tap

char_gpt, *plugins = sys.argv[1:]
plugin = plugins[0]
folder = tempfile.TemporaryDirectory()
MODEL = ["--context", "16", "--width", "16", "--heads", "2", "--blocks", "1", "--batch", "4"]
# The model trains on this text instead of the documents, so that changes to documents do not change the
# results.
LINE = "the quick brown fox jumps over the lazy dog, and then it does so again.\n"


def path(name):
    return os.path.join(folder.name, name)


def write_file(name, content):
    with open(path(name), "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return path(name)


def read_file(name):
    with open(path(name), "rb") as file:
        return file.read()


text = write_file("fox.txt", LINE * 60)


def run(*arguments):
    return subprocess.run([char_gpt, *arguments], capture_output=True, text=True, check=False, timeout=280)


def train(*arguments):
    return run("train", "--plugin", plugin, "--text", text, *MODEL, "--evaluations", "2", "--write", "0", *arguments)


def weights(result):
    found = re.search(r"^weights ([0-9a-f]{16})$", result.stdout, re.M)
    return found and found[1]


class Page(html.parser.HTMLParser):
    """Collects the open tags and the errors of a page. A link is an error, because the page must be
    self-contained."""
    void = ("meta", "line", "polyline", "circle", "rect", "dt", "dd", "html")

    def __init__(self, name):
        super().__init__()
        self.open, self.faults, self.polylines = [], [], 0
        self.feed(read_file(name).decode())

    def handle_starttag(self, tag, attrs):
        self.polylines += tag == "polyline"
        self.faults += [f"{tag} {name}={value}" for name, value in attrs if name in ("src", "href", "srcset")]
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.void and (not self.open or self.open.pop() != tag):
            self.faults.append(f"</{tag}> closes nothing")


whole = train("--steps", "200", "--rate", "1e-2", "--html", path("t.html"), "--json", path("t.json"), "--save", path("whole"))
tap.check("it trains", whole.returncode == 0, whole.stdout + whole.stderr)
tap.check("no terminal, no escapes", "\x1b" not in whole.stdout and "\r" not in whole.stdout, repr(whole.stdout[:300]))
report = json.loads(read_file("t.json"))
curve, known = report["training"]["bits_per_character"], report["held_out"]
tap.check("the loss begins near that of a guess, and falls", len(curve) == 200 and 7.5 < curve[0] < 8.5 and curve[-1] < 3.5, curve)
tap.check("so does the held-out text's", len(known) == 2 and known[1]["bits_per_character"] < known[0]["bits_per_character"] < 7, known)
page = Page("t.html")
tap.check("the page is well formed and needs nothing else", not page.faults and not page.open and page.polylines == 2,
          f"{page.faults} open: {page.open}")
again = train("--steps", "200", "--rate", "1e-2")
tap.check("the same seed gives the same bits", weights(whole) and weights(whole) == weights(again), again.stdout)
other = train("--steps", "200", "--rate", "1e-2", "--seed", "2")
tap.check("another seed gives others", weights(other) and weights(whole) != weights(other), other.stdout)

# With -n, gzip stores no file name in the header, so its output has the size that gzip_bytes() returns.
held_out = LINE * 6
packed = subprocess.run(["gzip", "-9n"], input=held_out.encode(), capture_output=True, check=True).stdout
tap.check("gzip's figure is that of gzip -9", abs(report["gzip_bits_per_character"] - 8 * len(packed) / len(held_out)) < 1e-9,
          f"{report['gzip_bits_per_character']} {8 * len(packed) / len(held_out)}")

half = train("--steps", "200", "--rate", "1e-2", "--stop", "90", "--save", path("half"))
resumed = run("train", "--plugin", plugin, "--text", text, "--write", "0", "--load", path("half"), "--save", path("rest"))
tap.check("training goes on from a checkpoint, to the same bits", weights(resumed) == weights(whole) and weights(half) != weights(whole),
          half.stdout + resumed.stdout + resumed.stderr)
tap.check("the same training leaves the same checkpoint", read_file("rest") == read_file("whole"))
tap.check("no other file remains", not [name for name in os.listdir(folder.name) if name.endswith(".tmp")], os.listdir(folder.name))

wrote = [run("write", "--plugin", plugin, "--load", path("whole"), "--write", "40", "--prompt", "the ", "--write-seed", seed)
         for seed in ("1", "1", "2")]
tap.check("it writes the requested number of characters after the prompt", wrote[0].returncode == 0 and len(wrote[0].stdout) == 4 + 40 + 1
          and wrote[0].stdout.startswith("the "), wrote[0].stdout + wrote[0].stderr)
tap.check("the same seed writes the same", wrote[0].stdout == wrote[1].stdout, wrote[1].stdout)
tap.check("another seed something else", wrote[0].stdout != wrote[2].stdout, wrote[2].stdout)
likely = run("write", "--plugin", plugin, "--load", path("whole"), "--write", "20", "--temperature", "0")
tap.check("without a prompt it begins a line", likely.returncode == 0 and len(likely.stdout) == 21, likely.stdout + likely.stderr)

# The curves of all plugins, native and decomposed, must agree within loss_bound().
variants = [variant for name in plugins for variant in (name, name + ":decomposed")]
compared = run("compare", "--plugins", ",".join(variants), "--text", text, *MODEL, "--steps", "25", "--html", path("c.html"), "--json",
               path("c.json"))
tap.check("native, decomposed and every plugin: one curve", compared.returncode == 0, compared.stdout + compared.stderr)
report = json.loads(read_file("c.json"))
tap.check("the report says so", report["agrees"] and len(report["differences"]) == len(variants) - 1 == len(report["curves"]) - 1, report)
page = Page("c.html")
tap.check("its page draws each", not page.faults and not page.open and page.polylines == len(variants), f"{page.faults} {page.open}")
if len(plugins) > 1:
    off = run("train", "--plugin", plugins[1], "--native", "off", "--text", text, *MODEL, "--steps", "2", "--write", "0", "--json",
              path("off.json"))
    calls = json.loads(read_file("off.json"))["facts"]["Operator calls"]
    on = run("train", "--plugin", plugins[1], "--text", text, *MODEL, "--steps", "2", "--write", "0", "--json", path("on.json"))
    fewer = json.loads(read_file("on.json"))["facts"]["Operator calls"]
    count = [int(re.search(r", (\d+) of them", facts)[1]) for facts in (calls, fewer)]
    tap.check("--native off takes the decompositions", off.returncode == 0 and on.returncode == 0 and count[0] > count[1], count)


def refuses(name, code, words, *arguments):
    result = run(*arguments)
    lines = result.stderr.strip().splitlines()
    tap.check(name, result.returncode == code and words in result.stderr and 1 <= len(lines) <= 12, f"exit {result.returncode}\n"
              f"{result.stdout[:500]}{result.stderr}")


def refuses_training(name, words, *arguments):
    refuses(name, 1, words, "train", "--plugin", plugin, "--steps", "1", "--write", "0", *arguments)


def refuses_checkpoint(name, words, content):
    refuses(name, 1, words, "write", "--plugin", plugin, "--load", write_file("bad", content))


good = read_file("whole")
refuses("no subcommand", 2, "subcommand", "--plugin", plugin)
refuses("no such plugin", 1, "no such library", "train", "--plugin", "/nowhere/plugin.so", "--text", text)
refuses("no steps", 2, "--steps", "train", "--steps", "0")
refuses("neither on nor off", 2, "--native", "train", "--native", "maybe")
refuses("one variant to compare", 1, "at least two", "compare", "--plugins", plugin, "--text", text, *MODEL)
refuses_training("no such text", "no file or directory", "--text", "/nowhere/text")
refuses_training("a directory without documents", "no *.md", "--text", os.path.dirname(char_gpt))
refuses_training("an empty text", "is empty", "--text", write_file("empty.txt", ""))
refuses_training("a text cut too short", "a context of 128 needs", "--text", write_file("short.txt", LINE * 2))
refuses_training("a text that is none", "is no text", "--text", plugin)
refuses_training("heads that do not divide", "do not divide", "--text", text, "--heads", "3")
refuses_training("a model of no width", "width is 0", "--text", text, "--width", "0")
refuses_training("streams that do not share a batch", "do not share", "--text", text, "--streams", "3")
refuses_training("a report that cannot be written", "cannot write", "--text", text, "--html", path("nowhere/page.html"))
refuses_training("a checkpoint that cannot be written", "cannot write", "--text", text, "--save", path("nowhere/checkpoint"))
refuses_training("a checkpoint of another text", "another text", "--text", write_file("dog.txt", LINE[::-1] * 60), "--load", path("half"))
refuses_training("a training that is over", "already", "--text", text, "--load", path("whole"))
refuses("no checkpoint", 1, "no file", "write", "--plugin", plugin, "--load", "/nowhere/checkpoint")
refuses_checkpoint("another kind of file", "no checkpoint of char_gpt", read_file("t.html"))
refuses_checkpoint("an empty checkpoint", "no checkpoint of char_gpt", b"")
refuses_checkpoint("a checkpoint cut short in its header", "cut short", good[:50])
refuses_checkpoint("a checkpoint cut short", "cut short", good[:-1])
refuses_checkpoint("a checkpoint with bytes after its end", "after its end", good + b"?")
refuses_checkpoint("a checkpoint of a later version", "version 2", good[:8] + b"\2" + good[9:])
refuses_checkpoint("a damaged header", "damaged", good[:20] + b"?" + good[21:])
refuses_checkpoint("damaged numbers", "damaged", good[:-100] + bytes([good[-100] ^ 1]) + good[-99:])
tap.done()

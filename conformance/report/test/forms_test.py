#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the JSON, JUnit XML and HTML of certificates as other programs would. Usage: forms_test.py FORMS SCHEMA

FORMS is a program that writes the certificates of a passing plugin, a failing plugin, a broken plugin (20 000 failures)
and a silent plugin (it does not load). The failing plugin's name, device and messages contain hostile markup."""
import base64
import hashlib
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

try:
    import jsonschema
except ImportError:
    sys.exit("forms_test.py: this Python has no jsonschema; install python3-jsonschema")

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "checks"))
import tap

forms, schema_path = sys.argv[1:]
kinds = ("passing", "failing", "broken", "silent")
empty = {"meta", "br", "rect", "path"}  # void and self-closing elements


class Page(html.parser.HTMLParser):
    """Collects the elements, texts and nesting errors of a page."""

    def __init__(self, text):
        super().__init__()
        self.open, self.faults, self.elements, self.scripts, self.texts = [], [], [], [], []
        self.feed(text)
        self.close()
        self.faults += [f"{name} is never closed" for name in self.open]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in empty:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()} closes something else")

    def handle_data(self, data):
        (self.scripts if self.open and self.open[-1] == "script" else self.texts).append(data)


def strict(schema):
    """Returns a copy of the schema that forbids additional properties."""
    if isinstance(schema, dict):
        schema = {key: strict(value) for key, value in schema.items()}
        if "properties" in schema:
            schema["additionalProperties"] = False
    elif isinstance(schema, list):
        schema = [strict(item) for item in schema]
    return schema


def check_json(kind, certificate, validator):
    fault = jsonschema.exceptions.best_match(validator.iter_errors(certificate))
    tap.check(f"{kind}: the JSON keeps to its schema", not fault, fault and f"{list(fault.absolute_path)}: {fault.message}")
    failed = [case for case in certificate["non_passes"] if case["outcome"] != "not_claimed"]
    causes = certificate["causes"]
    tap.check(f"{kind}: every failure has one cause", sum(cause["count"] for cause in causes) == len(failed) and
              all(cause["count"] == sum(cause["outcomes"].values()) == sum(cause["groups"].values()) for cause in causes), causes[:3])
    tap.check(f"{kind}: causes come by their count, each with a case of its own",
              [cause["count"] for cause in causes] == sorted((cause["count"] for cause in causes), reverse=True) and
              {cause["first"] for cause in causes} <= {case["id"] for case in failed}, causes[:3])
    missing = sum("mandatory" in case for case in certificate["non_passes"])
    tap.check(f"{kind}: the JSON marks every mandatory case that is not claimed",
              missing == certificate["verdict"]["profiles"]["train"]["mandatory_not_claimed"], missing)
    bad = {**certificate, "verdict": {**certificate["verdict"], "level": "best"}}
    tap.check(f"{kind}: the schema refuses a level that is none", list(validator.iter_errors(bad)))
    undigested = {key: value for key, value in certificate.items() if key != "digest"}
    text = json.dumps(undigested, sort_keys=True, separators=(",", ":"))
    tap.check(f"{kind}: another program computes the same digest", hashlib.sha256(text.encode()).hexdigest() == certificate["digest"])


def check_junit(kind, text, certificate):
    try:
        root = xml.etree.ElementTree.fromstring(text.encode())
    except xml.etree.ElementTree.ParseError as failure:
        return tap.check(f"{kind}: the JUnit XML is well-formed", False, str(failure))
    counts = certificate["verdict"]["counts"]
    failed = sum(counts.values()) - counts["pass"] - counts["not_claimed"]
    sums = {key: sum(int(suite.get(key)) for suite in root) for key in ("tests", "failures", "skipped")}
    tap.check(f"{kind}: JUnit counts every case", sums == {"tests": sum(counts.values()), "failures": failed, "skipped": counts["not_claimed"]}, sums)
    passed = sum(int(case.get("name").split()[0]) for case in root.iter("testcase") if case.get("name").endswith(" cases passed"))
    tap.check(f"{kind}: JUnit says how many passed", passed == counts["pass"], passed)
    shown = [case for case in root.iter("testcase") if case.find("failure") is not None]
    tap.check(f"{kind}: JUnit has each failure, or says how many more", len(shown) == failed or any("more failures" in case.get("name") for case in shown))
    lines = [case.find("failure").text for case in shown if case.find("failure").get("type") != "cut"]
    tap.check(f"{kind}: each with the line that repeats it", all(line.startswith("backplane certify ") for line in lines), lines[:3])
    rules = {case["repro"] + "\nrequirements: " + ", ".join(case["requirements"]) for case in certificate["non_passes"] if "repro" in case}
    tap.check(f"{kind}: and with its requirements", rules.issuperset(lines), lines[:3])
    return tap.check(f"{kind}: JUnit stays small", len(text) < 6_000_000, len(text))


def check_html(kind, text, certificate):
    page = Page(text)
    tap.check(f"{kind}: the page's elements nest", not page.faults, page.faults[:5])
    names = {tag for tag, _ in page.elements}
    known = set("html head meta title style body main header footer section h1 h2 h3 h4 p b i span strong code div ul li dl dt dd table "
                "thead tbody tr th td details summary article figure figcaption svg rect path text script".split())
    tap.check(f"{kind}: the page has no element that it did not mean", names <= known, names - known)
    attributes = {key for _, attrs in page.elements for key in attrs}
    tap.check(f"{kind}: nothing runs or loads but its own", not any(key.startswith("on") or key in ("src", "href", "action") for key in attributes),
              attributes)
    policy = next(attrs["content"] for tag, attrs in page.elements if attrs.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256("".join(page.scripts).encode()).digest()).decode()
    tap.check(f"{kind}: one script, the one that the policy names", len([1 for tag, _ in page.elements if tag == "script"]) == 1 and
              f"script-src 'sha256-{digest}'" in policy and "default-src 'none'" in policy, policy)
    tap.check(f"{kind}: no address in it", not re.search(r"https?://", text))
    words = " ".join(page.texts)
    for what in (certificate["plugin"]["name"], certificate["device"]["name"], certificate["verdict"]["statement"],
                 certificate["plugin"]["sha256"], certificate["suite"]["digest"], str(certificate["run"]["seed"])):
        tap.check(f"{kind}: the page says {what[:40]!r}", what in words, "it is missing")
    abi = certificate["verdict"]["abi"]
    tap.check(f"{kind}: the page names the ABI version", f"built for {certificate['plugin']['abi']['built_for']}" in words and
              (certificate["verdict"]["level"] == "none" or f"of ABI {abi}" in words), abi)
    tap.check(f"{kind}: the page names cases that were not requested", certificate["run"]["not_asked"] == 1 and "1 case of a later ABI not requested" in words)
    causes = certificate["causes"]
    tap.check(f"{kind}: the page shows each cause, or the number of others", all(cause["repro"] in words and cause["remedy"] in words for cause in causes[:50]) and
              (len(causes) <= 50 or f"{len(causes) - 50} more cause" in words or "more causes in the JSON" in words), causes[:2])
    missing = [case["id"] for case in certificate["non_passes"] if "mandatory" in case]
    page_ids = set(words.split())
    tap.check(f"{kind}: the page lists every mandatory case that is not claimed", bool(missing) == (kind == "failing") and page_ids.issuperset(missing),
              [name for name in missing if name not in page_ids][:5])
    cells = [attrs for tag, attrs in page.elements if tag == "td" and "title" in attrs]
    tap.check(f"{kind}: the matrix has every cell, each with its counts", len(cells) == len(certificate["matrix"]) and
              all(re.search(r"\d", cell["title"]) for cell in cells), f"{len(cells)} of {len(certificate['matrix'])}")
    measured = {cell["op"] for cell in certificate["matrix"] if cell.get("error", {}).get("worst_share", 0) > 0}
    tap.check(f"{kind}: each operator with errors has its distribution", len([1 for tag, _ in page.elements if tag == "svg"]) == len(measured), measured)
    failed = [case for case in certificate["non_passes"] if case["outcome"] != "not_claimed"]
    shown = [case for case in failed if case["repro"] in words]
    tap.check(f"{kind}: failures are shown, and how many more", bool(shown) == bool(failed) and
              (len(shown) == len(failed) or f"{len(failed):,}".replace(",", "\u202f") in words), f"{len(shown)} of {len(failed)}")
    rules = {", ".join(case["requirements"]) for case in shown}
    tap.check(f"{kind}: each with its requirements", rules.issubset(page.texts), sorted(rules - set(page.texts))[:5])
    tap.check(f"{kind}: the page stays usable", len(text) < 1_500_000 and len(page.elements) < 20_000, f"{len(text)} bytes, {len(page.elements)} elements")


with open(schema_path, encoding="utf-8") as file:
    certificate_schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(certificate_schema)
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([forms, folder], check=True)

    def read(name):
        with open(os.path.join(folder, name), encoding="utf-8") as opened:
            return opened.read()

    for each in kinds:
        document = json.loads(read(each + ".json"))
        failures = sum(case["outcome"] != "not_claimed" for case in document["non_passes"])
        tap.check(f"{each}: it is what it is called", failures == 0 if each == "passing" else failures >= (20_000 if each == "broken" else 20), failures)
        check_json(each, document, jsonschema.Draft202012Validator(strict(certificate_schema)))
        check_junit(each, read(each + ".xml"), document)
        check_html(each, read(each + ".html"), document)
tap.done()

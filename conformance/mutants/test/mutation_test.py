#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the conformance suite against every mutant. By default it runs the case that catches each mutant
according to docs/mutants.md. --full searches the cases again, measures kill rates and writes that page."""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
import time

killed = ("fail", "crash", "hang", "leak", "not_run")
row_pattern = re.compile(r"^\| \d+ \| `(?P<name>\w+)` \|.*\| `(?P<case>[^`]+)` \| (?P<outcome>\w+) \| "
                         r"(?P<kills>\d+) of (?P<runs>\d+) \| `(?P<unit>[^`]+)` \|$", flags=re.M)
patience = 30  # time limit of a case in seconds; `hurry` replaces it for cases that are known to hang
hurry = 6
least_rate = 0.99
repeats = {"DETERMINISTIC": 4, "PROBABILISTIC": 64}

unmeasured = {"case": None, "outcome": "is not in the page", "kills": 0, "runs": 0, "unit": None}

page_head = """<!-- Written by conformance/mutants/test/mutation_test.py --full; do not edit. -->
# What the suite catches

Each mutant is the reference plugin with one defect ([how mutants are made](../conformance/mutants/README.md)). The suite was designed to
find defects 1 to 60; defects with higher numbers were added later. For each mutant, the suite ran until a case failed. The table names
this case and its outcome. The cases in the last column then ran again with other seeds. The last column names the failed case alone. If
the defect needs other cases in the same process, the last column names the case's group or a filter. A defect *by nature* has an effect
in each run. A defect *by chance* is a race, so its cases ran {repeats} times.

"""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", required=True, help="the backplane command")
    parser.add_argument("--plugin", required=True, help="the mutant plugin")
    parser.add_argument("--list", required=True, help="the program that prints the table of mutants")
    parser.add_argument("--page", required=True, help="docs/mutants.md")
    parser.add_argument("--full", action="store_true", help="search, measure, and write the page")
    parser.add_argument("--missing", action="store_true", help="only what the page does not name as caught")
    parser.add_argument("--mutant", action="append", help="only this one, the page keeps the others; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


class Suite:
    def __init__(self, arguments):
        self.command = arguments.command
        self.plugin = arguments.plugin

    def certify(self, mutant, seed, filters=(), fail_fast=True, timeout=patience):
        """Returns the failures in the order of the report, as (case, outcome), or None if the command failed."""
        with tempfile.TemporaryDirectory() as folder:
            line = [self.command, "certify", self.plugin, "--profile", "train", "--quiet", "--json", "--jobs", "1",
                    "--seed", str(seed), "--timeout", str(timeout), "--output", folder]
            line += ["--fail-fast"] if fail_fast else []
            for each in filters:
                line += ["--filter", each]
            environment = {**os.environ, "BACKPLANE_MUTANT": mutant}
            run = subprocess.run(line, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        try:
            document = json.loads(run.stdout)
            return [(each["id"], each["outcome"]) for each in document["non_passes"]
                    if each["outcome"] in killed]
        except (ValueError, KeyError):
            print(f"# {mutant or 'honest'}: {run.stdout[-500:]}{run.stderr[-500:]}", flush=True)
            return None

    def cases(self):
        run = subprocess.run([self.command, "certify", "--list", "--profile", "train"], capture_output=True, text=True, check=True)
        return run.stdout.split()


def search(suite, mutant, cases):
    """Searches the cases of the mutant's filter, and then each area. Returns the first case whose failure a second run
    confirms, and the units of this case."""
    for family in dict.fromkeys([mutant["filter"], "abi.*", "negative.*", "numeric.*", "runtime.*"]):
        if not fnmatch.filter(cases, family):
            continue
        failures = suite.certify(mutant["name"], 1, [family])
        if failures and any(suite.certify(mutant["name"], 2, [unit]) for unit in units(failures[0][0], family)):
            return failures[0], units(failures[0][0], family)
    return None, None


def units(case, family):
    """Returns the units to run again, the smallest first: the case, its group, and the filter that found it."""
    return [case, ".".join(case.split(".")[:2]), family]


def limit_of(outcome):
    return hurry if outcome == "hang" else patience


def measure(suite, mutant, cases):
    found, candidates = search(suite, mutant, cases)
    if not found:
        return {**mutant, "case": None, "outcome": "survived", "kills": 0, "runs": 1, "unit": None}
    runs = repeats[mutant["kind"]]
    result = {**mutant, "case": found[0], "outcome": found[1], "runs": runs}
    for unit in candidates:
        kills = misses = 0
        while kills + misses < runs and misses <= (1 - least_rate) * runs:
            caught = suite.certify(mutant["name"], 1000 + kills + misses, [unit], timeout=limit_of(found[1]))
            kills, misses = kills + bool(caught), misses + (not caught)
        if misses <= (1 - least_rate) * runs:
            break
    return {**result, "kills": kills, "runs": kills + misses, "unit": unit}


def recheck(suite, mutant, known):
    """Runs the unit that docs/mutants.md names for the mutant."""
    if mutant["name"] not in known:
        return {**mutant, **unmeasured}
    row = known[mutant["name"]]
    # If the machine is busy, one run may miss a defect that needs pending work, and several runs
    # may miss a race.
    most = 8 if mutant["kind"] == "PROBABILISTIC" else 4
    runs = (suite.certify(mutant["name"], seed, [row["unit"]], timeout=limit_of(row["outcome"])) for seed in range(1, 1 + most))
    failures = next(filter(None, runs), None)
    return {**row, **mutant, "outcome": failures[0][1] if failures else "survived", "kills": int(bool(failures)), "runs": 1}


def read_page(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        rows = [match.groupdict() for match in row_pattern.finditer(file.read())]
    return {row["name"]: {**row, "kills": int(row["kills"]), "runs": int(row["runs"])} for row in rows}


def write_page(path, results):
    results = [each for each in results if each["runs"]]
    caught = [each for each in results if each["kills"]]
    lines = [page_head.format(repeats=repeats["PROBABILISTIC"])]
    for kind, title in (("DETERMINISTIC", "By nature"), ("PROBABILISTIC", "By chance")):
        of_kind = [each for each in results if each["kind"] == kind]
        kills, runs = sum(each["kills"] for each in of_kind), sum(each["runs"] for each in of_kind)
        lines.append(f"- {title}: {sum(bool(each['kills']) for each in of_kind)} of {len(of_kind)} mutants caught, "
                     f"in {kills} of {runs} runs ({100 * kills / max(runs, 1):.1f} %).\n")
    lines.append(f"\n{len(caught)} of {len(results)} mutants are caught.\n\n")
    lines.append("| # | mutant | what is wrong | by | first case that caught it | outcome | runs caught | repeated cases |\n|--:|---|---|---|---|---|--:|---|\n")
    for each in results:
        case = f"`{each['case']}`" if each["case"] else "none"
        kind = "nature" if each["kind"] == "DETERMINISTIC" else "chance"
        lines.append(f"| {each['number']} | `{each['name']}` | {each['defect']} | {kind} | {case} | {each['outcome']} | "
                     f"{each['kills']} of {each['runs']} | `{each['unit']}` |\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(lines))


def main():
    arguments = parse_arguments()
    began = time.monotonic()
    suite = Suite(arguments)
    table = json.loads(subprocess.run([arguments.list], capture_output=True, text=True, check=True).stdout)
    mutants = [each for each in table if each["kind"] in repeats and (not arguments.mutant or each["name"] in arguments.mutant)]
    known = read_page(arguments.page)
    cases = suite.cases() if arguments.full else []
    if arguments.missing:
        mutants = [each for each in mutants if known.get(each["name"], unmeasured)["kills"] == 0]

    def run(mutant):
        return measure(suite, mutant, cases) if arguments.full else recheck(suite, mutant, known)

    results = []
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, each) for each in mutants]):
            result = done.result()
            results.append(result)
            good = result["runs"] and result["kills"] >= least_rate * result["runs"]
            failed += not good
            print(f"{'ok' if good else 'not ok'} {len(results)} - {result['name']}: {result['outcome']} in {result['case']}, "
                  f"{result['kills']} of {result['runs']}", flush=True)
            if arguments.full:
                known[result["name"]] = result
                write_page(arguments.page, [{**known[each["name"]], **each} for each in table if each["name"] in known])
    count = len(results)
    if not arguments.mutant and not arguments.missing:
        # The cases that catch mutants must pass for every plugin without a defect.
        caught_by = sorted({each["case"] for each in results if each["case"]})
        for name in ["", *(each["name"] for each in table if each["kind"] == "HONEST")]:
            failures = suite.certify(name, 1, caught_by, fail_fast=False, timeout=60)
            count += 1
            failed += failures is None or bool(failures)
            print(f"{'ok' if failures == [] else 'not ok'} {count} - {name or 'the honest plugin'} passes {failures or ''}", flush=True)
        stale = sorted(set(known) - {each["name"] for each in mutants})
        count += 1
        failed += bool(stale)
        print(f"{'not ok' if stale else 'ok'} {count} - the page names no other mutant {stale or ''}")
    print(f"1..{count}\n# {count - failed} of {count} in {time.monotonic() - began:.0f} s")
    sys.exit(failed != 0)


main()

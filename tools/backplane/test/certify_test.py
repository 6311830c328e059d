#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests backplane certify from outside: certify_test.py COMMAND REFERENCE_FOLDER MUTANT_LIBRARY.

Covers usage errors, files that are not plugins, a plugin that passes, and a run that is killed and resumed.
Also tests that repro lines reproduce failures, and that hostile plugins do not harm the run."""
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "checks"))
import tap

command, reference, mutant = map(os.path.abspath, sys.argv[1:])
library = os.path.join(reference, "libbackplane_reference.so")
work = tempfile.mkdtemp(prefix="backplane-certify-")
environment = {**os.environ, "BACKPLANE_PLUGIN_PATH": reference}


def run(*arguments, **variables):
    return subprocess.run([command, "certify", *arguments], env={**environment, **variables}, cwd=work, text=True,
                          capture_output=True, timeout=300, check=False)


def certificate(*arguments, **variables):
    process = run(*arguments, "--json", "--quiet", **variables)
    return json.loads(process.stdout), process


def failures(document):
    return [each for each in document["non_passes"] if each["outcome"] != "not_claimed"]


def refused(name, words, *arguments):
    process = run(*arguments)
    tap.check(f"refused: {name}", process.returncode == 2 and all(word in process.stderr + process.stdout for word in words),
              f"exit status {process.returncode}: {process.stderr}{process.stdout}")


# A usage error has exit status 2 and a message that names the error.
refused("no plugin named", ["name a plugin"])
refused("a name that no plugin has", ["'acme'", "reference", "doctor"], "acme")
refused("a path that is not there", ["cannot be opened"], "./nothing.so")
refused("a folder", ["no file"], reference + "/")
refused("an unknown profile", ["'gold'", "core, infer or train"], library, "--profile", "gold")
refused("a filter that matches nothing", ["--list"], library, "--filter", "nothing.like.this")
refused("a filter that matches nothing next to one that matches", ["core", "'nothing.like.*'", "--list"], library,
        "--filter", "abi", "--filter", "nothing.like.*")
refused("a list of nothing", ["core", "'nothing.like.this'"], "--list", "--filter", "nothing.like.this")
refused("two forms at once", ["exclude"], library, "--json", "--html")
refused("a seed that is no number", ["seed"], library, "--seed", "x")
refused("only what failed, of nothing", ["no certificate"], library, "--only-failed", "--output", work + "/empty")
with open(work + "/file", "w", encoding="utf-8") as file:
    file.write("not a library")
refused("an output that is a file", ["file"], library, "--output", work + "/file/below")

# A file that is not a plugin is not certified, and the verdict states the reason.
document, process = certificate(work + "/file", "--filter", "abi")
tap.check("a file that is no library: not certified, with the reason",
          process.returncode == 1 and "not certified" in document["verdict"]["statement"] and
          all(each["outcome"] == "not_run" for each in document["non_passes"]), process.stdout[:2000])
document, process = certificate(library, "--device", "9", "--filter", "abi")
tap.check("a device that is not there", "device 9" in document["verdict"]["statement"], document["verdict"]["statement"])

# A plugin that passes leaves three certificate files and no journal.
cases = ["--filter", "abi.library", "--filter", "numeric.add.f32"]
process = run(library, *cases, "--seed", "7", "--output", "good")
tap.check("a part that passes is a success", process.returncode == 0 and " pass" in process.stdout, process.stdout + process.stderr)
tap.check("it leaves three forms", all(os.path.getsize(f"{work}/good/libbackplane_reference.{end}") for end in ("json", "xml", "html")))
tap.check("and no journal", not os.path.exists(work + "/good/libbackplane_reference.journal"))
by_name = run("reference", *cases, "--filter", "host.refusal", "--filter", "negative", "--seed", "7", "--output", "good")
tap.check("by name it is the same plugin", by_name.returncode == 0, by_name.stdout + by_name.stderr)
inside, process = certificate(library, *cases, "--in-process", "--seed", "7")
tap.check("in-process the same cases pass", process.returncode == 0 and not failures(inside), process.stdout[:2000])
tap.check("and certify no profile", inside["run"]["in_process"] and "without limits certifies no profile" in process.stdout and
          inside["verdict"]["profiles"]["core"]["reasons"][-1] == "the run used one process and no limits", process.stdout[:2000])
start = time.monotonic()
listed = run("--list").stdout.split()
tap.check(f"the list is there at once ({time.monotonic() - start:.2f} s)", len(listed) > 1000, f"{len(listed)} cases")
tap.check("a filter by pattern", run("--list", "--filter", "*.add.f32.*").stdout.count(".add.f32.") > 1)

# A killed run leaves no process running, and a resumed run keeps the earlier results.
arguments = [library, "--seed", "7", "--output", "killed", "--quiet", "--jobs", "2", "--filter", "numeric.scatter"]
journal = work + "/killed/libbackplane_reference.journal"
running = subprocess.Popen([command, "certify", *arguments], env=environment, cwd=work, stdout=subprocess.DEVNULL,
                           start_new_session=True)
deadline = time.monotonic() + 60
while time.monotonic() < deadline and (not os.path.exists(journal) or os.path.getsize(journal) < 20000):
    time.sleep(0.01)
running.send_signal(signal.SIGKILL)
running.wait()
with open(journal, encoding="utf-8") as file:
    lines = len(file.readlines())


def alive(session):
    """Returns the processes of the session, except zombies."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stat:
                state, _, _, own = stat.read().rsplit(")", 1)[1].split()[:4]
        except OSError:
            continue
        if int(own) == session and state != "Z":
            found.append(name)
    return found


deadline = time.monotonic() + 10
while alive(running.pid) and time.monotonic() < deadline:
    time.sleep(0.05)
tap.check("a killed run leaves no process", not alive(running.pid), str(alive(running.pid)))
other = run(*arguments[:1], "--seed", "8", *arguments[3:], "--resume")
tap.check("a journal of another seed is refused", other.returncode == 2 and "seed 7" in other.stderr, other.stderr)
resumed, process = certificate(*arguments, "--resume")
tap.check(f"a killed run goes on where it was ({lines} results kept)",
          process.returncode == 0 and resumed["run"]["resumed"] and resumed["verdict"]["counts"]["not_run"] == 0 and lines > 50,
          process.stdout[:2000] + process.stderr)
whole, _ = certificate(library, "--seed", "7", "--output", "whole", "--filter", "numeric.scatter")
tap.check("and comes to the same verdict", resumed["verdict"] == {**whole["verdict"], "extensions": resumed["verdict"]["extensions"]},
          json.dumps([resumed["verdict"], whole["verdict"]])[:3000])

# An interrupted run prints the failures so far, and a resumed run continues.
arguments[arguments.index("killed")] = "interrupted"
journal = work + "/interrupted/libbackplane_reference.journal"
running = subprocess.Popen([command, "certify", *arguments], env=environment, cwd=work, stdout=subprocess.PIPE, text=True, start_new_session=True)
deadline = time.monotonic() + 60
while time.monotonic() < deadline and (not os.path.exists(journal) or os.path.getsize(journal) < 20000):
    time.sleep(0.01)
running.send_signal(signal.SIGINT)
told, _ = running.communicate(timeout=60)
tap.check("an interrupted run tells what it found", running.returncode == 1 and "Interrupted: " in told and "--resume --seed 7" in told
          and not os.path.exists(journal.replace(".journal", ".json")), told)
tap.check("and leaves no process", not alive(running.pid), str(alive(running.pid)))
resumed, process = certificate(*arguments, "--resume")
tap.check("and can be resumed", process.returncode == 0 and resumed["run"]["resumed"] and resumed["verdict"]["counts"]["not_run"] == 0, process.stdout[:2000])


# Runs the suite on a mutant. The repro line of the first failure must reproduce the failure. The calls below cover ten
# defects.
def repro(defect, *filters):
    document, _ = certificate(mutant, "--fail-fast", "--jobs", "1", "--timeout", "5", "--seed", "11", "--output", "mutant",
                              *[word for name in filters for word in ("--filter", name)], BACKPLANE_MUTANT=defect)
    found = failures(document)
    first = next((each for each in found if each["outcome"] != "not_run"), None)
    if first is None:
        return tap.check(f"{defect} fails a case", False, json.dumps(document["verdict"]))
    words = shlex.split(first["repro"])
    start = time.monotonic()
    again = subprocess.run([command, *words[1:], "--timeout", "5", "--json", "--quiet", "--output", "again"], cwd=work, text=True,
                           env={**environment, "BACKPLANE_MUTANT": defect}, capture_output=True, timeout=60, check=False)
    seconds = time.monotonic() - start
    repeated = failures(json.loads(again.stdout))
    return tap.check(f"{defect}: the repro line repeats it ({seconds:.2f} s)",
                     words[0] == "backplane" and again.returncode == 1 and
                     [(each["id"], each["outcome"]) for each in repeated] == [(first["id"], first["outcome"])],
                     f"{first}\n{again.stdout[-2000:]}\n{again.stderr}")


repro("drop_tail", "numeric.add")
repro("strides_ignored", "numeric.add")
repro("offset_ignored", "numeric.add")
repro("negative_stride_unsigned", "numeric.add")
repro("stride_zero_as_one", "numeric.add")
repro("batch_truncated", "numeric.matmul")
repro("silent_tf32", "numeric.matmul")
repro("k_zero_unwritten", "numeric.matmul")
repro("zero_size_stale", "numeric.reduce_max", "numeric.reduce_sum")
repro("transposed_pitch", "numeric.matmul")

# If many failures have one cause, the command prints the cause once, on the first screen. After eight equal failures,
# the suite skips the remaining cases of a group.
process = run(mutant, "--seed", "7", "--jobs", "2", "--output", "one_cause", "--filter", "abi", "--filter", "numeric.add", BACKPLANE_MUTANT="signal_handler_changed")
screen = "\n".join(process.stdout.splitlines()[:24])
with open(work + "/one_cause/libbackplane_mutant.json", encoding="utf-8") as file:
    document = json.load(file)
causes, failed = document["causes"], failures(document)
tap.check("one cause is one cause", len(causes) == 1 and causes[0]["count"] == len(failed) > 500, json.dumps(causes)[:2000])
tap.check("the first screen names cause, slot, requirement, remedy and page",
          all(word in screen for word in (f"One cause explains all {len(failed)} failures", "has another handler now", "plan_create", "BP-THR-008",
                                          "restore them", "docs/writing_a_backend.md#rules-that-bite", causes[0]["repro"])), process.stdout[:3000])
for defect, words in (("locale_changed", ("the locale was", "plan_create", "BP-THR-001", "uselocale")),
                      ("float_traps_enabled", ("floating-point control was", "plan_create", "BP-THR-001", "floating-point environment"))):
    other = run(mutant, "--seed", "7", "--jobs", "2", "--output", "one_other_cause", "--filter", "abi", "--filter", "numeric.add", BACKPLANE_MUTANT=defect)
    first = "\n".join(other.stdout.splitlines()[:24])
    tap.check(f"{defect}: the first screen names cause, slot, requirement, remedy and page",
              "One cause explains all" in first and all(word in first for word in (*words, "docs/writing_a_backend.md#rules-that-bite")), other.stdout[:3000])
tap.check("and the whole of it is one screen", len(process.stdout.splitlines()) <= 24, process.stdout)
tap.check("what was printed once is not printed again while it runs", process.stderr.count("has another handler now") == 1, process.stderr)
stopped = document["run"]["stopped_groups"]
tap.check("the certificate and the terminal say which groups stopped", "numeric.add" in stopped and f"{len(stopped)} groups stopped" in process.stdout and
          document["verdict"]["level"] == "none", f"{stopped} {process.stdout}")
tap.check("a group stops after eight equal failures",
          causes[0]["outcomes"]["fail"] < 150 and "8 cases of numeric.add failed alike before it" in json.dumps(failed), causes)

# --only-failed runs the failed cases again, and does not change the certificate that lists them.
with open(work + "/one_cause/libbackplane_mutant.json", "rb") as file:
    before = file.read()
again = run(mutant, "--only-failed", "--quiet", "--output", "one_cause", "--jobs", "2")
with open(work + "/one_cause/libbackplane_mutant.json", "rb") as file:
    tap.check("--only-failed leaves the whole certificate as it was", file.read() == before, again.stderr)
with open(work + "/one_cause/libbackplane_mutant.only_failed.json", encoding="utf-8") as file:
    document = json.load(file)
tap.check("and writes its own, of those cases alone", again.returncode == 0 and document["run"]["cases"] == len(failed) and not failures(document),
          again.stdout + again.stderr)

tap.check("with the data and the profile of the first", document["run"]["seed"] == 7 and document["run"]["profile"] == "core", document["run"]["seed"])
with open(work + "/one_cause/libbackplane_mutant.only_failed.html", encoding="utf-8") as file:
    page = file.read()
tap.check("its page does not list every case as a filter", page.count(failed[-1]["id"]) == 0 and "more" in page, len(page))

# With --fail-fast, the first failure ends the run, and the certificate does not list cases that did not run.
stopped, process = certificate(mutant, "--fail-fast", "--jobs", "1", "--seed", "7", "--output", "stopped", BACKPLANE_MUTANT="signal_handler_changed")
counts = stopped["verdict"]["counts"]
tap.check("--fail-fast ends with one failure and lists what was run alone",
          process.returncode == 1 and counts["fail"] == 1 and counts["not_run"] == 0 and len(failures(stopped)) == 1 and
          stopped["run"]["cases"] == sum(counts.values()) and stopped["run"]["not_reached"] > 10_000 and not stopped["verdict"]["profiles"]["core"]["complete"],
          json.dumps([stopped["run"], counts]))
process = run(mutant, "--fail-fast", "--jobs", "1", "--seed", "7", "--output", "stopped", BACKPLANE_MUTANT="signal_handler_changed")
tap.check("and says how many cases it left out", f"{stopped['run']['not_reached']} more cases were not reached" in process.stdout, process.stdout)

# A composite that core cannot decompose is missing at the first profile that requires all its primitives.
for mutant_name, operators, profile in (("without_broadcast_select", ["attention"], "infer"), ("without_training", ["uniform", "gelu"], "train")):
    document, process = certificate(mutant, "--profile", "train", *[f"--filter=numeric.{name}.f32.*" for name in operators], "--seed", "7",
                                    "--jobs", "2", "--output", "undecomposed", BACKPLANE_MUTANT=mutant_name)
    missing = [each for each in document["non_passes"] if "mandatory" in each]
    tap.check(f"{mutant_name}: a composite that is neither native nor decomposed is missing at {profile}",
              missing and not failures(document) and
              all(each["mandatory"] == profile and each["id"].startswith(f"numeric.{operators[0]}.") and each["id"].endswith(".decomposed")
                  for each in missing), json.dumps(missing[:3]))

# If a plugin declines mandatory cases of INFER, both the terminal and the JSON list these cases.
process = run(mutant, "--profile", "infer", "--filter", "numeric.sort", "--filter", "numeric.add", "--seed", "7", "--jobs", "2", "--output", "declined",
              BACKPLANE_MUTANT="without_sort")
with open(work + "/declined/libbackplane_mutant.json", encoding="utf-8") as file:
    document = json.load(file)
missing = [each["id"] for each in document["non_passes"] if "mandatory" in each]
tap.check("mandatory cases that are not claimed are listed",
          len(missing) == document["verdict"]["profiles"]["infer"]["mandatory_not_claimed"] > 0 and missing[0] in process.stdout and
          f"Mandatory and not claimed: {len(missing)}" in process.stdout, process.stdout[-2000:])

tap.done()

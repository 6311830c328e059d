#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs cases of the suite in sanitizer builds of a plugin and the command: sanitized.py [--skip-without-device]
COMMAND LIBRARY GROUP...

A sanitizer that finds an error in a worker process terminates the worker, so the case fails. If a worker exits
normally, the sanitizer checks it for leaks. A sanitizer also writes each report to a file. Any such file fails the
test, even if the case passes. Drivers are not sanitizer builds, so LSAN_OPTIONS and TSAN_OPTIONS suppress reports about
drivers."""
import os
import sys
import tempfile

import certified
import tap

may_skip, command, library, groups = certified.given()
with tempfile.TemporaryDirectory() as folder:
    reports = os.path.join(folder, "report")

    def with_reports(name, *more):
        return ":".join(filter(None, [os.environ.get(name), *more, "allocator_may_return_null=1", f"log_path={reports}"]))

    environment = {"ASAN_OPTIONS": with_reports("ASAN_OPTIONS"), "UBSAN_OPTIONS": with_reports("UBSAN_OPTIONS", "halt_on_error=1"),
                   "TSAN_OPTIONS": with_reports("TSAN_OPTIONS"),
                   "LSAN_OPTIONS": ":".join(filter(None, [os.environ.get("LSAN_OPTIONS"), "print_suppressions=0"]))}
    os.environ.update(environment)
    if may_skip:
        certified.skip_without_device(command, library)
    # Sanitizers are slow, and the machine may be busy. The long time limit prevents cases from
    # failing for this reason.
    certificate, said, _ = certified.certify(command, library, "--profile", "train", "--timeout", "300", "--memory-limit", "32768",
                                          "--seed", "1", *certified.filters(groups))
    found = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            found.append(file.read()[:4000])
    tap.check("no sanitizer reports anything", not found, "\n".join(found[:5]))
    if certificate is None:
        sys.exit(said)
    certified.check_failures("no case fails", certified.failures_of(certificate))
    passed = certificate["verdict"]["counts"]["pass"]
    tap.check("cases pass", passed >= 10 * len(groups), f"{passed} passed")
tap.done()

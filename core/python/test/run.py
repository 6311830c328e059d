#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of one file of unittest, and prints one line of TAP per test: run.py FILE"""
import importlib.util
import os
import sys
import unittest

own_folder = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [own_folder, os.path.join(own_folder, "../../../tools/checks")]
import tap


class Result(unittest.TestResult):
    def addSuccess(self, test):
        tap.check(test.id(), True)

    def addSkip(self, test, reason):
        tap.check(f"{test.id()} # SKIP {reason}", True)

    def addFailure(self, test, err):
        tap.check(test.id(), False, self._exc_info_to_string(err, test))

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            tap.check(subtest.id(), False, self._exc_info_to_string(err, test))


name = os.path.splitext(os.path.basename(sys.argv[1]))[0]
spec = importlib.util.spec_from_file_location(name, sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules[name] = module
spec.loader.exec_module(module)
unittest.defaultTestLoader.loadTestsFromModule(module).run(Result())
tap.done()

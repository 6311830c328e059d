# SPDX-License-Identifier: Apache-2.0
"""Tests of certification from Python."""
import json
import os
import tempfile
import unittest

import backplane as bp
from backplane.certify import Certificate
from support import plugin


class CertifyTest(unittest.TestCase):
    def test_a_part_of_the_suite(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate = bp.certify(plugin, filters=["numeric.add.f32", "abi.error"], output=folder, seed=7, jobs=1)
            self.assertTrue(certificate.passed)
            self.assertEqual((certificate.level, certificate.failures), ("none", []))
            self.assertGreater(certificate.counts["pass"], 10)
            self.assertEqual(certificate.document["run"]["seed"], 7)
            with open(os.path.join(folder, "libbackplane_reference.json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file), certificate.document)

    def test_failures_are_shown(self):
        certificate = bp.certify(plugin, filters=["numeric.add.f32"], output=self.folder(), jobs=1)
        document = json.loads(json.dumps(certificate.document))
        document["non_passes"].append({"id": "numeric.add.f32.x", "outcome": "fail", "reason": "wrong"})
        failed = Certificate(document)
        self.assertEqual([each["id"] for each in failed.failures], ["numeric.add.f32.x"])
        self.assertFalse(failed.passed)
        whole = json.loads(json.dumps(certificate.document))
        whole["run"].update(filters=[], profile="infer")
        for level, passed in (("none", False), ("core", False), ("infer", True), ("train", True)):
            whole["verdict"]["level"] = level
            self.assertEqual(Certificate(whole).passed, passed)

    def folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def failing(self, error, parts, *arguments, **named):
        with self.assertRaises(error) as caught:
            bp.certify(*arguments, output=self.folder(), **named)
        for part in parts:
            self.assertIn(part, str(caught.exception))

    def test_errors(self):
        self.failing(bp.InvalidArgument, ["certify", "status 2", "profile"], plugin, profile="best")
        self.failing(bp.Error, ["certify", "no certificate"], "/no/such/plugin.so")
        self.failing(bp.Unavailable, ["/no/such/command", "BACKPLANE_COMMAND"], plugin, command="/no/such/command")

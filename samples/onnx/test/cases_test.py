# SPDX-License-Identifier: Apache-2.0
"""Runs all cases of onnx.backend.test on each device. The outcomes must be those that README.md states."""
import contextlib
import io
import os
import re
import unittest

from backplane_onnx import table
from onnx_support import devices

page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../README.md")


class CasesTest(unittest.TestCase):
    def test_the_page_states_the_outcomes_of_the_cases(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = table.main([page, "--check", *(f"--device={each}" for each in devices)])
        self.assertEqual((code, printed.getvalue()), (0, ""))

    def test_the_page_states_no_wrong_answer_and_enough_passes(self):
        with open(page, encoding="utf-8") as file:
            section = file.read().split(table.markers("cases")[0])[1].split(table.markers("cases")[1])[0]
        rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|", section, re.M)
        self.assertEqual([row[0] for row in rows], [each.partition(":")[0] for each in devices])
        for device, cases, passed, _, _, wrong, errors in rows:
            with self.subTest(device=device):
                self.assertEqual((wrong, errors), ("0", "0"))
                self.assertGreaterEqual(int(passed), 0.85 * int(cases))

    def test_an_outcome_that_differs_is_noticed(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertEqual(table.same("| a | 9 | 5 | 4 | 0 | 0 | 0 | 1 % |", "| a | 9 | 4 | 4 | 1 | 0 | 0 | 1 % |", "README.md"), 0)
            self.assertEqual(table.same("| a | 9 | 5 | 4 | 0 | 0 | 0 | 1 % |", "| a | 9 | 4 | 4 | 0 | 1 | 0 | 1 % |", "README.md"), 1)
        self.assertIn("and the run gives", printed.getvalue())

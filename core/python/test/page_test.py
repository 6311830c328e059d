# SPDX-License-Identifier: Apache-2.0
"""Executes the Python snippets of docs/using_from_python.md. A comment after `print(...)` states what the line
prints."""
import os
import re
import unittest

from support import needs_numpy, root

page = os.path.join(root, "docs", "using_from_python.md")
printing = re.compile(r"^ *print\(.*\) *# (.+)$", flags=re.M)


def snippets(text):
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.M | re.S)


def compare(text):
    """Executes the snippets. Returns the lines that they print, and the lines that the comments state."""
    printed, stated = [], []
    names = {"print": lambda *values: printed.append(" ".join(map(str, values)))}
    for snippet in snippets(text):
        stated += printing.findall(snippet)
        exec(compile(snippet, "using_from_python.md", "exec"), names)
    return printed, stated


@needs_numpy
class PageTest(unittest.TestCase):
    def setUp(self):
        with open(page, encoding="utf-8") as file:
            self.text = file.read()

    def test_the_snippets_print_what_the_comments_state(self):
        printed, stated = compare(self.text)
        self.assertEqual(printed, stated)
        self.assertGreater(len(stated), 12)

    def test_a_wrong_comment_is_noticed(self):
        first = snippets(self.text)[0]
        printed, stated = compare("```python\n" + first.replace("# [4. 6.]", "# [4. 7.]") + "```\n")
        self.assertNotEqual(printed, stated)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs guides, specification, decisions, JSON schemas and the samples that the guides use: install_docs.py ROOT DOC
INCLUDE SCHEMAS.

DOC, INCLUDE and SCHEMAS are folders of the installation, relative to its prefix. The script changes links so that they
lead to installed files. A link to a file that is not installed becomes plain text."""
import os
import re
import shutil
import sys

skipped = ("docs/measurements", "docs/dev")  # pages for contributors
fence = re.compile(r"(^```.*?^```)", flags=re.M | re.S)
link = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?!\w+:|#)([^()#\s]+)(#[^()\s]*)?\)")


def installed(path, doc, include, schemas):
    """Returns the path at which a source file is installed, or None if it is not installed."""
    if path.startswith(skipped):
        return None
    for source, folder in (("docs", doc), ("samples", f"{doc}/samples"), ("abi/include/backplane", include), ("core/include/backplane", include),
                           ("backends/kit/include/backplane", include), ("tools/schemas", schemas)):
        if path == source or path.startswith(source + "/"):
            return os.path.normpath(folder + path[len(source):])
    return None


def relinked(text, page, folders):
    """Returns `text`, the content of the source file `page`, with links that work after installation."""
    directory = os.path.dirname(installed(page, *folders))

    def replace(match):
        target = installed(os.path.normpath(os.path.join(os.path.dirname(page), match[2])), *folders)
        return f"[{match[1]}]({os.path.relpath(target, directory)}{match[3] or ''})" if target else match[1]

    return "".join(part if part.startswith("```") else link.sub(replace, part) for part in fence.split(text))


def main(root, *folders):
    prefix = os.environ["MESON_INSTALL_DESTDIR_PREFIX"]
    for source in ("docs", "samples"):
        for folder, _, names in os.walk(os.path.join(root, source)):
            for name in names:
                page = os.path.relpath(os.path.join(folder, name), root)
                target = installed(page, *folders)
                if not target or "__pycache__" in page:
                    continue
                target = os.path.join(prefix, target)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copyfile(os.path.join(root, page), target)
                if name.endswith(".md"):
                    with open(target, encoding="utf-8") as file:
                        text = file.read()
                    with open(target, "w", encoding="utf-8") as file:
                        file.write(relinked(text, page, folders))


main(*sys.argv[1:])

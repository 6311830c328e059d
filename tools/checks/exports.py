#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the symbols of a shared library: exports.py plugin|host LIBRARY.

A plugin must define only the symbol bp_plugin_query. A host must export only symbols that begin with bph_. Neither
may have an undefined symbol that begins with bp_ or bph_."""
import re
import subprocess
import sys

import tap

# Symbols that the toolchain adds to libraries, with or without sanitizers.
toolchain = re.compile(r"_init|_fini|_edata|_end|__bss_start|__(asan|ubsan|tsan|lsan|sanitizer|odr_asan)\w*")


def symbols(library, option):
    run = subprocess.run(["nm", "-D", option, "--format=posix", library], capture_output=True, text=True, check=True)
    names = [line.split()[0].split("@")[0] for line in run.stdout.splitlines() if line.strip()]
    return [name for name in names if not toolchain.fullmatch(name)]


def main(role, library):
    defined, undefined = symbols(library, "--defined-only"), symbols(library, "--undefined-only")
    if role == "plugin":
        tap.check("exports bp_plugin_query and nothing else", defined == ["bp_plugin_query"], " ".join(defined))
    else:
        foreign = [name for name in defined if not name.startswith("bph_")]
        tap.check("exports bph_ symbols only", not foreign, " ".join(foreign))
    wanted = [name for name in undefined if re.match(r"bph?_", name)]
    tap.check("wants no symbol of the SDK", not wanted, " ".join(wanted))
    tap.done()


main(*sys.argv[1:])

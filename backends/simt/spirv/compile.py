#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles a kernel source to SPIR-V: compile.py CLANG LLVM_SPIRV SPIRV_OPT SOURCE OUTPUT DEPFILE MACRO...

The macros define the type of the module (modules/meson.build). The module is valid for every width
of sub-groups, because the plugin replaces the width before a driver compiles the module."""
import os
import subprocess
import sys

clang, llvm_spirv, spirv_opt, source, output, depfile, *macros = sys.argv[1:]
bitcode, translated = output + ".bc", output + ".full"
# Without -O2, clang marks functions as optnone. The flags disable LLVM's passes, because the passes
# would produce `freeze`, which llvm-spirv 15 rejects.
flags = ["-x", "cl", "-cl-std=CLC++2021", "-target", "spir64", "-O2", "-Xclang", "-disable-llvm-passes",
         "-ffp-contract=off", "-Xclang", "-finclude-default-header", "-Xclang",
         "-cl-ext=+cl_khr_subgroup_shuffle", "-Wall", "-Wextra", "-Werror"]
subprocess.run([clang, *flags, *macros, "-MD", "-MF", depfile, "-MT", output,
                "-emit-llvm", "-c", source, "-o", bitcode], check=True)
subprocess.run([llvm_spirv, "--spirv-max-version=1.3", "--spirv-fp-contract=off", bitcode, "-o", translated], check=True)
subprocess.run([spirv_opt, "--strip-debug", translated, "-o", output], check=True)
os.remove(bitcode)
os.remove(translated)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The headers against abi/layout.txt, and the checker itself against planted changes: layout_test.py GOLDEN INCLUDE."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import layout

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/checks"))
import tap

# name: (file, pattern, replacement). Each changes the headers in one way that breaks a binary.
breaking = {
    "a field inserted": ("ops.h", r"(uint32_t op;\s*/\* BP_OP)", r"uint64_t planted;\n  \1"),
    "fields reordered": ("base.h", r"(  uint32_t op; [^\n]*\n)(  uint32_t message_length;[^\n]*\n)", r"\2\1"),
    "a field removed": ("device.h", r"  uint64_t capabilities;[^\n]*\n", ""),
    "a field's type changed": ("device.h", r"int32_t priority;", "uint32_t priority;"),
    "a slot's signature changed": ("device.h", r"buffer_destroy\)\(bp_device\* device, ", "buffer_destroy)("),
    "slots reordered": ("device.h", r"(?s)(bp_status \(\*copy_in\).*?;)(.*?)(bp_status \(\*copy_out\).*?;)", r"\3\2\1"),
    "an operator removed": ("ops.def", r"BP_OP_ROW\(18,[^\n]*\n", ""),
    "an operator's id changed": ("ops.def", r"BP_OP_ROW\(18,", "BP_OP_ROW(99,"),
    "an operator renamed": ("ops.def", r'"erf"', '"error_function"'),
    "an operator's least inputs changed": ("ops.def", r'(SELECT, "select", PRIMITIVE), 3, 3', r"\1, 2, 3"),
    "a dtype's id changed": ("dtypes.def", r"ROW\(13, F64", "ROW(14, F64"),
    "a reserved dtype's id changed": ("dtypes.def", r"RESERVED\(32, U1X8", "RESERVED(33, U1X8"),
    "a reserved number given to another": ("dtypes.def", r'RESERVED\(14, F8E4M3FN, "f8e4m3fn", 1\)',
                                           'ROW(14, PLANTED, "planted", 1, FLOAT, 0)'),
    "a status renumbered": ("base.h", r"#define BP_TIMEOUT 5 ", "#define BP_TIMEOUT 11 "),
    "an enumerator renumbered": ("ops.h", r"BP_GELU_ERF = 0, BP_GELU_TANH = 1", "BP_GELU_ERF = 1, BP_GELU_TANH = 0"),
    "an interface renamed": ("plugin.h", r'(INTERFACE_IMPORT) "bp\.import"', r'\1 "bp.imports"'),
    "an attribute inserted": ("attributes.def", r"(BP_ATTRS_BEGIN\(reduce\))", r'\1\nBP_ATTR(reduce, uint32_t, keep, 0, 1, "")'),
    "a minimum size changed": ("device.h", r"#define BP_DEVICE_API_MIN_SIZE 176u", "#define BP_DEVICE_API_MIN_SIZE 160u"),
    "an array element grown": ("tensor.h", r"(uint64_t immediate;)(?s:(.*?\n))(.*?)BP_STATIC_ASSERT\(sizeof\(bp_operand\) == 24[^\n]*",
                               r"\1 uint64_t planted;\2\3"),
    "an implicit hole": ("device.h", r"(typedef struct bp_memory_info \{\n  uint32_t struct_size;\n)  uint32_t reserved;\n", r"\1"),
}
caught_by_compiler = {"a field removed"}  # by its BP_FROZEN_MIN
growth = {
    "a slot appended": ("device.h", r"\n\} bp_device_api;", "\n  void (*planted)(bp_device* device);\n} bp_device_api;"),
    "a field appended": ("device.h", r"\n\} bp_device_info;", "\n  uint64_t planted;\n} bp_device_info;"),
    "an attribute appended": ("attributes.def", r"BP_ATTRS_END\(matmul\)",
                              'BP_ATTR(matmul, uint32_t, planted, 0, 1, "")\nBP_ATTR_RESERVED(matmul, planted_too)\nBP_ATTRS_END(matmul)'),
    "an operator added": ("ops.def", r"\Z", '\nBP_OP_ROW(44, PLANTED, "planted", PRIMITIVE, 1, 1, 1, 1, 0, 0, NONE, no, ELEMENTWISE, SAME, ALL, NONE, E, '
                                            'INFER, 0_2, "")\n'),
    "an optional input added": ("ops.def", r'"rms_norm", COMPOSITE, 1, 2', '"rms_norm", COMPOSITE, 1, 3'),
    "a reserved dtype introduced": ("dtypes.def", r'RESERVED\((14, F8E4M3FN, "f8e4m3fn", 1)\)', r"ROW(\1, FLOAT, 0)"),
    "a dtype added": ("dtypes.def", r"\Z", '\nBP_DTYPE_ROW(33, PLANTED, "planted", 1, FLOAT, 0)\n'),
    "a status added": ("base.h", r"(#define BP_EXECUTION_FAILED 10[^\n]*)", r"\1\n#define BP_PLANTED 11"),
    "a newer minor": ("base.h", r"#define BP_ABI_VERSION_MINOR 1u", "#define BP_ABI_VERSION_MINOR 2u"),
    "another comment": ("plugin.h", r"Ends the instance", "Ends this instance"),
}


def faults_of_change(include, golden, file, pattern, replacement):
    """-> the faults, or None if the pattern matches nothing. Headers that do not compile are one fault."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(include, folder, dirs_exist_ok=True)
        path = os.path.join(folder, "backplane", file)
        text = layout.read(path)
        changed, count = re.subn(pattern, replacement, text, count=1)
        if not count or changed == text:
            return None
        with open(path, "w", encoding="utf-8") as out:
            out.write(changed)
        try:
            current = layout.dump(folder, "backplane/plugin.h")
        except subprocess.CalledProcessError as error:
            return ["does not compile: " + error.stderr]
        return layout.compare(golden, current) + layout.holes(current)


never_grow = {"bp_tensor_desc", "bp_operand"}  # array elements
plain = re.compile(r"(const )?(u?int(8|16|32|64)_t|float|char|bp_status|void|(struct )?bp_\w+)( const)?\*{0,2} .*")


def shape_faults(lines):
    """Extensible structs begin with struct_size; fields are fixed-width numbers, pointers and slots."""
    faults = []
    for name, (_, fields) in layout.parse(lines)["struct"].items():
        if (fields[0][3] == "uint32_t struct_size") == (name in never_grow):
            faults.append(f"{name} begins with '{fields[0][3]}'")
        faults += [f"{name}: '{text}' is no fixed-width type" for *_, text in fields if not plain.match(text) or re.search(
            r"\b(bool|long|int|unsigned|size_t|enum)\b", text)]
    return faults


def main(path, include):
    golden = layout.read(path).splitlines()
    current = layout.dump(include, "backplane/plugin.h")
    faults = layout.compare(golden, current)
    tap.check("layout and ids are as in the golden, or grown at the tail", not faults, "\n".join(
        faults + [f"a deliberate break: abi/test/layout.py update {path} {include} backplane/plugin.h, and docs/changelog.md"]))
    tap.check("no struct has a hole", not layout.holes(current), "\n".join(layout.holes(current)))
    tap.check("struct_size comes first, and types are fixed-width", not shape_faults(current), "\n".join(shape_faults(current)))
    odd = ["struct bp_odd 8", "field bp_odd.struct_size 0 4 uint32_t struct_size", "field bp_odd.a 4 4 enum bp_kind a"]
    tap.check("caught: an enum in a struct, and none of struct_size", len(shape_faults(odd)) == 1 and
              len(shape_faults([odd[0], odd[1].replace("struct_size", "size")])) == 1, "unseen")
    for compiler in ("gcc", "clang-16"):
        if shutil.which(compiler):
            try:
                same, detail = layout.dump(include, "backplane/plugin.h", compiler=compiler,
                                           flags=("-Wpadded", "-Werror")) == current, "differs from gcc"
            except subprocess.CalledProcessError as error:
                same, detail = False, error.stderr
            tap.check(f"-Wpadded, and the same layout, with {compiler}", same, detail)
    for name, change in breaking.items():
        faults = faults_of_change(include, golden, *change)
        by_compiler = bool(faults) and faults[0].startswith("does not compile")
        tap.check(f"rejected: {name}", faults and by_compiler == (name in caught_by_compiler),
                  "the pattern matches nothing" if faults is None else "accepted" if not faults else faults[0])
    for name, change in growth.items():
        faults = faults_of_change(include, golden, *change)
        tap.check(f"accepted: {name}", faults == [], "the pattern matches nothing" if faults is None else "\n".join(faults))
    tap.done()


main(*sys.argv[1:])

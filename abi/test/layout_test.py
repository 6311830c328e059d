#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the headers with abi/layout.txt, and tests the comparison with planted changes:
layout_test.py GOLDEN INCLUDE..."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import layout

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/checks"))
import tap

# {name: (file, pattern, replacement)}. Each change breaks binary compatibility in one way.
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
    "an operator's first version changed": ("ops.def", r'(BP_OP_ROW\(18,[^\n]*), 0_2, ', r"\1, 0_3, "),
    "an operator's set of dtypes becomes less": ("ops.def", r'("neg", [^\n]* SAME), NUMERIC', r"\1, FLOATS"),
    "an attribute's least value changed": ("attributes.def", r"(BP_ATTR\(compare, uint32_t, predicate), 0, ", r"\1, 1, "),
    "an attribute's range cut": ("attributes.def", r"(BP_ATTR\(compare, uint32_t, predicate), 0, 5", r"\1, 0, 4"),
    "an interface slot inserted": ("plugin.h", r"(typedef struct bp_import_api \{\n  uint32_t struct_size;\n  uint32_t reserved;\n)",
                                   r"\1  void (*planted)(bp_device* device);\n"),
    "an interface slot's signature changed": ("plugin.h", r"(\(\*import_\w+\)\(bp_device\* device), ", r"\1, uint32_t planted, "),
    "a host function's signature changed": ("backplane.h", r"(bph_copy_in\(bph_stream\* stream, )", r"\1uint32_t planted, "),
    "a host function's result changed": ("backplane.h", r"BPH_API bp_status (bph_copy_in\()", r"BPH_API void \1"),
    "a host function removed": ("backplane.h", r"BPH_API bp_status bph_event_wait\([^;]*;", ""),
    "a host constant renumbered": ("backplane.h", r"#define BPH_PATH_DECOMPOSED 2u", "#define BPH_PATH_DECOMPOSED 4u"),
    "a host field inserted": ("backplane.h", r"(typedef struct bph_call \{\n  uint32_t struct_size;\n)", r"\1  uint32_t planted;\n"),
    "host fields that share a declaration reordered": ("backplane.h", r"inputs_min, inputs_max", "inputs_max, inputs_min"),
    "a host slot's signature changed": ("backplane.h", r"(bp_status \(\*allocate\)\(void\* context, )", r"\1uint32_t planted, "),
    "a host's array element grown": ("backplane.h", r"(  int64_t strides\[BP_MAX_RANK\];\n)\} bph_tensor;\n[^\n]*",
                                     r"\1  uint64_t planted;\n} bph_tensor;"),
    "an implicit hole": ("device.h", r"(typedef struct bp_memory_info \{\n  uint32_t struct_size;\n)  uint32_t reserved;\n", r"\1"),
}
caught_by_compiler = {"a field removed"}  # BP_FROZEN_MIN of the struct fails
rows = r"(/\* Add rows here\. \*/\n)"  # the comment before the rows of rules/growth.def
# Additions to descriptors: each change, and the row of rules/growth.def that keeps core from
# passing the addition to older plugins.
gated_growth = {
    "an attribute appended": (("attributes.def", r"BP_ATTRS_END\(matmul\)",
                               'BP_ATTR(matmul, uint32_t, planted, 0, 1, "")\nBP_ATTR_RESERVED(matmul, planted_too)\nBP_ATTRS_END(matmul)'),
                              "BP_GROWN_ATTRIBUTE(matmul, planted, 0_2)\nBP_GROWN_ATTRIBUTE(matmul, planted_too, 0_2)"),
    "a reserved attribute used": (("attributes.def", r"BP_ATTR_RESERVED\(scatter, reserved\)",
                                   'BP_ATTR(scatter, uint32_t, planted, 0, 1, "")'), "BP_GROWN_ATTRIBUTE(scatter, planted, 0_2)"),
    "an optional input added": (("ops.def", r'"rms_norm", COMPOSITE, 1, 2', '"rms_norm", COMPOSITE, 1, 3'),
                                "BP_GROWN_INPUTS(RMS_NORM, 2, 0_2)"),
    "a scalar added": (("ops.def", r'("adamw", COMPOSITE, 1, 1, 3, 3, 3), 3', r"\1, 4"), "BP_GROWN_SCALARS(ADAMW, 3, 0_2)"),
    "a dtype added": (("dtypes.def", r"(BP_DTYPE_ROW\(13, [^\n]*\n)", r'\1BP_DTYPE_ROW(33, PLANTED, "planted", 1, FLOAT, 0)\n'),
                      "BP_GROWN_DTYPE(PLANTED, 0_2)"),
    "a reserved dtype introduced": (("dtypes.def", r'RESERVED\((14, F8E4M3FN, "f8e4m3fn", 1)\)', r"ROW(\1, FLOAT, 0)"),
                                    "BP_GROWN_DTYPE(F8E4M3FN, 0_2)"),
    "a flag added": (("ops.h", r"#define BP_OP_FLAGS_ALL [^\n]*", "#define BP_OP_FLAGS_ALL 31u"), "BP_GROWN_FLAGS(15, 0_2)"),
    "an enumerator added": (("attributes.def", r"(BP_ATTR\(compare, uint32_t, predicate), 0, 5", r"\1, 0, 6"),
                            "BP_GROWN_VALUE(compare, predicate, 5, 0_2)"),
    "an operator's set of dtypes becomes greater": (("ops.def", r'("floor", [^\n]* SAME), FLOATS', r"\1, NUMERIC"),
                                                    "BP_GROWN_INPUT_DTYPES(FLOOR, 0, BP_SET_FLOATS, 0_2)"),
    "an operator gains attributes": (("ops.def", r'("neg", PRIMITIVE, 1, 1, 1, 1, 0, 0, NONE), no', r"\1, axis"),
                                     "BP_GROWN_RULE(NEG, planted, 0_2)"),
}
growth = {
    "a host field appended": ("backplane.h", r"\n\} bph_call;", "\n  uint64_t planted;\n} bph_call;"),
    "a host function added": ("backplane.h", r"(BPH_API bp_status bph_event_wait)", r"BPH_API void bph_planted(bph_event* event);\n\1"),
    "a host constant added": ("backplane.h", r"(#define BPH_PATH_DECOMPOSED 2u)", r"#define BPH_PATH_PLANTED 9u\n\1"),
    "an interface slot appended": ("plugin.h", r"\n\} bp_import_api;", "\n  void (*planted)(bp_device* device);\n} bp_import_api;"),
    "a slot appended": ("device.h", r"\n\} bp_device_api;", "\n  void (*planted)(bp_device* device);\n} bp_device_api;"),
    "a field appended": ("device.h", r"\n\} bp_device_info;", "\n  uint64_t planted;\n} bp_device_info;"),
    "an operator added": ("ops.def", r"\Z", '\nBP_OP_ROW(44, PLANTED, "planted", PRIMITIVE, 1, 1, 1, 1, 0, 0, NONE, no, ELEMENTWISE, SAME, ALL, NONE, E, '
                                            'INFER, 0_2, elementwise, "")\n'),
    "a status added": ("base.h", r"(#define BP_EXECUTION_FAILED 10[^\n]*)", r"\1\n#define BP_PLANTED 11"),
    "a newer minor": ("base.h", r"#define BP_ABI_VERSION_MINOR 3u", "#define BP_ABI_VERSION_MINOR 4u"),
    "another comment": ("plugin.h", r"\Z", "/* planted */\n"),
}


header = "backplane/backplane.h"


def dump_of(folder, compiler="gcc", flags=()):
    return layout.dump(header, [folder], compiler, flags)


def changed_headers(includes, folder, *changes):
    """Copies the headers into `folder` and makes `changes`. Returns False if a pattern matches
    nothing."""
    for include in includes:
        shutil.copytree(include, folder, dirs_exist_ok=True)
    for file, pattern, replacement in changes:
        path = os.path.join(folder, "backplane", file)
        text = layout.read(path)
        changed, count = re.subn(pattern, replacement, text, count=1)
        with open(path, "w", encoding="utf-8") as out:
            out.write(changed)
        if not count or changed == text:
            return False
    return True


def faults_of_change(includes, golden, *changes):
    """Returns the problems that the comparison finds, or None if a pattern matches nothing. If the
    headers do not compile, the result contains only that problem."""
    with tempfile.TemporaryDirectory() as folder:
        if not changed_headers(includes, folder, *changes):
            return None
        try:
            current = dump_of(folder)
        except subprocess.CalledProcessError as error:
            return ["does not compile: " + error.stderr]
        return layout.compare(golden, current) + layout.holes(current)


never_grow = {"bp_tensor_desc", "bp_operand", "bp_graph_binding", "bph_tensor", "bph_graph_binding"}  # structs that are array elements
plain = re.compile(r"(const )?(u?int(8|16|32|64)_t|float|char|bp_status|void|(struct )?bph?_\w+)( const)?\*{0,2} .*")


def shape_faults(lines):
    """Checks that extensible structs begin with struct_size, and that fields are fixed-width
    numbers, pointers or slots."""
    faults = []
    for name, (_, fields) in layout.parse(lines)["struct"].items():
        if (fields[0][3] == "uint32_t struct_size") == (name in never_grow):
            faults.append(f"{name} begins with '{fields[0][3]}'")
        faults += [f"{name}: '{text}' is no fixed-width type" for *_, text in fields if not plain.match(text) or re.search(
            r"\b(bool|long|int|unsigned|size_t|enum)\b", text)]
    return faults


def minimum_faults(includes, lines):
    """Checks that each struct with a struct_size has a minimum size (BP_*_MIN_SIZE or BPH_*_MIN_SIZE)
    that does not exceed the struct's size. Outputs of the host API need no minimum size."""
    facts, faults = layout.parse(lines), []
    for name, role in layout.roles_of(layout.headers_of(header, includes)).items():
        fields = facts["struct"].get(name, (0, [("", 0, 0, "")]))[1]
        if fields[0][0] != "struct_size" or (name.startswith("bph_") and "Role: output" in role):
            continue
        if f"{name.upper()}_MIN_SIZE" not in facts["constant"]:
            faults.append(f"{name} has no {name.upper()}_MIN_SIZE")
        elif int(facts["constant"][f"{name.upper()}_MIN_SIZE"][0]) > facts["struct"][name][0]:
            faults.append(f"{name} is shorter than {name.upper()}_MIN_SIZE")
    return faults


def main(path, *includes):
    golden = layout.read(path).splitlines()
    current = layout.dump(header, includes)
    faults = layout.compare(golden, current)
    tap.check("layout and ids are as in the golden, or grown at the tail", not faults, "\n".join(
        faults + [f"a deliberate break: abi/test/layout.py update {path} {header} {' '.join(includes)}, and docs/changelog.md"]))
    tap.check("no struct has a hole", not layout.holes(current), "\n".join(layout.holes(current)))
    tap.check("struct_size comes first, and types are fixed-width", not shape_faults(current), "\n".join(shape_faults(current)))
    odd = ["struct bp_odd 8", "field bp_odd.struct_size 0 4 uint32_t struct_size", "field bp_odd.a 4 4 enum bp_kind a"]
    tap.check("caught: an enum in a struct, and none of struct_size", len(shape_faults(odd)) == 1 and
              len(shape_faults([odd[0], odd[1].replace("struct_size", "size")])) == 1, "unseen")
    faults = minimum_faults(includes, current)
    tap.check("every struct that is read has a frozen minimum size", not faults, "\n".join(faults))
    for name in ("BPH_CALL", "BPH_REGISTRY_DESC", "BPH_BUFFER_DESC", "BP_OP_DESC"):
        with tempfile.TemporaryDirectory() as folder:
            file = "backplane.h" if name.startswith("BPH") else "ops.h"
            planted = changed_headers(includes, folder, (file, rf"#define {name}_MIN_SIZE [^\n]*\nBP_FROZEN_MIN[^\n]*\n", ""))
            missing = planted and minimum_faults([folder], dump_of(folder))
            tap.check(f"caught: no minimum size of {name.lower()}", missing == [f"{name.lower()} has no {name}_MIN_SIZE"], missing)
    one_line = "typedef struct bp_one { uint32_t struct_size, flags; const char *a, *b; uint32_t group[3], last; void (*slot)(void* x, int y); } bp_one;"
    tap.check("bodies of one line and shared declarators are read", [name for name, _ in layout.structs_of(one_line)["bp_one"]] == [
        "struct_size", "flags", "a", "b", "group", "last", "slot"], layout.structs_of(one_line))
    for compiler in ("gcc", "clang-16"):
        if shutil.which(compiler):
            try:
                same = layout.dump(header, includes, compiler, ("-Wpadded", "-Werror")) == current
                detail = "differs from gcc"
            except subprocess.CalledProcessError as error:
                same, detail = False, error.stderr
            tap.check(f"-Wpadded, and the same layout, with {compiler}", same, detail)
    for name, change in breaking.items():
        faults = faults_of_change(includes, golden, change)
        by_compiler = bool(faults) and faults[0].startswith("does not compile")
        tap.check(f"rejected: {name}", faults and by_compiler == (name in caught_by_compiler),
                  "the pattern matches nothing" if faults is None else "accepted" if not faults else faults[0])
    for name, change in growth.items():
        faults = faults_of_change(includes, golden, change)
        tap.check(f"accepted: {name}", faults == [], "the pattern matches nothing" if faults is None else "\n".join(faults))
    for name, (change, row) in gated_growth.items():
        faults = faults_of_change(includes, golden, change, ("rules/growth.def", rows, rf"\1{row}\n"))
        tap.check(f"accepted: {name}, with its row", faults == [], "the pattern matches nothing" if faults is None else "\n".join(faults))
        faults = faults_of_change(includes, golden, change)
        tap.check(f"rejected: {name}, without", faults and all("rules/growth.def" in fault for fault in faults), faults)
    tap.done()


main(*sys.argv[1:])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a possible next minor version of the ABI, or 1.0: grow.py ROOT OUT STAMP minor|major
[SOURCE...].

Writes OUT/include, a grown copy of the public headers, rules and kit. Each SOURCE is the path of a
file to write. The file is a copy of core's file with the same name, plus code that decomposes the
additions. Each entry of `minor` represents one kind of growth. If an edit does not match exactly
once, the program fails, and a developer must adapt the edit to the changed file. STAMP is a header
that changes with OUT/include, so that the build recompiles the sources."""
import hashlib
import os
import re
import shutil
import sys

includes = ("abi/include", "core/include", "backends/kit/include")

# Each entry is (kind of growth, [(file in include/backplane or core, pattern, replacement)]).
minor = [
    ("version", [
        ("base.h", r"(#define BP_ABI_VERSION_MINOR) 3u", r"\1 4u"),
        ("ops.h", r"(#define BP_SINCE_0_2 [^\n]*\n)", r"\1#define BP_SINCE_0_4 BP_VERSION(0, 4)\n"),
    ]),
    # A primitive gains an attribute. The primitive had no attributes (`no`), so the field uses a
    # reserved word of the struct.
    ("attribute", [
        ("attributes.def", r"(BP_ATTRS_BEGIN\(axis\)\n)",
         r"BP_ATTRS_BEGIN(cast)\nBP_ATTR(cast, uint32_t, saturate, 0, 1, "
         r'"1: integers saturate")\nBP_ATTRS_END(cast)\nBP_ATTRS_OPTIONAL(cast)\n\n\1'),
        ("ops.def", r'(BP_OP_ROW\(3, CAST, "cast", PRIMITIVE, 1, 1, 1, 1, 0, 0, NONE), no,', r"\1, cast,"),
        ("rules/growth.def", r"(/\* Add rows here\. \*/\n)", r"\1BP_GROWN_ATTRIBUTE(cast, saturate, 0_4)\n"),
        # Core decomposes a saturating cast to u8 into max and min.
        ("src/composite/program.cpp", r"(\nbool has_program\([^)]*\) \{\n)",
         r"\nnamespace {\nbool saturates(const bp_op_desc& desc) {\n"
         r"  return desc.op == BP_OP_CAST && desc.attributes != nullptr && desc.outputs[0].dtype == BP_U8 &&\n"
         r"         static_cast<const bp_cast_attributes*>(desc.attributes)->saturate != 0;\n}\n}  // namespace\n"
         r"\1  if (saturates(desc)) return true;\n"),
        ("src/composite/program.cpp", r"(\n    BP_COMPOSITE\(SORT, sort\)\n)",
         r"\1    case BP_OP_CAST: {\n      const composite::Value x = b.input(0);\n"
         r"      const composite::Value low = b.binary(BP_OP_MAX, x, b.integer(x.dtype(), 0));\n"
         r"      return void(b.store(b.output(0), b.binary(BP_OP_MIN, low, b.integer(x.dtype(), 255))));\n    }\n"),
    ]),
    ("operand", [
        ("ops.def", r'(BP_OP_ROW\(118, ATTENTION, "attention", COMPOSITE, 3), 5,', r"\1, 6,"),
        ("rules/signatures.hpp", r'(\{BP_OP_ATTENTION, \{[^}]*"mBHLS", "sH")\}', r'\1, "nB"}'),
        ("rules/growth.def", r"(/\* Add rows here\. \*/\n)", r"\1BP_GROWN_INPUTS(ATTENTION, 5, 0_4)\n"),
        ("src/composite/attention.cpp", r"(  std::optional<Value> sinks;[^\n]*\n)", r"\1  std::optional<Value> valid;  // [B,1,1,1,1]: how many keys count\n"),
        ("src/composite/attention.cpp", r"(  if \(b\.has_input\(4\)\) o\.sinks = [^\n]*\n)",
         r"\1  if (b.has_input(5)) o.valid = insert(insert(insert(insert(b.cast(b.input(5), BP_I32), 1), 2), 3), 4);\n"),
        ("src/composite/attention.cpp", r"(  return scores;\n)",
         r"  if (o.valid) {\n    const Value key = b.iota(BP_I32, {1, 1, 1, 1, o.keys}, 4, 0);\n"
         r"    scores = b.select(b.compare(BP_COMPARE_LT, key, slice(*o.valid, 0, tile.batch, tile.batches)), scores, lowest);\n  }\n\1"),
    ]),
    ("scalar", [
        ("ops.def", r'(BP_OP_ROW\(128, ADAMW, "adamw", COMPOSITE, 1, 1, 3, 3, 3), 3,', r"\1, 4,"),
        ("rules/growth.def", r"(/\* Add rows here\. \*/\n)", r"\1BP_GROWN_SCALARS(ADAMW, 3, 0_4)\n"),
        ("src/composite/optimizer.cpp", r"const Value gradient = b\.load\(0\), (before = [^\n]*)\n",
         r"Value gradient = b.load(0);\n  const Value \1\n"
         r"  if (b.desc().scalar_count > 3) {  // 0 counts as 1, in device memory too\n"
         r"    const Value scale = b.widen(b.scalar(3, rank));\n"
         r"    gradient = b.mul(gradient, b.select(b.compare(BP_COMPARE_EQ, scale, b.constant(0)), b.constant(1), scale));\n  }\n"),
    ]),
    ("dtype", [
        ("dtypes.def", r'BP_DTYPE_RESERVED\(5, I16, "i16", 2\)\n', ""),
        ("dtypes.def", r'(BP_DTYPE_ROW\(6, I32)', r'BP_DTYPE_ROW(5, I16, "i16", 2, INT, 0)\n\1'),
        ("ops.h", r"(#define BP_SET_INTS [^(]*\()", r"\1BP_DTYPE_BIT(BP_I16) | "),
        ("rules/growth.def", r"(/\* Add rows here\. \*/\n)", r"\1BP_GROWN_DTYPE(I16, 0_4)\n"),
    ]),
    ("set of dtypes", [
        ("ops.def", r'(BP_OP_ROW\(9, FLOOR, "floor", [^\n]* SAME), FLOATS,', r"\1, NUMERIC,"),
        ("rules/growth.def", r"(/\* Add rows here\. \*/\n)", r"\1BP_GROWN_INPUT_DTYPES(FLOOR, 0, BP_SET_FLOATS, 0_4)\n"),
    ]),
    ("flag", [
        ("ops.h", r"(#define BP_OP_FLAG_SPECIALIZE [^\n]*\n)", r"\1#define BP_OP_FLAG_LATER 16u\n"),
        ("ops.h", r"(#define BP_OP_FLAGS_ALL )[^\n]*", r"\g<1>31u"),
        ("rules/growth.def", r"(/\* Add rows here\. \*/\n)", r"\1BP_GROWN_FLAGS(15, 0_4)\n"),
    ]),
    ("permission bit", [
        ("ops.h", r"(#define BP_SINCE_0_4)", r"#define BP_PRECISION_ALLOW_LATER 64u\n\1"),
    ]),
    ("hint bit", [
        ("ops.h", r"(#define BP_SINCE_0_4)", r"#define BP_HINT_LATER 0x80000000u\n\1"),
    ]),
    ("slot", [
        ("device.h", r"\n\} bp_device_api;",
         r"\n\n  /* A number. Since: 0.4, optional. */\n  bp_status (*later)(bp_device* device, uint64_t* out, bp_error* error);\n} bp_device_api;"),
        ("rules/tables.hpp", r"(TableGrowth<bp_device_api> \{\n[^\n]*\{BP_VERSION\(0, 2\), (\d+)\})\}",
         r"\1, {BP_VERSION(0, 4), \2 + 8}}"),
    ]),
    ("interface slot", [
        ("plugin.h", r"\n\} bp_import_api;",
         r"\n\n  /* A number. Since: 0.4, optional. */\n  bp_status (*later)(bp_device* device, uint64_t* out, bp_error* error);\n} bp_import_api;"),
        ("rules/tables.hpp", r"(TableGrowth<bp_import_api> \{\n[^\n]*\{BP_VERSION\(0, 2\), (\d+)\})\}",
         r"\1, {BP_VERSION(0, 4), \2 + 8}}"),
    ]),
    ("enumerator", [
        ("attributes.def", r"(BP_ATTR\(gelu, uint32_t, approximation, 0), 1,", r"\1, 2,"),
        ("rules/growth.def", r"(/\* Add rows here\. \*/\n)", r"\1BP_GROWN_VALUE(gelu, approximation, 1, 0_4)\n"),
        ("src/composite/elementwise.cpp", r"(void gelu\(Builder& b\) \{\n)",
         r"\1  if (b.attributes<bp_gelu_attributes>().approximation == 2) {  // x * sigmoid(1.702 x)\n    const Value x = b.load(0);\n"
         r"    b.store(b.output(0), b.div(x, one_plus_exp(b, b.mul(x, b.constant(1.702)))));\n    return;\n  }\n"),
    ]),
    ("output field", [
        ("device.h", r"\n\} bp_device_info;", r"\n  uint64_t later; /* 0: not said. Since 0.4 */\n} bp_device_info;"),
    ]),
    ("host struct", [
        ("backplane.h", r"\n\} bph_call;", r"\n  uint64_t later; /* Since 0.4 */\n} bph_call;"),
    ]),
    ("bph_ function", [
        ("backplane.h", r"(BPH_API bp_status bph_device_trim\()",
         r"/* A number of the device's. Errors: UNSUPPORTED. Since 0.4. */\n"
         r"BPH_API bp_status bph_device_later(bph_device* device, uint64_t* out, bp_error* error);\n\1"),
    ]),
    ("operator", [
        ("ops.def", r"(\n/\* Unary \*/\n)",
         r'\1BP_OP_ROW(44, SQUARE, "square", PRIMITIVE, 1, 1, 1, 1, 0, 0, NONE, no, ELEMENTWISE, SAME, FLOATS, NONE, R, INFER, 0_4, elementwise, '
         r'"out = x * x")\n'),
    ]),
]
# Version 1.0 has the same layout as the last version 0.x.
major = [("version", [
    ("base.h", r"(#define BP_ABI_VERSION_MAJOR) 0u", r"\1 1u"),
    ("base.h", r"(#define BP_ABI_VERSION_MINOR) 4u", r"\1 0u"),
    ("base.h", r"(#define BP_ABI_VERSION_OLDEST) BP_VERSION\(0, 2\)", r"\1 BP_VERSION(1, 0)"),
])]


def edit(kind, path, pattern, replacement):
    with open(path, encoding="utf-8") as opened:
        text = opened.read()
    changed, count = re.subn(pattern, replacement, text)
    if count != 1:
        sys.exit(f"grow.py: {kind}: {path} matches {count} times, not once: {pattern}")
    with open(path, "w", encoding="utf-8") as opened:
        opened.write(changed)


def main(root, out, stamp, what, *sources):
    shutil.rmtree(out, ignore_errors=True)
    for include in includes:
        shutil.copytree(os.path.join(root, include), os.path.join(out, "include"), dirs_exist_ok=True)
    copies = {os.path.basename(path).removeprefix("grown_"): path for path in sources}
    untouched = set(copies)
    for kind, changes in minor + (major if what == "major" else []):
        for file, pattern, replacement in changes:
            name = os.path.basename(file)
            if not file.startswith("src/"):
                edit(kind, os.path.join(out, "include/backplane", file), pattern, replacement)
            elif name in copies:
                if name in untouched:
                    shutil.copyfile(os.path.join(root, "core", file), copies[name])
                    untouched.remove(name)
                edit(kind, copies[name], pattern, replacement)
            elif what == "minor":
                sys.exit(f"grow.py: {kind}: {file} is edited without a request")
    if untouched:
        sys.exit(f"grow.py: no edit is of {', '.join(untouched)}")
    digest = hashlib.sha256()
    for directory, _, names in sorted(os.walk(out)):
        for name in sorted(names):
            with open(os.path.join(directory, name), "rb") as file:
                digest.update(file.read())
    with open(stamp, "w", encoding="utf-8") as file:
        file.write(f"/* {digest.hexdigest()} */\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes and checks the golden file with the layout of the C headers: layout.py dump|check|update GOLDEN HEADER
INCLUDE...

The file covers the plugin ABI and the host API. Each line states a size, an offset, an id or
another property that a compiler reports. `check` accepts only tail growth and new ids. `update`
rewrites GOLDEN. Use it before 1.0 for a deliberate break, which docs/changelog.md must name."""
import os
import re
import subprocess
import sys
import tempfile

# Constants that may grow: versions, counts and sets. All other constants are frozen.
may_grow = {"BP_ABI_VERSION", "BP_ABI_VERSION_MINOR", "BP_ABI_VERSION_OLDEST", "BP_MEMORY_KINDS", "BP_OP_LIMIT", "BP_DTYPE_LIMIT", "BP_OP_FLAGS_ALL"}
grows_by_bits = re.compile(r"BP_SET_\w+|BP_OP_FLAGS_ALL")

rows = r"""
#define BP_DTYPE_ROW(id, symbol, name, bytes, kind, core) printf("dtype %d %s %s %s %d\n", id, #symbol, name, #kind, bytes);
#define BP_DTYPE_RESERVED(id, symbol, name, bytes) printf("dtype %d %s %s RESERVED %d\n", id, #symbol, name, bytes);
#include <backplane/dtypes.def>
#undef BP_DTYPE_ROW
#define BP_OP_ROW(id, symbol, name, kind, imin, imax, omin, omax, smin, smax, sdtype, attrs, shape, rule, dtypes, i64, acc, prof, since, family, doc) \
  printf("op %d %s %s %s %d..%d %d..%d %d..%d %s %s %s %s %s %s\n", id, #symbol, name, #kind, imin, imax, omin, omax, smin, smax, \
         #sdtype, #attrs, #shape, #rule, #dtypes, #since);
#include <backplane/ops.def>
#undef BP_OP_ROW
#define STRUCT(stem) struct bp_##stem##_attributes
#define FIELD(stem, field, declaration) \
  printf("field bp_%s_attributes.%s %zu %zu %s\n", #stem, #field, offsetof(STRUCT(stem), field), \
         sizeof(((STRUCT(stem)*)0)->field), declaration);
#define RANGE(stem, field, lo, hi) printf("range bp_%s_attributes.%s %s %s\n", #stem, #field, #lo, #hi);
#define BP_ATTRS_BEGIN(stem) \
  printf("struct bp_%s_attributes %zu\n", #stem, sizeof(STRUCT(stem))); FIELD(stem, struct_size, "uint32_t struct_size")
#define BP_ATTR(stem, type, field, lo, hi, doc) FIELD(stem, field, #type " " #field) RANGE(stem, field, lo, hi)
#define BP_ATTR_ARRAY(stem, type, field, count, lo, hi, doc) \
  FIELD(stem, field, #type " " #field "[" #count "]") RANGE(stem, field, lo, hi)
#define BP_ATTR_RESERVED(stem, field) FIELD(stem, field, "uint32_t " #field)
#define BP_ATTRS_END(stem)
#define BP_ATTRS_OPTIONAL(stem)
#include <backplane/attributes.def>
#define BP_GROWN_ATTRIBUTE(stem, field, since) printf("grown attribute.%s.%s %s\n", #stem, #field, #since);
#define BP_GROWN_VALUE(stem, field, old_hi, since) printf("grown value.%s.%s.%s %s\n", #stem, #field, #old_hi, #since);
#define BP_GROWN_INPUTS(symbol, old_max, since) printf("grown inputs.%s.%d %s\n", #symbol, old_max, #since);
#define BP_GROWN_OUTPUTS(symbol, old_max, since) printf("grown outputs.%s.%d %s\n", #symbol, old_max, #since);
#define BP_GROWN_SCALARS(symbol, old_max, since) printf("grown scalars.%s.%d %s\n", #symbol, old_max, #since);
#define BP_GROWN_DTYPE(dtype, since) printf("grown dtype.%s %s\n", #dtype, #since);
#define BP_GROWN_INPUT_DTYPES(symbol, index, old_set, since) printf("grown operator.%s %s\n", #symbol, #since);
#define BP_GROWN_OUTPUT_DTYPES(symbol, index, old_set, since) printf("grown operator.%s %s\n", #symbol, #since);
#define BP_GROWN_FLAGS(old_all, since) printf("grown flags.%d %s\n", (int)(old_all), #since);
#define BP_GROWN_RULE(symbol, predicate, since) printf("grown operator.%s %s\n", #symbol, #since);
#include <backplane/rules/growth.def>
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def find(name, includes):
    return next((path for path in (os.path.join(folder, name) for folder in includes) if os.path.exists(path)), None)


def headers_of(header, includes, seen=None):
    """Returns the text of the C headers that a header includes, each once, and then the header's
    own text."""
    seen = set() if seen is None else seen
    path = find(header, includes)
    if path is None or path in seen:
        return ""
    seen.add(path)
    text = read(path)
    before = "".join(headers_of("backplane/" + name, includes, seen)
                     for name in re.findall(r'#include ["<](?:backplane/)?(\w+\.h)[">]', text))
    return before + text + "\n"


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def bodies_of(text):
    """Returns (name, body) of every struct that no macro generates. A body may have several
    lines."""
    found = re.findall(r"\bstruct (bph?_\w+)\s*\{([^{}]*)\}", text)
    return [(name, body) for name, body in dict(found).items() if "##" not in body]


def fields_of(body):
    """Returns [(field, declaration)]. Fields that share a declaration each have an entry."""
    fields = []
    for declaration in filter(None, (" ".join(part.split()) for part in body.split(";"))):
        slot = re.search(r"\(\*(\w+)\)", declaration)
        names = [slot.group(1)] if slot else [re.search(r"(\w+)(\[\w+\])*$", part.strip()).group(1)
                                             for part in declaration.split(",")]
        fields += [(name, declaration) for name in names]
    return fields


def structs_of(text):
    """Returns {name: [(field, declaration)]}."""
    return {name: fields_of(body) for name, body in bodies_of(text)}


def functions_of(text):
    """Returns {name: declaration} of the host API's functions."""
    found = re.findall(r"^BPH_API ([^;{]*?\b(bph_\w+)\([^;{]*\));", text, flags=re.M | re.S)
    return {name: " ".join(declaration.split()) for declaration, name in found}


def constants_of(text):
    joined = text.replace("\\\n", " ")
    numbers = re.findall(r"^#define (BPH?_[A-Z0-9_]+)[ \t]+([^\"\n]*[0-9A-Zul)])[ \t]*$", joined, flags=re.M)
    names = [name for name, value in numbers if not value.startswith(("extern", "__", "BP_EXTERN_C"))]
    for body in re.findall(r"enum \{(.*?)\}", joined, flags=re.S):
        names += re.findall(r"(?:^|,|\n)\s*(BPH?_[A-Z0-9_]+) =", body)
    strings = re.findall(r"^#define (BPH?_[A-Z0-9_]+) (\".*\")", joined, flags=re.M)
    return list(dict.fromkeys(names)), strings


def roles_of(text):
    """Returns {struct: comment before the struct}. `text` must still contain its comments."""
    return {name: " ".join(comment.split())
            for comment, name in re.findall(r"(/\*(?:(?!\*/).)*\*/)\s*(?:typedef )?struct (bph?_\w+)\s*\{", text, flags=re.S)}


def dump(header, includes, compiler="gcc", flags=()):
    """Returns the lines of the golden file, in the headers' order. Raises CalledProcessError if the
    headers do not compile."""
    text = without_comments(headers_of(header, includes))
    names, strings = constants_of(text)
    lines = [f'printf("constant {name} %lld\\n", (long long)({name}));' for name in names]
    lines += [f'printf("string {name} %s\\n", {name});' for name, _ in strings]
    lines += [f'printf("function {name} {declaration}\\n");' for name, declaration in functions_of(text).items()]
    for name, fields in structs_of(text).items():
        lines.append(f'printf("struct {name} %zu\\n", sizeof(struct {name}));')
        for field, declaration in fields:
            lines.append(f'printf("field {name}.{field} %zu %zu %s\\n", offsetof(struct {name}, {field}), '
                         f'sizeof(((struct {name}*)0)->{field}), "{declaration}");')
    program = f"#include <{header}>\n#include <stdio.h>\nint main(void) {{\n" + "\n".join(lines) + rows + "return 0; }\n"
    with tempfile.TemporaryDirectory() as folder:
        source, binary = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program)
        paths = [f"-I{path}" for path in includes]
        subprocess.run([compiler, "-std=c11", *flags, *paths, source, "-o", binary], check=True,
                       capture_output=True, text=True)
        return subprocess.run([binary], check=True, capture_output=True, text=True).stdout.splitlines()


def parse(lines):
    facts = {"constant": {}, "string": {}, "function": {}, "struct": {}, "range": {}, "dtype": {}, "op": {}, "grown": {}}
    for line in lines:
        kind, name, *fields = line.split(" ")
        if kind == "field":
            struct, field = name.split(".")
            declaration = " ".join(fields[2:]).replace("( ", "(")  # the formatter may break the line after "("
            facts["struct"][struct][1].append((field, int(fields[0]), int(fields[1]), declaration))
        elif kind == "struct":
            facts[kind][name] = (int(fields[0]), [])
        else:
            facts[kind][name] = fields
    return facts


def span(text):
    low, high = text.split("..")
    return int(low), int(high)


def compare_struct(name, old, new):
    (old_size, old_fields), (new_size, new_fields) = old, new
    for (field, *was), (other, *now) in zip(old_fields, new_fields):
        used = field.startswith("reserved") and was[:2] == now[:2] and was[2].split(" ")[0] == now[2].split(" ")[0]
        if (field, was) != (other, now) and not used:
            return [f"{name}.{field}: was {was}, found {other} {now}: fields keep their place, size and type"]
    if len(new_fields) < len(old_fields):
        return [f"{name}: {old_fields[len(new_fields)][0]} is gone"]
    if new_size != old_size and old_fields[0][0] != "struct_size":
        return [f"{name}: no struct_size, so it never grows ({old_size} to {new_size} bytes)"]
    if len(new_fields) > len(old_fields) and new_fields[len(old_fields)][1] < old_size:
        return [f"{name}.{new_fields[len(old_fields)][0]}: not after the old end, {old_size}"]
    return []


def compare_op(identity, old, new, sets):
    """Compares the fields symbol, name, kind, inputs, outputs, scalars, scalar-dtype, attributes,
    shape-rule, dtype-rule, dtypes and since.

    The minimum of a range is frozen. An operator without attributes may gain attributes. The new
    dtypes may be a superset of the old dtypes."""
    ranges = [(span(old[i]), span(new[i])) for i in (3, 4, 5)]
    grown = all(now[0] == was[0] and now[1] >= was[1] for was, now in ranges)
    same = old[:3] == new[:3] and old[6] == new[6] and old[7] in ("no", new[7]) and old[8:10] == new[8:10] and old[11:] == new[11:]
    wider = sets.get(old[10], 0) & ~sets.get(new[10], 0) == 0 if old[10] != new[10] else True
    return [] if grown and same and wider else [f"operator {identity}: was {' '.join(old)}, found {' '.join(new)}"]


def compare_range(name, old, new):
    """An attribute's minimum is frozen. Its maximum may grow when enumerators are added."""
    number = re.compile(r"-?\d+")
    grown = old[0] == new[0] and number.fullmatch(old[1]) and number.fullmatch(new[1]) and int(new[1]) >= int(old[1])
    return [] if old == new or grown else [f"{name}: was {' to '.join(old)}, found {' to '.join(new)}"]


def ungated(old, new):
    """Returns the additions to descriptors for which rules/growth.def has no row. Core would pass
    such additions to older plugins."""
    wanted = {}  # {row: the change that needs the row}
    for identity, was in old["op"].items():
        now = new["op"].get(identity, was)
        for column, kind in ((3, "inputs"), (4, "outputs"), (5, "scalars")):
            if span(now[column])[1] > span(was[column])[1]:
                wanted[f"{kind}.{was[0]}.{span(was[column])[1]}"] = f"{kind} of {was[1]}"
        if now[10] != was[10]:
            wanted[f"operator.{was[0]}"] = f"dtypes of {was[1]}"
        if now[7] != was[7] and now[7] in {row[7] for row in old["op"].values()}:
            wanted[f"operator.{was[0]}"] = f"attributes of {was[1]}"
    for name, (_, fields) in new["struct"].items():
        stem = re.fullmatch(r"bp_(\w+)_attributes", name)
        known = {field for field, *_ in old["struct"].get(name, (0, []))[1]}
        for field in (field for field, *_ in fields if stem and field != "struct_size" and not field.startswith("reserved")):
            used = name in old["struct"] or any(row[7] == stem[1] and identity in old["op"] for identity, row in new["op"].items())
            if field not in known and used:
                wanted[f"attribute.{stem[1]}.{field}"] = f"{name}.{field}"
    for name, was in old["range"].items():
        if new["range"].get(name, was) != was:
            stem, field = re.fullmatch(r"bp_(\w+)_attributes\.(\w+)", name).groups()
            wanted[f"value.{stem}.{field}.{was[1]}"] = f"values of {name}"
    for identity, (symbol, _, kind, _) in new["dtype"].items():
        if kind != "RESERVED" and old["dtype"].get(identity, ["", "", "RESERVED"])[2] == "RESERVED":
            wanted[f"dtype.{symbol}"] = f"the dtype {symbol}"
    flags = "BP_OP_FLAGS_ALL"
    if flags in old["constant"] and new["constant"].get(flags) != old["constant"][flags]:
        wanted[f"flags.{old['constant'][flags][0]}"] = "flags"
    return [f"{what}: no row in rules/growth.def keeps the value from older plugins ({row})" for row, what in wanted.items()
            if row not in new["grown"]]


def compare(golden, current):
    """Returns every change that is neither tail growth nor a new id, as sentences."""
    old, new = parse(golden), parse(current)
    faults = []
    for kind in old:
        faults += [f"{kind} {name} is gone" for name in old[kind] if name not in new[kind]]
    for kind in ("string", "function"):
        faults += [f"{kind} {name}: was {' '.join(value)}, found {' '.join(new[kind][name])}" for name, value in old[kind].items()
                   if name in new[kind] and new[kind][name] != value]
    for name, row in old["dtype"].items():
        now = new["dtype"].get(name, row)
        introduced = row[2] == "RESERVED" and now[:2] + now[3:] == row[:2] + row[3:]
        if now != row and not introduced:
            faults.append(f"dtype {name}: was {' '.join(row)}, found {' '.join(now)}")
    for name, limits in old["range"].items():
        if name in new["range"]:
            faults += compare_range(name, limits, new["range"][name])
    for name, (value,) in old["constant"].items():
        now, was = int(new["constant"].get(name, [value])[0]), int(value)
        grown = (was & now) == was if grows_by_bits.fullmatch(name) else name in may_grow and now >= was
        if now != was and not grown:
            faults.append(f"{name}: was {was}, found {now}: numbers are frozen")
    for name, struct in old["struct"].items():
        if name in new["struct"]:
            faults += compare_struct(name, struct, new["struct"][name])
    for identity, row in old["op"].items():
        if identity in new["op"]:
            sets = {name.removeprefix("BP_SET_"): int(value) for name, (value,) in new["constant"].items() if name.startswith("BP_SET_")}
            faults += compare_op(identity, row, new["op"][identity], sets)
    return faults + ungated(old, new)


def holes(lines):
    """Finds structs whose fields leave a gap. A gap is a hole or a field that the parser missed."""
    faults = []
    for name, (size, fields) in parse(lines)["struct"].items():
        end = 0
        for field, offset, bytes_, _ in fields:
            if offset != end:
                faults.append(f"{name}.{field} at {offset}, but what is before it ends at {end}")
            end = offset + bytes_
        if end != size:
            faults.append(f"{name}: fields end at {end}, the struct at {size}")
    return faults


def main(verb, golden, header, *includes):
    current = dump(header, includes)
    if verb == "dump":
        print("\n".join(current))
        return 0
    if verb == "update":
        with open(golden, "w", encoding="utf-8") as file:
            file.write("\n".join(current) + "\n")
        return 0
    faults = compare(read(golden).splitlines(), current) + holes(current)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

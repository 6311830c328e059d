#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layout golden of the C headers: layout.py dump|check|update GOLDEN INCLUDE HEADER [INCLUDE...].

What a compiler says of sizes, offsets and ids is written one fact a line. `check` accepts tail growth and new ids only;
`update` writes GOLDEN anew (before 1.0 for a deliberate break, which docs/changelog.md then names)."""
import os
import re
import subprocess
import sys
import tempfile

# Constants that may grow: versions, counts and sets. All others are frozen.
may_grow = {"BP_ABI_VERSION", "BP_ABI_VERSION_MINOR", "BP_MEMORY_KINDS", "BP_OP_LIMIT", "BP_DTYPE_LIMIT", "BP_OP_FLAGS_ALL"}
grows_by_bits = re.compile(r"BP_SET_\w+|BP_OP_FLAGS_ALL")

rows = r"""
#define BP_DTYPE_ROW(id, symbol, name, bytes, kind, core) printf("dtype %d %s %s %s %d\n", id, #symbol, name, #kind, bytes);
#define BP_DTYPE_RESERVED(id, symbol, name, bytes) printf("dtype %d %s %s RESERVED %d\n", id, #symbol, name, bytes);
#include <backplane/dtypes.def>
#undef BP_DTYPE_ROW
#define BP_OP_ROW(id, symbol, name, kind, imin, imax, omin, omax, smin, smax, sdtype, attrs, shape, rule, dtypes, i64, acc, prof, since, doc) \
  printf("op %d %s %s %s %d..%d %d..%d %d..%d %s %s %s %s %s\n", id, #symbol, name, #kind, imin, imax, omin, omax, smin, smax, #sdtype, \
         #attrs, #shape, #rule, #dtypes);
#include <backplane/ops.def>
#undef BP_OP_ROW
#define STRUCT(stem) struct bp_##stem##_attributes
#define FIELD(stem, field, declaration) \
  printf("field bp_%s_attributes.%s %zu %zu %s\n", #stem, #field, offsetof(STRUCT(stem), field), \
         sizeof(((STRUCT(stem)*)0)->field), declaration);
#define BP_ATTRS_BEGIN(stem) \
  printf("struct bp_%s_attributes %zu\n", #stem, sizeof(STRUCT(stem))); FIELD(stem, struct_size, "uint32_t struct_size")
#define BP_ATTR(stem, type, field, lo, hi, doc) FIELD(stem, field, #type " " #field)
#define BP_ATTR_ARRAY(stem, type, field, count, lo, hi, doc) FIELD(stem, field, #type " " #field "[" #count "]")
#define BP_ATTR_RESERVED(stem, field) FIELD(stem, field, "uint32_t " #field)
#define BP_ATTRS_END(stem)
#include <backplane/attributes.def>
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def headers_from(path, folder):
    """The text of a header and of the plain headers beside it that it includes, without comments."""
    text = ""
    for name in re.findall(r'#include ["<](?:backplane/)?(\w+\.h)[">]', read(path)):
        beside = os.path.join(folder, name)
        if os.path.exists(beside):
            text += headers_from(beside, folder)
    return text + re.sub(r"/\*.*?\*/", " ", read(path), flags=re.S) + "\n"


def structs_of(text):
    """-> {name: [(field, declaration)]} of every struct with a body that is not built by a macro."""
    structs = {}
    for name, body in re.findall(r"struct (bph?_\w+) \{(.*?)\n\}", text, flags=re.S):
        if "##" in body or name in structs:
            continue
        structs[name] = []
        for declaration in filter(None, (" ".join(part.split()) for part in body.split(";"))):
            slot = re.search(r"\(\*(\w+)\)", declaration)
            if slot:
                structs[name].append((slot.group(1), declaration))
            else:
                kind, *others = declaration.split(",")
                fields = [re.search(r"(\w+)(\[\w+\])*$", part.strip()).group(1) for part in [kind, *others]]
                structs[name] += [(field, declaration) for field in fields]
    return structs


def constants_of(text):
    joined = text.replace("\\\n", " ")
    numbers = re.findall(r"^#define (BPH?_[A-Z0-9_]+)[ \t]+([^\"\n]*[0-9A-Z)])", joined, flags=re.M)
    names = [name for name, value in numbers if not value.startswith(("extern", "__", "BP_EXTERN_C"))]
    for body in re.findall(r"enum \{(.*?)\}", joined, flags=re.S):
        names += re.findall(r"(?:^|,|\n)\s*(BPH?_[A-Z0-9_]+) =", body)
    strings = re.findall(r"^#define (BPH?_[A-Z0-9_]+) (\".*\")", joined, flags=re.M)
    return list(dict.fromkeys(names)), strings


def dump(include, header, includes=(), compiler="gcc", flags=()):
    """-> the facts as lines, in the headers' own order. Raises CalledProcessError if the headers do not compile."""
    path = os.path.join(include, header)
    text = headers_from(path, os.path.dirname(path))
    names, strings = constants_of(text)
    lines = [f'printf("constant {name} %lld\\n", (long long)({name}));' for name in names]
    lines += [f'printf("string {name} %s\\n", {name});' for name, _ in strings]
    for name, fields in structs_of(text).items():
        lines.append(f'printf("struct {name} %zu\\n", sizeof(struct {name}));')
        for field, declaration in fields:
            lines.append(f'printf("field {name}.{field} %zu %zu %s\\n", offsetof(struct {name}, {field}), '
                         f'sizeof(((struct {name}*)0)->{field}), "{declaration}");')
    include_rows = rows if header.endswith("plugin.h") else ""
    program = f"#include <{header}>\n#include <stdio.h>\nint main(void) {{\n" + "\n".join(lines) + include_rows + "return 0; }\n"
    with tempfile.TemporaryDirectory() as folder:
        source, binary = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program)
        paths = [f"-I{path}" for path in (include, *includes)]
        subprocess.run([compiler, "-std=c11", *flags, *paths, source, "-o", binary], check=True,
                       capture_output=True, text=True)
        return subprocess.run([binary], check=True, capture_output=True, text=True).stdout.splitlines()


def parse(lines):
    facts = {"constant": {}, "string": {}, "struct": {}, "dtype": {}, "op": {}}
    for line in lines:
        kind, name, *rest = line.split(" ")
        if kind == "field":
            struct, field = name.split(".")
            facts["struct"][struct][1].append((field, int(rest[0]), int(rest[1]), " ".join(rest[2:])))
        elif kind == "struct":
            facts[kind][name] = (int(rest[0]), [])
        else:
            facts[kind][name] = rest
    return facts


def span(text):
    low, high = text.split("..")
    return int(low), int(high)


def compare_struct(name, old, new):
    (old_size, old_fields), (new_size, new_fields) = old, new
    for (field, *was), (other, *now) in zip(old_fields, new_fields):
        if (field, was) != (other, now):
            return [f"{name}.{field}: was {was}, found {other} {now}: fields keep their place, size and type"]
    if len(new_fields) < len(old_fields):
        return [f"{name}: {old_fields[len(new_fields)][0]} is gone"]
    if new_size != old_size and old_fields[0][0] != "struct_size":
        return [f"{name}: no struct_size, so it never grows ({old_size} to {new_size} bytes)"]
    if len(new_fields) > len(old_fields) and new_fields[len(old_fields)][1] < old_size:
        return [f"{name}.{new_fields[len(old_fields)][0]}: not behind the old end, {old_size}"]
    return []


def compare_op(identity, old, new):
    """Fields: symbol name kind inputs outputs scalars scalar-dtype attributes shape-rule dtype-rule dtypes. Ranges keep their least."""
    ranges = [(span(old[i]), span(new[i])) for i in (3, 4, 5)]
    grown = all(now[0] == was[0] and now[1] >= was[1] for was, now in ranges)
    same = old[:3] == new[:3] and old[6:] == new[6:]
    return [] if grown and same else [f"operator {identity}: was {' '.join(old)}, found {' '.join(new)}"]


def compare(golden, current):
    """-> what is neither tail growth nor a new id, as sentences."""
    old, new = parse(golden), parse(current)
    faults = []
    for kind in old:
        faults += [f"{kind} {name} is gone" for name in old[kind] if name not in new[kind]]
    faults += [f"string {name}: was {value}, found {new['string'][name]}" for name, value in old["string"].items()
               if name in new["string"] and new["string"][name] != value]
    for name, row in old["dtype"].items():
        now = new["dtype"].get(name, row)
        introduced = row[2] == "RESERVED" and now[:2] + now[3:] == row[:2] + row[3:]
        if now != row and not introduced:
            faults.append(f"dtype {name}: was {' '.join(row)}, found {' '.join(now)}")
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
            faults += compare_op(identity, row, new["op"][identity])
    return faults


def holes(lines):
    """Structs whose fields do not tile them: a hole, or a field that the reader of the headers missed."""
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


def main(verb, golden, include, header, *includes):
    current = dump(include, header, includes)
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

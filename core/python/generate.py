#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates the modules of the Python package that restate the headers: generate.py LAYOUT OPERATORS VERSION FOLDER

LAYOUT is abi/layout.txt, which the test abi_layout compares with the C compiler. OPERATORS is a file with the output
of `backplane info --operators --json`. VERSION is the version of the package. The script writes these files to FOLDER:

  _structs.py    structs and functions of the host API, for ctypes
  constants.py   constants of the headers, ids of operators, and dtypes
  _operators.py  one row for each operator
  ops.py         one function for each operator
  ops.pyi        the types of these functions"""
import json
import keyword
import os
import re
import sys

licence = "# SPDX-License-Identifier: Apache-2.0\n"
scalars = {"uint8_t": "c_uint8", "uint16_t": "c_uint16", "uint32_t": "c_uint32", "uint64_t": "c_uint64", "int32_t": "c_int32",
           "int64_t": "c_int64", "float": "c_float", "double": "c_double", "bp_status": "c_int32", "char": "c_char"}

# Names of inputs that the meaning of an operator does not list before "->".
input_names = {"gather": ("x", "index"), "scatter": ("index", "source"), "select": ("condition", "a", "b"),
               "dequantize": ("x", "scale", "zero_point")}
# Names of scalars. The operator table contains only the number of scalars.
scalar_names = {"fill": ("value",), "iota": ("start", "step"), "philox": ("key", "counter_low", "counter_high"),
                "adamw": ("learning_rate", "correction1", "correction2"), "gemm": ("alpha", "beta"),
                **{name: ("key", "counter_low", "counter_high") for name in ("uniform", "normal", "dropout")}}
# Integer attributes for which 0 is one choice among several, so a caller must state them. For all other integer
# attributes, 0 means that the feature is off.
stated = {"axis", "axes", "predicate", "norm", "function"}
# Float attributes that a later ABI version added to an operator. 0 turns them off, as earlier callers expect.
unstated = {"softcap"}
# Dtype rules that permit several dtypes of the output for the same inputs.
choosing_rules = {"cast", "sum", "index", "matmul", "widen"}


# ---- Layout --------------------------------------------------------------------------------------

def read_layout(path):
    """Returns the constants, functions, structs, dtypes and operator ids that the file lists. A struct is a size and a
    list of (field, offset, bytes, declaration)."""
    constants, functions, structs, dtypes, ids = {}, {}, {}, [], {}
    with open(path, encoding="utf-8") as file:
        for line in file.read().splitlines():
            kind, name, *rest = line.split(" ")
            if kind == "constant":
                constants[name] = int(rest[0])
            elif kind == "function":
                functions[name] = " ".join(rest)
            elif kind == "struct":
                structs[name] = (int(rest[0]), [])
            elif kind == "field":
                struct, field = name.split(".")
                structs[struct][1].append((field, int(rest[0]), int(rest[1]), " ".join(rest[2:])))
            elif kind == "dtype" and rest[2] != "RESERVED":
                dtypes.append((int(name), rest[0], rest[1], rest[2], int(rest[3])))
            elif kind == "op":
                ids["BP_OP_" + rest[0]] = int(name)
    return constants, functions, structs, dtypes, ids


def base_and_stars(text):
    return re.sub(r"\b(?:const|struct)\b|\*", "", text).strip(), text.count("*")


def field_type(declaration, field, constants):
    """Returns the ctypes expression of a struct's field. Every pointer except a string is an address."""
    if "(*" in declaration:
        return "c_void_p"
    base, stars = base_and_stars(declaration.split(",")[0].rsplit(" ", 1)[0])
    if stars:
        return "c_char_p" if base == "char" else "c_void_p"
    array = re.search(rf"\b{field}\[(\w+)\]", declaration)
    if not array:
        return scalars[base]
    return f"{scalars[base]} * {constants.get(array[1], array[1])}"


def parameter_type(text, structs):
    """Returns the ctypes expression of a function's parameter. Handles are addresses."""
    if "(*" in text:
        return "c_void_p"
    base, stars = base_and_stars(text.rsplit(" ", 1)[0])
    if stars == 2:
        return "POINTER(c_void_p)"
    if stars == 1 and base == "char":
        return "c_char_p"
    if stars == 1:
        return f"POINTER({base if base in structs else scalars[base]})" if base in structs or base in scalars else "c_void_p"
    return scalars[base]


def parameters_of(declaration):
    """Returns the parameters of a C function. A parameter may be a pointer to a function."""
    text = declaration[declaration.index("(") + 1:-1]
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [part for part in parts + [text[start:].strip()] if part != "void"]


def structs_text(layout, version):
    constants, functions, structs, _, _ = layout
    bodies, rows = [], []
    named = {base for declaration in functions.values() for base in re.findall(r"\bbph?_\w+", declaration)}
    used = [name for name in structs if name.startswith("bph_") or name in named or name.endswith("_attributes")]
    for name in used:
        fields = "".join(f'        ("{field}", {field_type(declaration, field, constants)}),\n' for field, _, _, declaration in structs[name][1])
        bodies.append(f"class {name}(Structure):\n    _fields_ = [\n{fields}    ]\n")
    for name, declaration in functions.items():
        result = declaration[:declaration.index(name)].strip()
        restype = "None" if result == "void" else "c_char_p" if "*" in result else scalars[result]
        parameters = [parameter_type(part, used) for part in parameters_of(declaration)]
        rows.append(f'    "{name}": ({restype}, [{", ".join(parameters)}]),\n')
    major, oldest = constants["BP_ABI_VERSION_MAJOR"], constants["BP_ABI_VERSION_OLDEST"]
    soname = f"libbackplane.so.{oldest >> 16}.{oldest & 65535}" if major == 0 else f"libbackplane.so.{major}"
    return (licence + '"""Structs and functions of the host API. Generated from abi/layout.txt."""\n'
            "# ruff: noqa\nfrom ctypes import (POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int32, c_int64, c_uint8, c_uint16,\n"
            "                    c_uint32, c_uint64, c_void_p)\n\n"
            f'PACKAGE_VERSION = "{version}"\nSONAME = "{soname}"\n\n\n' + "\n\n".join(bodies) +
            "\n\n# {name: (result, parameters)}\nFUNCTIONS = {\n" + "".join(rows) + "}\n")


def constants_text(layout):
    constants, _, _, dtypes, ids = layout
    lines = [f"{name} = {value}\n" for name, value in {**constants, **ids}.items()]
    rows = [f'    "{name}": ({identity}, {size}, "{kind}"),\n' for identity, _, name, kind, size in dtypes]
    return (licence + '"""Constants of the headers, with the names that they have in C. Generated from abi/layout.txt."""\n\n' + "".join(lines) +
            "\n# {dtype: (id, bytes, kind)}\nDTYPES = {\n" + "".join(rows) + "}\n")


# ---- Operators -----------------------------------------------------------------------------------

def python_name(name):
    name = re.sub(r"\W+", "_", name.strip()).strip("_")
    return name + "_" if keyword.iskeyword(name) else name


def inputs_of(row):
    """Returns the names of an operator's inputs. Raises ValueError if the table has another number of inputs."""
    most = row["inputs"][1]
    names = input_names.get(row["name"])
    if names is None and "->" in row["meaning"]:
        listed = re.sub(r"(?<=\w)\[[^\[\]]*\]", "", row["meaning"].split("->")[0])  # without the dimensions
        names = tuple(python_name(part) for part in re.sub(r"[\[\]]", "", listed).split(","))
    if names is None:
        names = ((), ("x",), ("a", "b"))[most] if most < 3 else ()
    if len(names) != most or not all(name.isidentifier() for name in names) or len(set(names)) != most:
        raise ValueError(f"{row['name']}: the inputs are {names}, and the table has {most}; add a row to input_names in {__file__}")
    return names


def scalars_of(row):
    names = scalar_names.get(row["name"], ())
    if len(names) != row["scalars"][1]:
        raise ValueError(f"{row['name']}: the scalars are {names}, and the table has {row['scalars'][1]}; add a row to scalar_names in "
                         f"{__file__}")
    return names


def must_be_stated(field):
    """Returns whether the caller must pass the attribute, because 0 is not legal or does not mean `off`."""
    if field["name"] in unstated:
        return False
    return field["least"] > 0 or field["name"] in stated or field["type"] == "f32" or field["type"] == "i64" and field["count"] == 1


def default_of(field):
    return "REQUIRED" if must_be_stated(field) else "()" if field["count"] > 1 else "0"


def type_of(field):
    if field["count"] > 1:
        return "Sequence[int]"
    return "float" if field["type"] == "f32" else "int | list[int] | tuple[int, ...] | set[int]" if field["name"] == "axes" else "int"


def operators_text(rows):
    lines = []
    for row in rows:
        fields = [f'Attribute("{field["name"]}", "{field["type"]}", {field["count"]}, {field["least"]}, {field["greatest"]}, '
                  f'{must_be_stated(field)}, {json.dumps(field["meaning"])})' for field in row["attributes"]["fields"]]
        signature = row.get("signature")
        pattern = f'Signature({tuple(signature["inputs"])}, {tuple(signature["outputs"])})' if signature else "None"
        lines.append(f'{row["name"].upper()} = Operator(\n    {row["id"]}, "{row["name"]}", {inputs_of(row)}, {row["inputs"][0]}, {tuple(row["outputs"])},\n'
                     f'    {scalars_of(row)}, {row["scalar_dtype"]!r}, "{row["shape_rule"]}", "{row["dtype_rule"]}", {tuple(row["dtypes"])},\n'
                     f'    {row["attributes"]["struct"]}, ({"".join(field + ", " for field in fields)}), {pattern})\n')
    structs = sorted({row["attributes"]["struct"] for row in rows})
    return (licence + '"""The operator table. Generated from `backplane info --operators --json`."""\n# ruff: noqa\n'
            "from ._operator import Attribute, Operator, Signature\n" + f"from ._structs import {', '.join(structs)}\n\n" + "".join(lines) +
            "\nALL = (" + ", ".join(row["name"].upper() for row in rows) + ")\n")


def has_dtype(row):
    return row["dtype_rule"] in choosing_rules


def signature_of(row, stub):
    """Returns the parameters of an operator's function, with types for the stub."""
    def parameter(name, kind, default=None):
        if not stub:
            return name if default is None else f"{name}={default}"
        return f"{name}: {kind}" if default in (None, "REQUIRED") else f"{name}: {kind} = ..."

    operand = "Tensor | float" if row["shape_rule"] == "elementwise" else "Tensor"
    inputs = [parameter(name, operand if place < row["inputs"][0] else f"{operand} | None", None if place < row["inputs"][0] else "None")
              for place, name in enumerate(inputs_of(row))]
    named = [parameter(python_name(field["name"]), type_of(field), default_of(field)) for field in row["attributes"]["fields"]]
    named += [parameter(name, "float", "REQUIRED") for name in scalars_of(row)]
    named += [parameter("dtype", "Dtype | None", "None")] if has_dtype(row) else []
    several = row["outputs"][1] > 1
    named += [parameter("out", "Sequence[Tensor | None] | Tensor | None" if several else "Tensor | None", "None"),
              parameter("stream", "Stream | None", "None"), parameter("flags", "int", "0")]
    return ", ".join(inputs + ["*"] + named + ([] if stub else ["**unknown"]))


def tuple_text(parts):
    return "(" + "".join(part + ", " for part in parts).rstrip(" ") + ")" if parts else "()"


def documentation(row):
    """Returns the docstring of a function."""
    lines = [row["meaning"].rstrip(".") + ".", ""] + [
        f'{field["name"]}: {field["meaning"]} ({field["least"]} to {field["greatest"]}'
        f'{", " + str(field["count"]) + " values" if field["count"] > 1 else ""})' for field in row["attributes"]["fields"]]
    return "\n    ".join(line.replace("\\", "\\\\") for line in lines + ["Dtypes: " + ", ".join(row["dtypes"])]).replace("\n    \n", "\n\n")


def ops_text(rows):
    parts = []
    for row in rows:
        attributes = tuple_text([python_name(field["name"]) for field in row["attributes"]["fields"]])
        parts.append(f'def {python_name(row["name"])}({signature_of(row, False)}):\n    """{documentation(row)}"""\n'
                     f'    return call(_operators.{row["name"].upper()}, {tuple_text(inputs_of(row))}, {attributes}, {tuple_text(scalars_of(row))}, '
                     f'{"dtype" if has_dtype(row) else "None"}, out, stream, flags, unknown)\n')
    return (licence + '"""One function for each operator. Generated from `backplane info --operators --json`."""\n# ruff: noqa\n'
            "from . import _operators\nfrom ._call import call\nfrom ._operator import REQUIRED\n\n\n" + "\n\n".join(parts))


def stub_text(rows, dtypes):
    names = ", ".join(f'"{name}"' for _, _, name, _, _ in dtypes)
    parts = []
    for row in rows:
        least, most = row["outputs"]
        result = "Tensor" if most == 1 else "Tensor | tuple[Tensor | None, ...]" if least == 1 else "tuple[Tensor, ...]"
        parts.append(f'def {python_name(row["name"])}({signature_of(row, True)}) -> {result}: ...\n')
    return (licence + "# Types of ops.py. Generated from `backplane info --operators --json`.\n"
            "from collections.abc import Sequence\nfrom typing import Literal\n\nfrom .stream import Stream\nfrom .tensor import Tensor\n\n"
            f"Dtype = Literal[{names}]\n\n" + "".join(parts))


def main(layout_path, operators_path, version, folder):
    layout = read_layout(layout_path)
    with open(operators_path, encoding="utf-8") as file:
        rows = json.load(file)["operators"]
    files = {"_structs.py": structs_text(layout, version), "constants.py": constants_text(layout), "_operators.py": operators_text(rows),
             "ops.py": ops_text(rows), "ops.pyi": stub_text(rows, layout[3])}
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])

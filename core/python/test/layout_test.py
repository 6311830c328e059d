# SPDX-License-Identifier: Apache-2.0
"""Compares the generated modules with the C compiler and with the loaded library."""
import ctypes
import importlib.util
import os
import shutil
import unittest

import backplane as bp
from backplane import _operators, _structs, constants, dtypes, errors
from backplane._library import library
from support import root


def module(path):
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], os.path.join(root, path))
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def faults_of(facts):
    """Returns the differences between the ctypes structs and the compiler's layout."""
    faults = []
    for name, (size, fields) in facts["struct"].items():
        struct = getattr(_structs, name, None)
        if struct is None:
            continue
        if ctypes.sizeof(struct) != size or [field for field, _ in struct._fields_] != [field for field, *_ in fields]:
            faults.append(f"{name}: {ctypes.sizeof(struct)} bytes, and {size} in C")
        for field, offset, bytes_, _ in fields:
            own = getattr(struct, field, None)
            if own is None or (own.offset, own.size) != (offset, bytes_):
                faults.append(f"{name}.{field}: {own}, and {offset}, {bytes_} in C")
    return faults


@unittest.skipIf(shutil.which("gcc") is None, "gcc is missing")
class LayoutTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        layout = module("abi/test/layout.py")
        cls.facts = layout.parse(layout.dump("backplane/backplane.h", [os.path.join(root, "abi/include"), os.path.join(root, "core/include")]))

    def test_structs_have_the_layout_of_the_compiler(self):
        self.assertEqual(faults_of(self.facts), [])

    def test_another_layout_is_noticed(self):
        size, fields = self.facts["struct"]["bph_call"]
        moved = [(field, offset + (field == "inputs"), bytes_, text) for field, offset, bytes_, text in fields]
        self.assertEqual(len(faults_of({"struct": {"bph_call": (size, moved)}})), 1)
        self.assertEqual(len(faults_of({"struct": {"bph_call": (size + 8, fields)}})), 1)

    def test_every_struct_that_a_function_uses_is_there(self):
        used = {name for name in self.facts["struct"] if name.startswith("bph_") or name.endswith("_attributes")}
        self.assertEqual(used - set(vars(_structs)), set())
        self.assertGreaterEqual(len(used), 40)

    def test_constants_and_functions_are_those_of_the_headers(self):
        for name, (value,) in self.facts["constant"].items():
            self.assertEqual(getattr(constants, name), int(value), name)
        self.assertEqual(set(_structs.FUNCTIONS), set(self.facts["function"]))
        for name, (_, parameters) in _structs.FUNCTIONS.items():
            declaration = " ".join(self.facts["function"][name])
            count = 0 if "(void)" in declaration else declaration.count(",") + 1
            if "(*" not in declaration:  # the commas of a callback's parameters would count
                self.assertEqual(len(parameters), count, declaration)


class TableTest(unittest.TestCase):
    def test_operators_are_those_of_the_library(self):
        rows = []
        while True:
            info = _structs.bph_op_info(struct_size=ctypes.sizeof(_structs.bph_op_info))
            if library().bph_op_by_index(len(rows), info, None):
                break
            rows.append((info.op, info.name.decode(), info.inputs_min, info.inputs_max, (info.outputs_min, info.outputs_max), info.scalars_max,
                         info.attribute_bytes or ctypes.sizeof(_structs.bp_no_attributes), info.dtypes))
        own = [(row.id, row.name, row.inputs_min, len(row.inputs), row.outputs, len(row.scalars), ctypes.sizeof(row.struct),
                sum(1 << dtypes.ID[name] for name in row.dtypes)) for row in _operators.ALL]
        self.assertEqual(own, rows)
        self.assertGreater(len(own), 60)

    def test_dtypes_are_those_of_the_library(self):
        for name, identity in dtypes.ID.items():
            self.assertEqual(library().bph_dtype_by_name(name.encode()), identity)
            self.assertEqual(library().bph_dtype_bytes(identity), dtypes.BYTES[name])

    def test_each_status_has_an_exception(self):
        statuses = range(1, 64)
        named = [status for status in statuses if library().bph_status_name(status) != b"INTERNAL" or status == constants.BP_INTERNAL]
        self.assertEqual(sorted(errors._CLASSES), named)
        for status in named:
            name = library().bph_status_name(status).decode()
            self.assertEqual(errors.of_status(status).__name__, "".join(part.capitalize() for part in name.split("_")))
        self.assertIs(errors.of_status(12345), bp.Internal)

    def test_the_stub_has_every_function(self):
        with open(os.path.join(os.path.dirname(bp.__file__), "ops.pyi"), encoding="utf-8") as file:
            text = file.read()
        for name in bp.operators():
            self.assertRegex(text, rf"(?m)^def {name}_?\(")
        compile(text, "ops.pyi", "exec")

# SPDX-License-Identifier: Apache-2.0
"""Tests broken and hostile files. Each file must raise an exception that states the cause, and the command must
return the right exit code."""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from onnx import TensorProto, helper

from backplane_onnx import ModelError, OnnxError, Session, load
from onnx_support import FLOAT, INT64, DeviceTest, model


def relu():
    return model([helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, [2])}, {"y": (FLOAT, [2])})


class FileTest(DeviceTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, data):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_files_that_are_no_models(self):
        whole = relu().SerializeToString()
        self.message(ModelError, ["none.onnx", "No such file"], load, os.path.join(self.folder.name, "none.onnx"))
        self.message(ModelError, ["empty.onnx", "no graph"], load, self.file("empty.onnx", b""))
        self.message(ModelError, ["text.onnx", "not an ONNX model"], load, self.file("text.onnx", b"\xff\xff\xff not a model"))
        for length in range(1, len(whole)):
            with self.assertRaises(ModelError):
                load(whole[:length])

    def test_broken_graphs(self):
        cycle = model([helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Neg", ["a"], ["b"])], {"x": (FLOAT, [1])}, {"b": (FLOAT, [1])})
        self.message(ModelError, ["cycle"], load, cycle)
        missing = model([helper.make_node("Add", ["x", "nowhere"], ["y"])], {"x": (FLOAT, [1])}, {"y": (FLOAT, [1])})
        self.message(ModelError, ["nowhere"], load, missing)
        unknown = model([helper.make_node("Nonsense", ["x"], ["y"])], {"x": (FLOAT, [1])}, {"y": (FLOAT, [1])})
        self.message(ModelError, ["Nonsense"], load, unknown)
        future = relu()
        future.opset_import[0].version = 999
        self.message(ModelError, ["opset 999"], load, future)

    def test_functions_that_call_themselves(self):
        def function(name, callee):
            return helper.make_function("own", name, ["a"], ["b"], [helper.make_node(callee, ["a"], ["b"], domain="own")],
                                        [helper.make_opsetid("own", 1)])
        whole = model([helper.make_node("F", ["x"], ["y"], domain="own")], {"x": (FLOAT, [1])}, {"y": (FLOAT, [1])},
                      functions=[function("F", "G"), function("G", "F")], domains=["own"])
        self.message(ModelError, ["calls itself"], load, whole)

    def test_functions_and_loops_that_expand_without_end(self):
        def function(level):
            callee = (f"F{level - 1}", "own") if level else ("Neg", "")
            nodes = [helper.make_node(callee[0], [f"t{i}"], [f"t{i + 1}"], domain=callee[1]) for i in range(10)]
            return helper.make_function("own", f"F{level}", ["t0"], ["t10"], nodes, [helper.make_opsetid("own", 1), helper.make_opsetid("", 17)])
        whole = model([helper.make_node("F9", ["x"], ["y"], domain="own")], {"x": (FLOAT, [1])}, {"y": (FLOAT, [1])},
                      functions=[function(level) for level in range(10)], domains=["own"])
        self.message(ModelError, ["more than 200000", "limit"], Session(whole, self.device).run, {"x": np.ones(1, np.float32)})

    def test_sizes_that_overflow(self):
        tensor = helper.make_tensor("w", FLOAT, [2], [1, 2])
        del tensor.dims[:]
        tensor.dims.extend([2**40, 2**40])
        whole = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": (FLOAT, [2])}, {"y": (FLOAT, [2])})
        whole.graph.initializer.append(tensor)
        with self.assertRaises(ModelError):
            Session(whole, self.device).run({"x": np.zeros(2, np.float32)})
        for shape in ([2**40, 2**30], [2**62, 4], [-5]):
            huge = model([helper.make_node("ConstantOfShape", ["s"], ["y"])], {}, {"y": (FLOAT, [None] * len(shape))}, {"s": np.array(shape)})
            with self.assertRaises(OnnxError) as caught:
                Session(huge, self.device).run({})
            self.assertIn("ConstantOfShape", str(caught.exception))

    def test_a_million_nodes(self):
        whole = model([], {"t0": (FLOAT, [1])}, {"t1": (FLOAT, [1])})
        node = helper.make_node("Neg", ["t0"], ["t1"])
        whole.graph.node.extend([node] * 1_000_000)
        self.message(ModelError, ["more than 100000 nodes", "simplify"], load, whole)

    def test_a_long_chain_runs(self):
        nodes = [helper.make_node("Neg", [f"t{i}"], [f"t{i + 1}"]) for i in range(5000)]
        session = Session(model(nodes, {"t0": (FLOAT, [1])}, {"t5000": (FLOAT, [1])}), self.device)
        self.assertEqual(session.run({"t0": np.ones(1, np.float32)})[0].tolist(), [1])

    def test_graphs_nested_too_deeply(self):
        deep = helper.make_graph([helper.make_node("Neg", ["x"], ["r"])], "g", [], [helper.make_tensor_value_info("r", FLOAT, [1])])
        for _ in range(20):
            deep = helper.make_graph([helper.make_node("Loop", ["n", "c"], ["r"], body=deep)], "g", [], [helper.make_tensor_value_info("r", FLOAT, [1])])
        whole = model(list(deep.node), {"x": (FLOAT, [1]), "c": (TensorProto.BOOL, []), "n": (INT64, [])}, {"r": (FLOAT, [1])})
        self.message(ModelError, ["nested"], load, whole)

    def test_external_data(self):
        def external(location, **entries):
            whole = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": (FLOAT, [2])}, {"y": (FLOAT, [2])})
            tensor = whole.graph.initializer.add(name="w", data_type=FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
            for key, value in {"location": location, **entries}.items():
                tensor.external_data.add(key=key, value=str(value))
            return self.file("model.onnx", whole.SerializeToString())

        def run(path):
            return Session(path, self.device).run({"x": np.zeros(2, np.float32)})[0].tolist()

        self.file("w.bin", np.array([9, 1, 2], np.float32).tobytes())
        self.assertEqual(run(external("w.bin", offset=4, length=8)), [1, 2])
        os.symlink("/etc/passwd", os.path.join(self.folder.name, "link.bin"))
        for location in ("../w.bin", "/etc/passwd", "link.bin", "none.bin", "", os.path.join(self.folder.name, "w.bin")):
            with self.subTest(location=location):
                self.message(ModelError, ["tensor 'w'", "not a file in the model's folder"], run, external(location))
        for entries in ({"offset": 8}, {"offset": -4}, {"length": 4}, {"offset": "many"}, {"offset": 2**70}):
            with self.subTest(entries=entries):
                self.message(ModelError, ["tensor 'w'", "export the model again"], run, external("w.bin", **entries))
        with open(external("w.bin"), "rb") as file:
            self.message(ModelError, ["load the model by its path"], run, file.read())

    def test_operands_that_do_not_fit(self):
        cases = {"MatMul": helper.make_node("MatMul", ["x", "x"], ["y"]), "Conv": helper.make_node("Conv", ["x", "x"], ["y"], strides=[0, -1]),
                 "Transpose": helper.make_node("Transpose", ["x"], ["y"], perm=[5, 5]), "Concat": helper.make_node("Concat", ["x", "x"], ["y"], axis=99)}
        for op, node in cases.items():
            with self.subTest(op=op), self.assertRaises(OnnxError) as caught:
                Session(model([node], {"x": (FLOAT, [2, 3])}, {"y": (FLOAT, [None, None])}), self.device).run({"x": np.zeros((2, 3), np.float32)})
            self.assertIn(f"({op})", str(caught.exception))


class CommandTest(unittest.TestCase):
    def run_command(self, *arguments):
        return subprocess.run([sys.executable, "-m", "backplane_onnx", *arguments], capture_output=True, text=True, timeout=50)

    def test_exit_codes(self):
        with tempfile.TemporaryDirectory() as folder:
            path, broken = os.path.join(folder, "m.onnx"), os.path.join(folder, "b.onnx")
            with open(path, "wb") as file:
                file.write(relu().SerializeToString())
            with open(broken, "wb") as file:
                file.write(relu().SerializeToString()[:-3])
            good = self.run_command("run", path, "--device", "reference:0", "--explain")
            self.assertEqual((good.returncode, good.stderr), (0, ""))
            self.assertIn("node 'y' (Relu): mapping/elementwise.py", good.stdout)
            for code, part, arguments in ((3, "not an ONNX model", ("run", broken)), (6, "no plugin is named", ("run", path, "--device", "none:0")),
                                          (5, "'x'", ("run", path, "--device", "reference:0", "--shape", "x=5")), (2, "usage", ("walk", path)),
                                          (2, "no input 'z'", ("run", path, "--device", "reference:0", "--shape", "z=5"))):
                with self.subTest(arguments=arguments):
                    run = self.run_command(*arguments)
                    self.assertEqual(run.returncode, code, run.stderr)
                    self.assertIn(part, run.stderr)
                    self.assertNotIn("Traceback", run.stderr)

# SPDX-License-Identifier: Apache-2.0
"""Tests sessions: repeated runs, shapes, values that the host reads, memory, folding, control flow, inputs,
fork and the interface of onnx.backend."""
import os
import unittest
import unittest.mock

import numpy as np
from onnx import TensorProto, helper

import backplane as bp
from backplane_onnx import InputError, Session, UnsupportedNode, backend
from backplane_onnx.explain import explain
from onnx_support import BOOL, FLOAT, INT64, DeviceTest, model


def chain(shape=("n", 2)):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    constants = {"w": np.array([[1, -1], [2, -2]], np.float32), "b": np.array([1, 1], np.float32)}
    return model(nodes, {"x": (FLOAT, list(shape))}, {"y": (FLOAT, list(shape))}, constants)


class SessionTest(DeviceTest):
    def test_a_run_replays_and_a_new_shape_makes_a_new_program(self):
        session = Session(chain(), self.device)
        x = np.array([[1, 1]], np.float32)
        self.assertEqual(session.run({"x": x})[0].tolist(), [[4, 0]])
        first = session.program({"x": x})
        self.assertEqual(session.run({"x": -x})[0].tolist(), [[0, 4]])
        self.assertIs(session.program({"x": x}), first)
        self.assertIsNot(session.program({"x": np.ones((3, 2), np.float32)}), first)

    def test_a_replay_makes_no_eager_call_and_allocates_nothing(self):
        session, x = Session(chain(), self.device), {"x": np.ones((1, 2), np.float32)}
        session.run(x)
        calls = []
        original, bp.run = bp.run, lambda *arguments, **named: calls.append(arguments)
        try:
            before = self.device.stats()["bytes_in_use"]
            session.run(x)
            self.assertEqual((calls, self.device.stats()["bytes_in_use"]), ([], before))
        finally:
            bp.run = original

    def test_constants_are_folded_once_on_the_device(self):
        nodes = [helper.make_node("Transpose", ["w"], ["t"]), helper.make_node("Exp", ["t"], ["e"]), helper.make_node("MatMul", ["x", "e"], ["y"])]
        session = Session(model(nodes, {"x": (FLOAT, [1, 2])}, {"y": (FLOAT, [1, 3])}, {"w": np.zeros((3, 2), np.float32)}), self.device)
        program = session.program({"x": np.ones((1, 2), np.float32)})
        self.assertEqual([step.op for step in program.once], ["exp"])
        self.assertEqual([step.op for step in program.steps], ["matmul"])
        self.assertEqual(session.run({"x": np.ones((1, 2), np.float32)})[0].tolist(), [[2, 2, 2]])

    def test_a_batch_norm_and_a_relu_become_part_of_the_convolution(self):
        random = np.random.default_rng(1)
        constants = {name: random.random(3).astype(np.float32) + 0.5 for name in ("g", "b", "m", "v")}
        constants["w"] = random.standard_normal((3, 2, 1, 1)).astype(np.float32)
        x = random.standard_normal((1, 2, 2, 2)).astype(np.float32)
        expected = np.einsum("oc,nchw->nohw", constants["w"][:, :, 0, 0], x)
        g, b, m, v = (constants[name].reshape(1, 3, 1, 1) for name in "gbmv")
        expected = np.maximum((expected - m) / np.sqrt(v + 1e-5) * g + b, 0)
        nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("BatchNormalization", ["c", "g", "b", "m", "v"], ["n"]),
                 helper.make_node("Relu", ["n"], ["y"])]
        for outputs, calls in ((["y"], ["conv"]), (["y", "n"], ["conv", "max"]), (["y", "c"], ["conv", "batch_norm", "max"])):
            with self.subTest(outputs=outputs):
                whole = model(nodes, {"x": (FLOAT, [1, 2, 2, 2])}, {name: (FLOAT, [1, 3, 2, 2]) for name in outputs}, constants)
                session = Session(whole, self.device)
                self.assertEqual([step.op for step in session.program({"x": x}).steps], calls)
                np.testing.assert_allclose(session.run({"x": x})[0], expected, rtol=1e-4, atol=1e-5)

    def test_tensors_share_memory(self):
        nodes = [helper.make_node("Exp", [f"t{i}"], [f"t{i + 1}"]) for i in range(20)]
        session = Session(model(nodes, {"t0": (FLOAT, [1000])}, {"t20": (FLOAT, [1000])}), self.device)
        program = session.program({"t0": np.zeros(1000, np.float32)})
        self.assertLess(program.device_bytes * 5, program.unplanned_bytes)

    def test_the_host_reads_inputs_that_determine_shapes(self):
        nodes = [helper.make_node("Mul", ["shape", "two"], ["twice"]), helper.make_node("Div", ["twice", "two"], ["same"]),
                 helper.make_node("Reshape", ["x", "same"], ["y"])]
        session = Session(model(nodes, {"x": (FLOAT, [6]), "shape": (INT64, [2])}, {"y": (FLOAT, [None, None])}, {"two": np.array(2)}), self.device)
        for shape in ((2, 3), (3, 2)):
            self.assertEqual(session.run({"x": np.zeros(6, np.float32), "shape": np.array(shape)})[0].shape, shape)
        self.assertEqual(session.host_inputs, {"shape"})
        text = explain(session, session.program({"x": np.zeros(6, np.float32), "shape": np.array([2, 3])}))
        for part in ("folded on the host", "the host reads the inputs shape", "node 'y' (Reshape): mapping/copy.py"):
            self.assertIn(part, text)

    def test_a_shape_that_depends_on_data_of_the_device_is_refused(self):
        nodes = [helper.make_node("Sin", ["x"], ["s"]), helper.make_node("Cast", ["s"], ["i"], to=INT64), helper.make_node("ConstantOfShape", ["i"], ["y"])]
        session = Session(model(nodes, {"x": (FLOAT, [1])}, {"y": (FLOAT, [None])}), self.device)
        self.message(UnsupportedNode, ["node 'y' (ConstantOfShape)", "'i'", "which the device computes", "add a mapping"], session.run,
                     {"x": np.zeros(1, np.float32)})

    def test_branches_and_loops(self):
        def branch(op):
            return helper.make_graph([helper.make_node(op, ["x"], ["r"])], "branch", [], [helper.make_tensor_value_info("r", FLOAT, [2])])
        node = helper.make_node("If", ["c"], ["y"], then_branch=branch("Neg"), else_branch=branch("Exp"))
        session = Session(model([node], {"c": (BOOL, []), "x": (FLOAT, [2])}, {"y": (FLOAT, [2])}), self.device)
        x = np.zeros(2, np.float32)
        self.assertEqual([session.run({"c": np.array(c), "x": x + 1})[0][0] < 0 for c in (True, False)], [True, False])

    def test_a_function_of_the_model(self):
        body = helper.make_function("own", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["t"]), helper.make_node("Neg", ["t"], ["b"])],
                                    [helper.make_opsetid("", 17)])
        whole = model([helper.make_node("Twice", ["x"], ["y"], domain="own")], {"x": (FLOAT, [1])}, {"y": (FLOAT, [1])}, functions=[body], domains=["own"])
        self.assertEqual(Session(whole, self.device).run({"x": np.array([3], np.float32)})[0].tolist(), [-6])

    def test_the_opset_decides_the_form(self):
        x = np.array([[0, 1], [2, 3]], np.float32)
        for opset in range(7, 24):
            with self.subTest(opset=opset):
                constants = {}
                if opset < 13:
                    node = helper.make_node("ReduceSum", ["x"], ["y"], axes=[0], keepdims=0)
                else:
                    node, constants = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0), {"axes": np.array([0])}
                session = Session(model([node], {"x": (FLOAT, [2, 2])}, {"y": (FLOAT, [2])}, constants, opset), self.device)
                self.assertEqual(session.run({"x": x})[0].tolist(), [2, 4])

    def test_wrong_inputs_name_the_tensor_and_the_remedy(self):
        session, x = Session(chain(), self.device), np.ones((1, 2), np.float32)
        self.message(InputError, ["no input 'x'", "the inputs are x"], session.run, {})
        self.message(InputError, ["unknown input 'z'"], session.run, {"x": x, "z": x})
        self.message(InputError, ["'x' is float64", "float32", "convert"], session.run, {"x": x.astype(np.float64)})
        self.message(InputError, ["'x' has the shape (1, 3)", "(n, 2)"], session.run, {"x": np.ones((1, 3), np.float32)})
        self.message(InputError, ["no output 'q'", "y"], session.run, {"x": x}, ["q"])
        self.assertEqual(session.run({"x": x})[0].tolist(), [[4, 0]])

    def test_a_type_that_backplane_lacks_is_named(self):
        whole = model([helper.make_node("Identity", ["x"], ["y"])], {"x": (TensorProto.STRING, [1])}, {"y": (TensorProto.STRING, [1])})
        self.message(InputError, ["'x'", "STRING"], Session(whole, self.device).run, {"x": np.array(["a"], object)})

    def test_an_unknown_operator_is_named(self):
        whole = model([helper.make_node("NonMaxSuppression", ["x", "s"], ["y"], name="nms")], {"x": (FLOAT, [1, 2, 4]), "s": (FLOAT, [1, 1, 2])},
                      {"y": (INT64, [None, 3])})
        with self.assertRaises(UnsupportedNode) as caught:
            Session(whole, self.device).run({"x": np.ones((1, 2, 4), np.float32), "s": np.ones((1, 1, 2), np.float32)})
        self.assertEqual(caught.exception.operator, "NonMaxSuppression")
        self.assertIn("node 'nms' (NonMaxSuppression)", str(caught.exception))

    def test_after_a_fork_the_child_gets_an_exception(self):
        session, x = Session(chain(), self.device), np.ones((1, 2), np.float32)
        session.run({"x": x})
        child = os.fork()
        if child == 0:
            try:
                session.run({"x": x})
                os._exit(1)
            except bp.Unavailable:
                os._exit(0)
            finally:
                os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(session.run({"x": x})[0].tolist(), [[4, 0]])

    def test_numpy_may_make_shared_arrays_read_only(self):
        def read_only(tensor, shared=np.from_dlpack):
            array = shared(tensor)
            array.flags.writeable = False
            return array

        x = np.array([[4, -1]], np.float32)
        with unittest.mock.patch("numpy.from_dlpack", read_only):
            session = Session(chain(), self.device)
            results = [session.run({"x": factor * x})[0].tolist() for factor in (1, 2)]
        session = Session(chain(), self.device)
        self.assertEqual(results, [session.run({"x": factor * x})[0].tolist() for factor in (1, 2)])

    def test_the_backend_of_onnx(self):
        name = self.device.name
        self.assertTrue(backend.supports_device(name))
        self.assertFalse(backend.supports_device("none:0"))
        outputs = backend.prepare(chain(), name).run([np.ones((1, 2), np.float32)])
        self.assertEqual((outputs.y.tolist(), outputs[0].tolist()), ([[4, 0]], [[4, 0]]))
        self.assertEqual(backend.run_node(helper.make_node("Neg", ["x"], ["y"]), [np.ones(2, np.float32)], name)[0].tolist(), [-1, -1])


class MemoryTest(unittest.TestCase):
    def test_storages_that_live_together_do_not_overlap(self):
        from backplane_onnx import memory
        from backplane_onnx.builder import Step
        from backplane_onnx.views import Storage, View
        random = np.random.default_rng(3)
        storages = [Storage(int(random.integers(1, 5000)), "computed") for _ in range(60)]
        views = [View(each, "u8", (each.bytes,)) for each in storages]
        steps = [Step("gather", [views[int(random.integers(0, place))] for _ in range(3)], [views[place]], {}, "") for place in range(1, 60)]
        size = memory.place(steps, [storages[0]], [storages[-1]])
        first = {each: place - 1 for place, each in enumerate(storages)}
        last = dict(first)
        for index, step in enumerate(steps):
            for view in step.inputs:
                last[view.storage] = index
        last[storages[-1]] = len(steps)
        for a in range(60):
            self.assertLessEqual(storages[a].offset + storages[a].bytes, size)
            for b in range(a):
                one, other = storages[a], storages[b]
                if first[one] <= last[other] and first[other] <= last[one]:
                    self.assertTrue(one.offset + one.bytes <= other.offset or other.offset + other.bytes <= one.offset)
        self.assertLess(size, sum(each.bytes for each in storages))

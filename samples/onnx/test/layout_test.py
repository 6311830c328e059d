# SPDX-License-Identifier: Apache-2.0
"""Tests the order of images in memory, and elementwise calls that overwrite an input."""
import unittest

import numpy as np
from onnx import helper

import backplane as bp
from backplane_onnx import Session, layout
from backplane_onnx.views import Storage, View
from onnx_support import FLOAT, devices, model

RANDOM = np.random.default_rng(5)


def weight(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def session(device, nodes, outputs):
    """Makes a session for a model whose input has the shape [2, 16, 12, 10]. A node is (operator, inputs,
    outputs, attributes)."""
    graph = [helper.make_node(op, inputs.split(), made.split(), **attributes) for op, inputs, made, attributes in nodes]
    used = {name: array for name, array in CONSTANTS.items() if any(name in node.input for node in graph)}
    return Session(model(graph, {"x": (FLOAT, [2, 16, 12, 10])}, {name: (FLOAT, [None] * rank) for name, rank in outputs.items()}, used, 13), device)


CONSTANTS = {"w": weight(32, 16, 3, 3), "v": weight(16, 32, 3, 3), "half": np.float32(0.5)}
CONV = {"pads": [1] * 4}
CHAIN = [("Conv", "x w", "a", CONV), ("Relu", "a", "b", {}), ("MaxPool", "b", "c", {"kernel_shape": [3, 3], "strides": [2, 2]}),
         ("Conv", "c v", "d", CONV)]
FEEDS = {"x": weight(2, 16, 12, 10)}


def images(program, op):
    return [(step.inputs[0].strides, step.outputs[0].strides) for step in program.steps if step.op == op]


class LayoutTest(unittest.TestCase):
    def outputs_agree(self, nodes, outputs, staged=False):
        """Checks that the outputs on onednn equal those on the reference device, and returns the program on
        onednn. Unless `staged` is set, also checks that core copies no operand."""
        with bp.open("reference:0") as first, bp.open("onednn:0") as second:
            plain, fast = session(first, nodes, outputs), session(second, nodes, outputs)
            for _ in range(2):
                for one, other in zip(plain.run(FEEDS), fast.run(FEEDS)):
                    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
            self.assertEqual(plain.program(FEEDS).channels_last, [])
            program = fast.program(FEEDS)
            if not staged:
                for step in program.steps:
                    inputs, outputs = program._operands(step)
                    found = bp.supports(step.op, *inputs, out=outputs, stream=program.stream, **step.parameters)
                    self.assertEqual((found["path"], found["staged_inputs"], found["staged_outputs"]), ("native", (), ()), step.op)
            return program

    def test_a_chain_of_convolutions_keeps_channels_last(self):
        program = self.outputs_agree(CHAIN, {"d": 4})
        first, second = images(program, "conv")
        self.assertEqual((first[0][1], first[1][1]), (120, 1))  # the program's input is dense
        self.assertEqual((second[0][1], second[1][1]), (1, 20))  # the program's output is dense
        self.assertEqual([strides[1] for strides in images(program, "max_pool")[0]], [1, 1])

    def test_an_image_that_is_read_as_a_matrix_stays_dense(self):
        nodes = CHAIN[:2] + [("MaxPool", "b", "c", {"kernel_shape": [3, 3], "strides": [2, 2]}), ("Flatten", "c", "y", {})]
        program = self.outputs_agree(nodes, {"y": 2})
        self.assertEqual([strides[1] for strides in images(program, "max_pool")[0]], [1, 20])

    def test_parts_of_images_keep_their_elements(self):
        nodes = [("Conv", "x w", "a", CONV), ("Split", "a", "b c", {"axis": 1}), ("Mul", "b half", "m", {}), ("Concat", "m c", "e", {"axis": 1}),
                 ("Transpose", "e", "t", {"perm": [0, 1, 3, 2]}), ("Relu", "t", "r", {}), ("Transpose", "r", "u", {"perm": [0, 1, 3, 2]}),
                 ("Conv", "u v", "d", CONV)]
        self.assertGreater(len(self.outputs_agree(nodes, {"d": 4}, staged=True).channels_last), 1)

    def test_elementwise_calls_overwrite_inputs_that_nothing_else_reads(self):
        nodes = CHAIN[:1] + [("Sigmoid", "a", "b", {}), ("Exp", "b", "c", {}), ("Add", "c b", "e", {}), ("Conv", "e v", "d", CONV)]
        program = self.outputs_agree(nodes, {"d": 4})
        place = {step.op: (step.inputs[0].storage.offset, step.outputs[0].storage.offset) for step in program.steps}
        self.assertEqual(place["sigmoid"][0], place["sigmoid"][1])
        self.assertNotEqual(place["exp"][0], place["exp"][1])  # add still reads the input of exp
        self.assertEqual(place["add"][0], place["add"][1])

    def test_strides_of_parts(self):
        shape = (2, 3, 4, 5)
        dense = View(Storage(480, "computed"), "f32", shape)
        memory = np.arange(120).reshape(shape)
        moved = np.ascontiguousarray(memory.transpose(0, 2, 3, 1)).ravel()
        part = dense.slice(1, 1, 2).slice(3, 2, 3).permute((0, 3, 1, 2)).select(0, 1)
        strides, offset = layout._strides(part, shape)
        expected = memory[1, 1:3, :, 2:].transpose(2, 0, 1)
        self.assertEqual(part.shape, expected.shape)
        self.assertEqual([moved[offset + sum(i * s for i, s in zip(index, strides))] for index in np.ndindex(*part.shape)], list(expected.ravel()))
        for joined in (View(dense.storage, "f32", (2, 60)), dense.slice(3, 0, 2, 2), dense.flip(1), View(dense.storage, "i8", (2, 240))):
            self.assertIsNone(layout._strides(joined, shape))

# SPDX-License-Identifier: Apache-2.0
"""Tests that groups of calls become one call, and that the results remain the same."""
import numpy as np
from onnx import helper, shape_inference

import backplane as bp
from backplane_onnx import Session
from onnx_support import FLOAT, DeviceTest, model

RANDOM = np.random.default_rng(3)


def random(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], **attributes)


GELU_CONSTANTS = {name: np.float32(value) for name, value in
                  {"root": 2**0.5, "inverse": 0.5**0.5, "one": 1, "half": 0.5, "two": 2, "three": 3, "cubic": 0.044715, "slope": (2 / np.pi)**0.5}.items()}
ERF = [node("Div", "x root", "a"), node("Erf", "a", "b"), node("Add", "b one", "c")]
ERF_OF_PRODUCT = [node("Mul", "inverse x", "a"), node("Erf", "a", "b"), node("Add", "one b", "c")]
TANH = [node("Pow", "x three", "p"), node("Mul", "p cubic", "q"), node("Add", "x q", "r"), node("Mul", "slope r", "a"), node("Tanh", "a", "b"),
        node("Add", "b one", "c")]
LAST = {"half at the end": [node("Mul", "x c", "d"), node("Mul", "d half", "y")], "half at x": [node("Mul", "half x", "d"), node("Mul", "d c", "y")],
        "quotient": [node("Div", "x two", "d"), node("Mul", "c d", "y")]}


def model_of(nodes, inputs, outputs, constants):
    """Makes a model. ONNX infers the shapes of its outputs."""
    inferred = shape_inference.infer_shapes(model(nodes, inputs, {nodes[-1].output[0]: (FLOAT, None)}, constants)).graph
    ranks = {each.name: len(each.type.tensor_type.shape.dim) for each in [*inferred.value_info, *inferred.output]}
    return model(nodes, inputs, {name: (FLOAT, [None] * ranks[name]) for name in outputs}, constants)


class FusionTest(DeviceTest):
    def session(self, nodes, inputs, outputs, constants):
        return Session(model_of(nodes, {name: (FLOAT, list(value.shape)) for name, value in inputs.items()}, outputs, constants), self.device)

    def calls(self, nodes, inputs, constants):
        """Returns the operators of the calls of a model. Its only output is that of the last node."""
        return [step.op for step in self.session(nodes, inputs, [nodes[-1].output[0]], constants).program(inputs).steps]

    def run_both(self, nodes, inputs, output, constants, calls):
        """Checks the calls of a model. Compares its output with the output of a second model, in which nothing
        is fused because each node's result is an output."""
        names = [each.output[0] for each in nodes]
        fused, plain = (self.session(nodes, inputs, outputs, constants) for outputs in ([output], names))
        self.assertEqual([step.op for step in fused.program(inputs).steps], calls)
        self.assertGreater(len(plain.program(inputs).steps), len(calls))
        np.testing.assert_allclose(fused.run(inputs)[0], plain.run(inputs)[names.index(output)], rtol=1e-5, atol=1e-5)

    def test_gelu(self):
        for function in (ERF, ERF_OF_PRODUCT, TANH):
            for name, last in LAST.items():
                with self.subTest(function=function[-2].op_type, nodes=len(function), last=name):
                    self.run_both(function + last, {"x": random(3, 5)}, "y", GELU_CONSTANTS, ["gelu"])

    def test_what_is_almost_a_gelu_stays(self):
        for name, value in (("half", 0.25), ("one", 2), ("root", 1.5)):
            with self.subTest(constant=name):
                constants = {**GELU_CONSTANTS, name: np.float32(value)}
                self.assertNotIn("gelu", self.calls(ERF + LAST["half at the end"], {"x": random(4)}, constants))

    def test_a_product_a_bias_and_an_activation_become_a_linear_layer(self):
        constants = {**GELU_CONSTANTS, "w": random(5, 7), "bias": random(7)}
        start = [node("MatMul", "v w", "m"), node("Add", "bias m", "x")]
        for shape in ((4, 5), (2, 3, 5)):
            for name, last in {"none": [], "relu": [node("Relu", "x", "y")], "gelu": ERF + LAST["half at the end"]}.items():
                with self.subTest(shape=shape, activation=name):
                    self.run_both(start + last, {"v": random(*shape)}, "y" if last else "x", constants, ["linear"])

    def test_a_product_of_two_inputs_stays(self):
        nodes = [node("MatMul", "v w", "m"), node("Add", "m bias", "y")]
        self.assertEqual(self.calls(nodes, {"v": random(2, 3), "w": random(3, 4)}, {"bias": random(4)}), ["matmul", "add"])

    def test_attention(self):
        inputs = {"q": random(2, 3, 4, 8), "k": random(2, 3, 6, 8), "v": random(2, 3, 6, 5)}
        constants = {"root": np.float32(8**0.5), "factor": np.float32(0.3)}
        mask = np.where(np.arange(6) < 4, 0, -1e4).astype(np.float32).reshape(1, 1, 1, 6)
        begin = [node("Transpose", "k", "t", perm=[0, 1, 3, 2]), node("MatMul", "q t", "s")]
        end = [node("MatMul", "p v", "y")]
        for name, middle, more in (("plain", [node("Softmax", "s", "p", axis=-1)], {}),
                                   ("quotient", [node("Div", "s root", "a"), node("Softmax", "a", "p", axis=3)], {}),
                                   ("mask", [node("Mul", "factor s", "a"), node("Add", "m a", "b"), node("Softmax", "b", "p", axis=-1)], {"m": mask})):
            with self.subTest(scores=name):
                self.run_both(begin + middle + end, {**inputs, **more}, "y", constants, ["attention"])

    def test_a_softmax_over_queries_stays(self):
        nodes = [node("MatMul", "q t", "s"), node("Softmax", "s", "p", axis=2), node("MatMul", "p v", "y")]
        inputs = {"q": random(1, 2, 4, 8), "t": random(1, 2, 8, 6), "v": random(1, 2, 6, 5)}
        self.assertEqual(self.calls(nodes, inputs, {}), ["matmul", "softmax", "matmul"])

    def test_a_product_with_a_number_becomes_part_of_the_convolution(self):
        nodes = [node("Conv", "x w bias", "c"), node("Mul", "c half", "y")]
        self.run_both(nodes, {"x": random(1, 2, 4, 4)}, "y", {"w": random(3, 2, 1, 1), "bias": random(3), "half": np.float32(0.5)}, ["conv"])


class PackTest(DeviceTest):
    def test_weights_are_packed_once_for_all_programs(self):
        nodes = [node("MatMul", "x w", "m"), node("Add", "m bias", "y")]
        constants = {"w": random(64, 96), "bias": random(96)}
        session = Session(model_of(nodes, {"x": (FLOAT, ["n", 64])}, ["y"], constants), self.device)
        sizes = []
        for rows in (16, 32, 48):
            x = random(rows, 64)
            np.testing.assert_allclose(session.run({"x": x})[0], x @ constants["w"] + constants["bias"], rtol=1e-4, atol=1e-4)
            sizes.append(session.constant_bytes)
        program = session.program({"x": x})
        wants = bp.pack_bytes("linear", 1, self.device.empty((48, 64)), self.device.empty((64, 96)).transpose(), out=self.device.empty((48, 96)), activation=0,
                              precision=0)
        self.assertEqual(program.packed(program.steps[0]), wants is not None)
        if wants is not None:
            self.assertEqual(sizes, [wants + 96 * 4] * 3)

# SPDX-License-Identifier: Apache-2.0
"""Tests that errors are exceptions whose text names the operator, the cause and the remedy."""
import backplane as bp
from backplane import ops
from support import DeviceTest, needs_numpy, numpy as np


class OperatorErrorTest(DeviceTest):
    def setUp(self):
        self.f = self.device.tensor([[1., 2.], [3., 4.]])
        self.i = self.device.tensor([[1, 2], [3, 4]])

    def test_wrong_dtype(self):
        self.message(bp.Unsupported, ["add", "input 1", "i32", "may be", "f32"], ops.add, self.f, self.i)
        self.message(bp.Unsupported, ["exp", "i32", "f32"], ops.exp, self.i)
        self.message(bp.InvalidArgument, ["cast", "f31", "use one of"], ops.cast, self.f, dtype="f31")
        self.message(bp.InvalidArgument, ["reduce_sum", "dtype=", "out="], ops.reduce_sum, self.device.tensor([True]), axes=[0])

    def test_wrong_shape(self):
        three = self.device.tensor([1., 2., 3.])
        self.message(bp.InvalidArgument, ["add", "(2, 2)", "(3,)", "equal or 1"], ops.add, self.f, three)
        self.message(bp.InvalidArgument, ["matmul"], ops.matmul, self.f, self.device.tensor([[1., 2.]]))
        self.message(bp.InvalidArgument, ["matmul", "rank 2"], ops.matmul, self.f, three)
        self.message(bp.InvalidArgument, ["add", "broadcast", "(3,)"], ops.add, self.f, self.f, out=three)

    def test_attributes(self):
        self.message(bp.InvalidArgument, ["softmax", "no parameter axs", "did you mean axis"], ops.softmax, self.f, axs=1)
        self.message(bp.InvalidArgument, ["gelu", "no parameter width", "use one of approximation"], ops.gelu, self.f, width=1)
        self.message(bp.InvalidArgument, ["softmax", "axis is missing", "axis=", "0 to 7"], ops.softmax, self.f)
        self.message(bp.InvalidArgument, ["softmax", "axis is -1", "0 to 7"], ops.softmax, self.f, axis=-1)
        self.message(bp.InvalidArgument, ["softmax", "axis is '1'"], ops.softmax, self.f, axis="1")
        self.message(bp.InvalidArgument, ["compare", "predicate is missing", "BP_COMPARE"], ops.compare, self.f, self.f)
        self.message(bp.InvalidArgument, ["max_pool", "kernel has 4 values", "3"], ops.max_pool, self.f, spatial_rank=1, kernel=[1] * 4, out=self.f)
        self.message(bp.InvalidArgument, ["argmax", "axis"], ops.argmax, self.f, axis=5)

    def test_scalars(self):
        self.message(bp.InvalidArgument, ["fill", "value is missing", "value="], ops.fill, out=self.f)
        self.message(bp.InvalidArgument, ["fill", "value is 1.5", "i32", "integer"], ops.fill, value=1.5, out=self.i)
        self.message(bp.InvalidArgument, ["fill", "value is of type str"], ops.fill, value="1", out=self.f)
        self.message(bp.InvalidArgument, ["add", "b is 2.5", "i32", "cast"], ops.add, self.i, 2.5)

    def test_operands(self):
        self.message(bp.InvalidArgument, ["add", "b is of type str", "device.tensor"], ops.add, self.f, "x")
        self.message(bp.InvalidArgument, ["matmul", "b is of type float", "pass a Tensor"], ops.matmul, self.f, 1.)
        self.message(bp.InvalidArgument, ["add", "out is [3]"], lambda: ops.add(self.f, self.f, out=[3]))
        self.message(bp.InvalidArgument, ["fill", "out="], ops.fill, value=1)
        self.message(bp.InvalidArgument, ["max_pool", "output 0", "out=", "device.empty"], ops.max_pool, self.f, spatial_rank=1)
        self.message(bp.InvalidArgument, ["scatter", "out="], ops.scatter, self.i, self.f, axis=0)
        self.message(bp.InvalidArgument, ["adamw", "output 0", "out="], ops.adamw, self.f, beta1=0, beta2=0, epsilon=0, weight_decay=0,
                     learning_rate=0, correction1=1, correction2=1)
        self.message(TypeError, ["add", "'b'"], ops.add, self.f)

    def test_names(self):
        self.message(bp.InvalidArgument, ["'sofmax'", "softmax"], bp.run, "sofmax", self.f)
        self.message(bp.InvalidArgument, ["mul", "3 inputs", "a, b"], bp.run, "mul", self.f, self.f, self.f)

    def test_a_foreign_device(self):
        with bp.open("reference:0") as other:
            b = other.tensor([[1., 2.], [3., 4.]])
            self.message(bp.InvalidArgument, ["add", "reference:0", "one open device"], ops.add, self.f, b)
            with self.assertRaises(bp.InvalidArgument) as caught:
                ops.add(self.f, b, stream=self.device.stream)
            self.assertIn("one open device", str(caught.exception))

    def test_an_exception_has_the_status_and_the_operator(self):
        with self.assertRaises(bp.Unsupported) as caught:
            ops.exp(self.i)
        self.assertEqual((caught.exception.status, caught.exception.op), (bp.constants.BP_UNSUPPORTED, bp.constants.BP_OP_EXP))
        self.assertIsInstance(caught.exception, NotImplementedError)
        self.assertIsInstance(bp.InvalidArgument("x"), ValueError)


class ObjectErrorTest(DeviceTest):
    def test_a_missing_plugin(self):
        self.message(bp.Unavailable, ["no_such_plugin", "reference"], bp.open, "no_such_plugin:0")
        self.message(bp.Unavailable, ["reference", "7"], bp.open, "reference:7")
        self.message(bp.Unavailable, ["/no", "correct the path"], bp.open, "/no/such/library.so")
        self.message(bp.InvalidArgument, ["fallback", "error, warn, allow"], bp.open, "reference:0", fallback="maybe")
        self.message(bp.InvalidArgument, ["no_such_layer"], bp.Registry, layers="no_such_layer")

    def test_a_released_handle(self):
        device = bp.open("reference:0")
        tensor = device.tensor([1.])
        tensor.buffer.close()
        self.assertTrue(tensor.buffer.closed)
        tensor.buffer.close()  # a second call does nothing
        self.message(bp.InvalidArgument, ["neg", "released"], ops.neg, tensor)
        self.message(bp.InvalidArgument, ["released", "close()"], tensor.tolist)
        device.close()
        self.message(bp.InvalidArgument, ["Device", "released"], device.empty, (2,))
        self.message(bp.InvalidArgument, ["released"], device.stats)

    def test_data_that_no_dtype_fits(self):
        tensor = self.device.tensor
        self.message(bp.InvalidArgument, ["does not fit u8"], tensor, [300], "u8")
        self.message(bp.InvalidArgument, ["does not fit i32", "dtype"], tensor, [2**40])
        self.message(bp.InvalidArgument, ["different lengths"], tensor, [[1], [1, 2]])
        self.message(bp.InvalidArgument, ["dict"], tensor, {})
        self.message(bp.InvalidArgument, ["memory kind 'gpu'", "device, host, shared"], tensor, [1.], kind="gpu")
        self.message(bp.InvalidArgument, ["negative extent"], self.device.empty, (-1,))
        self.message(bp.InvalidArgument, ["rank 9"], self.device.empty, (1,) * 9)
        self.message(bp.OutOfMemory, ["bytes"], self.device.empty, (1 << 44,))

    @needs_numpy
    def test_arrays(self):
        tensor = self.device.tensor
        self.message(bp.InvalidArgument, ["array is f64", "dtype is f32", "ops.cast"], tensor, np.zeros(2), "f32")
        self.message(bp.InvalidArgument, ["no dtype", "convert"], tensor, np.zeros(2, "c8"))
        self.message(bp.InvalidArgument, ["no dtype"], tensor, np.zeros(2, "u2"))
        self.message(bp.InvalidArgument, ["copy_from", "(2,)", "(3,)"], tensor([1., 2., 3.]).copy_from, np.zeros(2, "f4"))
        self.message(bp.Unsupported, ["bf16", "ops.cast"], tensor([1.], "bf16").numpy)


class ReviveTest(DeviceTest):
    def test_a_failed_stream_works_again(self):
        with bp.Registry(layers="fault", faults="fail plan_execute 2 EXECUTION_FAILED") as registry, registry.open("reference:0") as device:
            x = device.tensor([1., 2.])
            self.assertEqual(ops.add(x, x).tolist(), [2, 4])
            for _ in range(2):
                self.assertRaises(bp.ExecutionFailed, lambda: ops.add(x, x).tolist())
            device.stream.revive()
            self.assertEqual(ops.add(x, x).tolist(), [2, 4])
            device.stream.revive()
            self.assertEqual(ops.add(x, x).tolist(), [2, 4])

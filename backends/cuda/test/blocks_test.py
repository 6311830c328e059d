# SPDX-License-Identifier: Apache-2.0
"""Tests products and convolutions that consist of several blocks and splits, with operands of each layout. The suite's
cases have at most a few blocks. core/python/test/run.py runs this file. TEST_PLUGIN is the path of the plugin."""
import itertools
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import backplane as bp
import certified

try:
    import numpy
except ImportError:
    numpy = None

certified.skip_without_device(os.environ["BACKPLANE_COMMAND"], os.environ["TEST_PLUGIN"])


@unittest.skipIf(numpy is None, "NumPy is missing")
class Blocks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device, cls.reference = bp.open(os.environ["TEST_PLUGIN"]), bp.open("reference:0")
        cls.random = numpy.random.default_rng(1)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()
        cls.reference.close()

    def numbers(self, *shape):
        return self.random.standard_normal(shape).astype("f4")

    def expect_near(self, got, want, depth):
        self.assertLess(numpy.abs(got - want).max(), 1e-5 * (depth ** 0.5 + 1))

    def test_matmul(self):
        for rows, columns, depth in (256, 256, 64), (300, 200, 77), (129, 260, 96), (64, 64, 1000), (17, 500, 128):
            for across_a, across_b in itertools.product((False, True), repeat=2):
                with self.subTest(rows=rows, columns=columns, depth=depth, across_a=across_a, across_b=across_b):
                    a = self.numbers(depth, rows).T if across_a else self.numbers(rows, depth)
                    b = self.numbers(columns, depth).T if across_b else self.numbers(depth, columns)
                    on_device = [self.device.tensor(x.T.copy()).transpose() if across else self.device.tensor(x)
                                 for x, across in ((a, across_a), (b, across_b))]
                    self.expect_near(bp.ops.matmul(*on_device, precision=0).numpy(), a.astype("f8") @ b, depth)

    def test_linear(self):
        x, weight, bias = self.numbers(150, 64), self.numbers(140, 64), self.numbers(140)
        y = bp.ops.linear(*map(self.device.tensor, (x, weight, bias)), activation=1, precision=0).numpy()
        self.expect_near(y, numpy.maximum(x.astype("f8") @ weight.T + bias, 0), 64)

    def convolve(self, op, x, weight, y, stride=1, padding=0, dilation=1, groups=1, activation=0, bias=False):
        rank = len(x) - 2
        inputs = [self.numbers(*x), self.numbers(*weight)] + ([self.numbers(y[1])] if bias else [])
        results = []
        for device in self.device, self.reference:
            out = device.empty(y, "f32")
            bp.run(op, *map(device.tensor, inputs), out=out, spatial_rank=rank, stride=[stride] * rank,
                   dilation=[dilation] * rank, pad_begin=[padding] * rank, pad_end=[padding] * rank, groups=groups,
                   precision=0, activation=activation)
            results.append(out.numpy())
        with self.subTest(op=op, x=x, weight=weight):
            self.expect_near(*results, 1000)

    def test_conv(self):
        self.convolve("conv", (2, 16, 28, 28), (72, 16, 3, 3), (2, 72, 28, 28), padding=1, activation=1, bias=True)
        self.convolve("conv", (2, 64, 28, 28), (130, 64, 1, 1), (2, 130, 28, 28), activation=1, bias=True)
        self.convolve("conv", (3, 64, 7, 7), (130, 64, 1, 1), (3, 130, 7, 7))
        self.convolve("conv", (2, 64, 16, 16), (70, 64, 1, 1), (2, 70, 8, 8), stride=2)
        self.convolve("conv", (1, 3, 40, 40), (64, 3, 7, 7), (1, 64, 20, 20), stride=2, padding=3)
        self.convolve("conv", (2, 24, 18, 18), (60, 8, 3, 3), (2, 60, 14, 14), dilation=2, groups=3, bias=True)
        self.convolve("conv", (1, 8, 9, 10, 11), (20, 8, 3, 3, 3), (1, 20, 9, 10, 11), padding=1)

    def test_gradients(self):
        self.convolve("conv_transpose", (2, 20, 13, 13), (20, 70, 3, 3), (2, 70, 25, 25), stride=2, padding=1)
        self.convolve("conv_bwd_input", (2, 72, 14, 14), (72, 20, 3, 3), (2, 20, 28, 28), stride=2, padding=1)
        self.convolve("conv_bwd_weight", (3, 20, 28, 28), (3, 72, 28, 28), (72, 20, 3, 3), padding=1)
        self.convolve("conv_bwd_weight", (3, 20, 29, 29), (3, 72, 15, 15), (72, 20, 3, 3), stride=2, padding=1)

# SPDX-License-Identifier: Apache-2.0
"""Tests operators that are limited by memory, in shapes that are larger than those of the suite: transpositions in
blocks and tiles, short rows, quads of gather, and tiles of reductions. core/python/test/run.py runs this file.
TEST_PLUGIN is the path of the plugin."""
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
class Moves(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = bp.open(os.environ["TEST_PLUGIN"])
        cls.random = numpy.random.default_rng(1)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def numbers(self, dtype, *shape):
        return self.random.integers(0, 100, shape).astype(dtype)

    def expect_copy(self, x, order, skipped=0):
        """Copies a permuted view of x, whose first `skipped` elements of the last dimension are absent."""
        with self.subTest(dtype=x.dtype, shape=x.shape, order=order, skipped=skipped):
            view = self.device.tensor(x)[..., skipped:].permute(*order)
            out = self.device.empty(view.shape, view.dtype)
            bp.run("copy", view, out=out)
            numpy.testing.assert_array_equal(out.numpy(), x[..., skipped:].transpose(order))

    def test_permutations(self):
        for dtype in "u1", "f2", "f4", "i8":
            for shape, order in [((256, 192), (1, 0)), ((16, 80), (1, 0)), ((3, 64, 136), (0, 2, 1)), ((65, 131), (1, 0)),
                                 ((2, 40, 16, 24), (0, 3, 1, 2)), ((2, 5, 48, 64), (0, 2, 1, 3)), ((7, 33, 70), (2, 1, 0))]:
                self.expect_copy(self.numbers(dtype, *shape), order)
            self.expect_copy(self.numbers(dtype, 64, 80), (1, 0), 1)
            self.expect_copy(self.numbers(dtype, 64, 80), (1, 0), 16)

    def test_sums_of_transposed_operands(self):
        for dtype in "f4", "f2":
            for rows, columns in (64, 48), (144, 272), (33, 40):
                a, b = self.numbers(dtype, 2, rows, columns), self.numbers(dtype, 2, columns, rows)
                on_device = self.device.tensor(a), self.device.tensor(b).transpose()
                both = self.device.tensor(b).transpose(), self.device.tensor(b[::-1].copy()).transpose()
                for op, function in (("add", numpy.add), ("sub", numpy.subtract), ("mul", numpy.multiply)):
                    with self.subTest(op=op, dtype=dtype, rows=rows, columns=columns):
                        for inputs, left, right in ((on_device, a, b.swapaxes(1, 2)),
                                                    (on_device[::-1], b.swapaxes(1, 2), a),
                                                    (both, b.swapaxes(1, 2), b[::-1].swapaxes(1, 2))):
                            out = self.device.empty(a.shape, on_device[0].dtype)
                            bp.run(op, *inputs, out=out)
                            want = function(left.astype("f4"), right.astype("f4")).astype(dtype)
                            numpy.testing.assert_array_equal(out.numpy(), want)

    def test_short_rows(self):
        for dtype in "u1", "f2", "f4", "i8":
            for columns in 33, 64, 100, 257, 600:
                x = self.numbers(dtype, 37, columns + 8)
                self.expect_copy(x[:, :columns].copy(), (0, 1))
                with self.subTest(dtype=dtype, columns=columns):
                    view = self.device.tensor(x)[:, 8:]
                    out = self.device.empty(view.shape, view.dtype)
                    bp.run("copy", view, out=out)
                    numpy.testing.assert_array_equal(out.numpy(), x[:, 8:])

    def test_gather(self):
        for dtype in "u1", "f2", "f4", "i8":
            for index_dtype in "i4", "i8":
                for columns in 64, 66:
                    x = self.numbers(dtype, 50, columns)
                    index = self.random.integers(-1, 51, (30, columns)).astype(index_dtype)
                    out = self.device.empty(index.shape, self.device.tensor(x).dtype)
                    bp.run("gather", self.device.tensor(x), self.device.tensor(index), out=out, axis=0)
                    inside = (index >= 0) & (index < 50)
                    want = numpy.where(inside, numpy.take_along_axis(x, index.clip(0, 49).astype("i8"), 0), 0)
                    with self.subTest(dtype=dtype, index=index_dtype, columns=columns):
                        numpy.testing.assert_array_equal(out.numpy(), want)

    def test_reductions_of_columns(self):
        for rows, columns in (1000, 300), (4096, 64), (70, 5000):
            x = self.numbers("f4", rows, columns)
            out = self.device.empty((1, columns), "f32")
            bp.run("reduce_sum", self.device.tensor(x), out=out, axes=1)
            with self.subTest(rows=rows, columns=columns):
                numpy.testing.assert_array_equal(out.numpy(), x.sum(0, keepdims=True))

    def test_topk(self):
        x = self.random.permutation(8 * 5000).reshape(8, 5000).astype("f4")
        for count in 40, 100:
            values = self.device.empty((8, count), "f32")
            bp.run("topk", self.device.tensor(x), out=values, axis=1)
            numpy.testing.assert_array_equal(values.numpy(), -numpy.sort(-x, 1)[:, :count])

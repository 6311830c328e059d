# SPDX-License-Identifier: Apache-2.0
"""Tests of tensors: data from and to the host, dtypes, views, streams and events."""
import array
import unittest

import backplane as bp
from backplane import dtypes, ops
from support import DeviceTest, needs_numpy, numpy as np


class HostTest(DeviceTest):
    def test_numbers_and_sequences(self):
        for data, dtype, shape in ((1.5, "f32", ()), (3, "i32", ()), (True, "bool", ()), ([1, 2.5], "f32", (2,)), ([[1, 2], [3, 4]], "i32", (2, 2)),
                                   ([True, False], "bool", (2,)), ([], "f32", (0,)), ([[], []], "f32", (2, 0))):
            with self.subTest(data=data):
                tensor = self.device.tensor(data)
                self.assertEqual((tensor.dtype, tensor.shape, tensor.tolist()), (dtype, shape, data))

    def test_every_dtype_keeps_its_values(self):
        for dtype in dtypes.ID:
            values = [True, False, True] if dtype == "bool" else [0, 1, 100]
            with self.subTest(dtype=dtype):
                tensor = self.device.tensor(values, dtype)
                self.assertEqual((tensor.dtype, tensor.tolist()), (dtype, values))

    def test_arrays_without_numpy(self):
        self.assertEqual(self.device.tensor(array.array("f", [1, 2])).tolist(), [1, 2])
        self.assertEqual(self.device.tensor(array.array("q", [1, 2**40])).tolist(), [1, 2**40])
        self.assertEqual(self.device.tensor(bytes([1, 255])).tolist(), [1, 255])

    def test_item_and_copy_from(self):
        tensor = self.device.tensor([1., 2.])
        tensor.copy_from([3., 4.])
        self.assertEqual((tensor[1].item(), tensor.tolist()), (4, [3, 4]))

    def test_the_source_is_free_at_once(self):
        source = array.array("f", range(100000))
        tensor = self.device.tensor(source)
        source[0] = -1
        self.assertEqual(tensor[0].item(), 0)

    def test_memory_kinds(self):
        for kind in self.device.info.memory_kinds:
            with self.subTest(kind=kind):
                tensor = self.device.tensor([1., 2.], kind=kind)
                self.assertEqual((tensor.buffer.kind, tensor.tolist()), (kind, [1, 2]))


@needs_numpy
class NumpyTest(DeviceTest):
    def test_every_dtype_of_numpy(self):
        for dtype in dtypes.FORMAT:
            values = np.array([[0, 1], [1, 0]]).astype(np.dtype(dtypes.FORMAT[dtype]))
            with self.subTest(dtype=dtype):
                result = self.device.tensor(values).numpy()
                np.testing.assert_array_equal(result, values)
                self.assertEqual(result.dtype, values.dtype)

    def test_any_array(self):
        x = np.arange(24, dtype="f8").reshape(2, 3, 4)
        read_only = x.copy()
        read_only.flags.writeable = False
        for each in (x.T, x[:, ::-1], x[..., 1], np.float64(3), np.zeros((0, 3)), read_only):
            np.testing.assert_array_equal(self.device.tensor(each).numpy(), each)

    def test_scalars_of_numpy(self):
        tensor = self.device.tensor([np.int64(1), np.int32(2)])
        self.assertEqual((tensor.dtype, tensor.tolist()), ("i32", [1, 2]))
        self.assertEqual(ops.mul(tensor, np.int64(3)).tolist(), [3, 6])
        wide = self.device.tensor([np.float32(1.5), 2])
        self.assertEqual((wide.dtype, ops.mul(wide, np.float32(2)).tolist()), ("f32", [3, 4]))
        self.assertEqual(ops.softmax(wide, axis=np.int64(0)).shape, (2,))

    def test_numpy_is_a_copy(self):
        tensor = self.device.tensor(np.zeros(3, "f4"))
        tensor.numpy()[:] = 1
        self.assertEqual(tensor.tolist(), [0, 0, 0])


class ViewTest(DeviceTest):
    def test_views_share_memory(self):
        tensor = self.device.tensor([[1., 2., 3.], [4., 5., 6.]])
        for view, expected in ((tensor.reshape(3, 2), [[1, 2], [3, 4], [5, 6]]), (tensor.reshape(-1), [1, 2, 3, 4, 5, 6]),
                               (tensor.transpose(), [[1, 4], [2, 5], [3, 6]]), (tensor[1], [4, 5, 6]), (tensor[:, ::-2], [[3, 1], [6, 4]]),
                               (tensor[None, -1, 1:], [[5, 6]]), (tensor[0].broadcast_to((2, 3)), [[1, 2, 3], [1, 2, 3]])):
            self.assertEqual(view.tolist(), expected)
            self.assertEqual(view.buffer, tensor.buffer)
        ops.fill(value=9, out=tensor[:, 1])
        self.assertEqual(tensor.tolist(), [[1, 9, 3], [4, 9, 6]])

    def test_wrong_views_are_refused(self):
        tensor = self.device.tensor([[1., 2., 3.], [4., 5., 6.]])
        self.message(bp.InvalidArgument, ["reshape", "(2, 3)"], tensor.reshape, 4, 2)
        self.message(bp.InvalidArgument, ["reshape", "not contiguous", "ops.copy"], tensor.transpose().reshape, 6)
        self.message(bp.InvalidArgument, ["permute", "order"], tensor.permute, 0, 0)
        self.message(bp.InvalidArgument, ["broadcast_to", "(2, 3)"], tensor.broadcast_to, (3, 3))
        self.message(IndexError, ["dimension 1", "extent 3"], lambda: tensor[0, 3])
        self.message(IndexError, ["too many dimensions"], lambda: tensor[0, 0, 0])
        self.message(TypeError, ["tolist"], list, tensor)


class StreamTest(DeviceTest):
    def test_calls_use_the_stream_of_their_operands(self):
        stream = self.device.create_stream()
        a = self.device.tensor([1., 2.], stream=stream)
        self.assertIs(ops.add(a, a).stream, stream)
        self.assertTrue(stream.wait())
        self.assertTrue(stream.wait(1.5))

    def test_events_order_streams(self):
        one, two = self.device.create_stream(), self.device.create_stream()
        event = self.device.create_event(timing=True)
        a = self.device.tensor([1., 2.], stream=one)
        b = ops.add(a, a)
        event.record(one)
        two.wait_event(event)
        c = self.device.tensor([1., 1.], stream=two)
        self.message(bp.InvalidArgument, ["add", "two streams", "stream="], ops.add, b, c)
        self.assertEqual(ops.add(b, c, stream=two).tolist(), [3, 5])
        end = self.device.create_event(timing=True)
        end.record(two)
        self.assertTrue(end.wait())
        self.assertGreaterEqual(event.elapsed(end), 0)

    def test_elapsed_needs_completed_events(self):
        begin, end = self.device.create_event(timing=True), self.device.create_event(timing=True)
        a = self.device.empty((512, 512))
        ops.fill(value=1, out=a)
        text = ""
        for _ in range(20):  # on a busy machine, the work may complete before the call
            begin.record()
            b = ops.matmul(a, a)
            end.record()
            try:
                begin.elapsed(end)
            except bp.NotReady as failure:
                text = str(failure)
                break
        self.assertIn("call wait()", text)
        self.assertEqual(b[0, 0].item(), 512)
        self.assertGreater(begin.elapsed(end), 0)
        self.message(bp.InvalidArgument, ["timing"], self.device.create_event().elapsed, end)

    def test_memory_that_another_stream_uses_is_not_reused(self):
        one, two = self.device.create_stream(), self.device.create_stream()
        busy = self.device.empty((256, 256), stream=two)
        ops.fill(value=0, out=busy)
        for value in range(5):
            a = self.device.tensor([float(value)] * 1000, stream=one)
            one.wait()
            ops.matmul(busy, busy)  # the addition comes after this work
            b = ops.add(a, a, stream=two)
            del a
            other = self.device.tensor([-1.] * 1000, stream=one)
            one.wait()
            self.assertEqual(b.tolist()[::999], [2 * value] * 2)
            del other

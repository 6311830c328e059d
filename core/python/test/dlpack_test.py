# SPDX-License-Identifier: Apache-2.0
"""Tests of DLPack with NumPy. NumPy before 2.1 exchanges version 0 of DLPack, and later versions of
NumPy exchange version 1."""
import ctypes
import gc
import sys
import unittest
import unittest.mock
import weakref

import backplane as bp
from backplane import _dlpack, ops
from support import DeviceTest, needs_numpy, numpy as np


numpy_exchanges_version_1 = np is not None and np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class Old:
    """An object whose __dlpack__ is that of version 0."""

    def __init__(self, owner):
        self.owner = owner

    def __dlpack__(self, stream=None):
        return self.owner.__dlpack__()

    def __dlpack_device__(self):
        return self.owner.__dlpack_device__()


@needs_numpy
class DlpackTest(DeviceTest):
    def setUp(self):
        gc.collect()
        _dlpack.sweep()

    def check_nothing_lives(self):
        gc.collect()
        _dlpack.sweep()
        self.device.stream.wait()
        self.assertEqual((_dlpack._living, _dlpack._capsules), ({}, []))

    def test_numpy_shares_our_memory(self):
        for wrap in (lambda tensor: tensor, Old):
            tensor = ops.add(self.device.tensor([1., 2., 3.]), 1)
            shared = np.from_dlpack(wrap(tensor))
            self.assertEqual(shared.ctypes.data, tensor.buffer.address)
            np.testing.assert_array_equal(shared, [2, 3, 4])
            ops.fill(value=7, out=tensor)
            self.device.stream.wait()
            np.testing.assert_array_equal(shared, [7, 7, 7])
            before = self.device.stats()["bytes_in_use"]
            del tensor
            np.testing.assert_array_equal(shared, [7, 7, 7])  # the export keeps the memory
            self.assertEqual(self.device.stats()["bytes_in_use"], before)
            del shared
            self.check_nothing_lives()
            self.assertLess(self.device.stats()["bytes_in_use"], before)

    def test_we_share_the_memory_of_numpy(self):
        for wrap in (lambda array: array, Old):
            array = np.arange(6, dtype="f4").reshape(2, 3)
            gone = weakref.ref(array)
            tensor = self.device.from_dlpack(wrap(array))
            self.assertEqual(tensor.buffer.address, array.ctypes.data)
            ops.mul(tensor, 2, out=tensor)
            self.device.stream.wait()
            np.testing.assert_array_equal(array, [[0, 2, 4], [6, 8, 10]])
            del array
            gc.collect()
            self.assertIsNotNone(gone())  # the import keeps the array
            self.assertEqual(tensor.tolist(), [[0, 2, 4], [6, 8, 10]])
            del tensor
            self.check_nothing_lives()
            self.assertIsNone(gone())

    def test_strided_views_in_both_directions(self):
        array = np.arange(24, dtype="i8").reshape(2, 3, 4)
        tensor = self.device.from_dlpack(array[:, ::-1, 1::2])
        np.testing.assert_array_equal(tensor.numpy(), array[:, ::-1, 1::2])
        np.testing.assert_array_equal(np.from_dlpack(tensor.transpose()), array[:, ::-1, 1::2].swapaxes(1, 2))

    def test_every_dtype_of_both(self):
        for dtype in ("u8", "i8", "i32", "u32", "i64", "f16", "f32", "f64"):
            tensor = self.device.tensor([0, 1, 2], dtype)
            np.testing.assert_array_equal(np.from_dlpack(tensor), tensor.numpy())
            self.assertEqual(self.device.from_dlpack(tensor.numpy()).dtype, dtype)

    def test_between_two_devices(self):
        with bp.open("reference:0") as other:
            tensor = other.from_dlpack(ops.add(self.device.tensor([1., 2.]), 1))
            self.assertEqual(ops.add(tensor, tensor).tolist(), [4, 6])
            del tensor
        self.check_nothing_lives()

    def test_a_capsule_that_nobody_uses_leaks_nothing(self):
        before = self.device.stats()["bytes_in_use"]
        for version in (None, (1, 0)):
            tensor = self.device.empty((1000,))
            capsule = tensor.__dlpack__(max_version=version)
            del tensor
            _dlpack.sweep()
            self.assertGreater(self.device.stats()["bytes_in_use"], before)
            del capsule
            self.check_nothing_lives()
            self.assertEqual(self.device.stats()["bytes_in_use"], before)

    def test_the_next_call_ends_unused_exports(self):
        self.device.tensor([1.]).__dlpack__()
        tensor = self.device.tensor([1.])
        for _ in range(10):
            tensor.__dlpack__()
            self.assertLessEqual(len(_dlpack._capsules), 1)
        self.device.from_dlpack(np.zeros(1, "f4"))
        self.assertEqual(_dlpack._capsules, [])

    def test_a_failure_of_the_consumer_keeps_its_exception(self):
        tensor = self.device.tensor([1., 2.], "bf16")
        for wrap in (lambda tensor: tensor, Old):
            with self.assertRaises((RuntimeError, BufferError, TypeError, ValueError)) as caught:
                np.from_dlpack(wrap(tensor))
            self.assertNotIsInstance(caught.exception, SystemError)
        del caught
        self.check_nothing_lives()

    @unittest.skipUnless(numpy_exchanges_version_1, "NumPy before 2.1 exports no read-only array")
    def test_read_only_memory_is_never_written(self):
        array = np.arange(4, dtype="f4")
        array.flags.writeable = False
        tensor = self.device.from_dlpack(array)
        self.assertTrue(tensor.buffer.read_only)
        self.assertFalse(self.device.tensor([1.]).buffer.read_only)
        self.assertEqual(ops.add(tensor, tensor).tolist(), [0, 2, 4, 6])
        self.message(bp.InvalidArgument, ["output 0 is read-only"], ops.fill, value=7, out=tensor)
        self.message(bp.InvalidArgument, ["dst is read-only"], tensor.copy_from, [1., 2., 3., 4.])
        np.testing.assert_array_equal(array, [0, 1, 2, 3])
        again = np.from_dlpack(tensor)
        self.assertFalse(again.flags.writeable)
        self.message(BufferError, ["read-only", "copy=True"], tensor.__dlpack__)  # version 0 has no such flag
        del tensor, again
        self.check_nothing_lives()

    @unittest.skipUnless(numpy_exchanges_version_1, "NumPy before 2.1 has no such parameters")
    def test_a_copy_is_made_where_the_consumer_requests_it(self):
        tensor = self.device.tensor([[1., 2.], [3., 4.]])
        for view in (tensor, tensor.transpose(), tensor[:, ::-1], tensor[0:0]):
            copied = np.from_dlpack(view, copy=True)
            np.testing.assert_array_equal(copied, view.numpy())
            self.assertTrue(copied.flags.writeable)
            if view.size:
                self.assertNotEqual(copied.ctypes.data, view.buffer.address + view.offset)
        self.assertEqual(np.from_dlpack(tensor, copy=False).ctypes.data, tensor.buffer.address)
        self.assertEqual(np.from_dlpack(tensor, device="cpu").ctypes.data, tensor.buffer.address)
        struct = _dlpack._Versioned
        for copy, flags in ((True, 2), (None, 0), (False, 0)):
            capsule = tensor.__dlpack__(max_version=(1, 0), copy=copy)
            self.assertEqual(struct.from_address(_dlpack._pointer(id(capsule), b"dltensor_versioned")).flags, flags)
            del capsule
        del copied
        self.check_nothing_lives()

    def test_the_host_gets_a_copy_of_memory_that_it_cannot_reach(self):
        # The host can access all memory of the reference device. The test therefore states other DLPack devices for it.
        tensor = self.device.tensor([[1., 2.], [3., 4.]]).transpose()
        other = {"device": (99, 5), "shared": (98, 0), "host": (97, 0)}
        info = self.device.info._replace(dlpack=other)
        with unittest.mock.patch.object(type(self.device), "info", info):
            self.assertEqual(tensor.__dlpack_device__(), (99, 5))
            self.message(BufferError, ["(99, 5)", "(1, 0)"], tensor.__dlpack__, dl_device=(7, 0))
            self.message(BufferError, ["copy=False"], tensor.__dlpack__, dl_device=(1, 0), copy=False)
            capsule = tensor.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
            shared = self.device.tensor([5.], kind="shared").__dlpack__(dl_device=(1, 0), max_version=(1, 0))
        for each, flags, values in ((capsule, 2, [1, 3, 2, 4]), (shared, 0, [5])):
            managed = _dlpack._Versioned.from_address(_dlpack._pointer(id(each), b"dltensor_versioned"))
            self.assertEqual((managed.flags, managed.tensor.device_type, managed.tensor.device_id), (flags, 1, 0))
            data = ctypes.cast(managed.tensor.data, ctypes.POINTER(ctypes.c_float))
            self.assertEqual(data[:len(values)], values)
        del capsule, shared, each
        self.check_nothing_lives()

    def test_a_copy_keeps_the_kind_of_its_memory(self):
        exports, to_export = [], _dlpack._to_export

        def captured(*arguments):
            exports.append(to_export(*arguments))
            return exports[-1]

        for kind in ("device", "host", "shared"):
            tensor = self.device.tensor([[1., 2., 3.], [4., 5., 6.]], kind=kind)
            for view in (tensor, tensor.transpose(), tensor[1:, ::-2], tensor[:1].broadcast_to((4, 3)), tensor[0:0]):
                for place in (None, (1, 0)):
                    with unittest.mock.patch.object(_dlpack, "_to_export", captured):
                        view.__dlpack__(max_version=(1, 0), dl_device=place, copy=True)
                    source, copied = exports.pop()
                    self.assertTrue(copied)
                    self.assertEqual((source.buffer.kind, source.tolist()), (kind, view.tolist()))
                    ops.fill(value=0, out=source)
                    del source
            self.assertEqual(tensor.tolist(), [[1, 2, 3], [4, 5, 6]])
            del tensor, view
        self.check_nothing_lives()

    def test_a_consumer_may_order_the_work_itself(self):
        event = self.device.create_event()
        tensor = self.device.empty((1 << 20,))
        for value in range(20):
            ops.fill(value=value, out=tensor)
        event.record()
        capsule = tensor.__dlpack__(stream=-1, max_version=(1, 0))  # does not wait
        event.wait()
        managed = _dlpack._Versioned.from_address(_dlpack._pointer(id(capsule), b"dltensor_versioned"))
        self.assertEqual(ctypes.c_float.from_address(managed.tensor.data).value, 19)
        self.message(bp.InvalidArgument, ["stream is 'legacy'"], tensor.__dlpack__, stream="legacy")
        del capsule
        self.check_nothing_lives()

    def test_refusals(self):
        tensor = self.device.tensor([1.])
        for error in (bp.Unsupported, BufferError):
            self.message(error, ["dl_device", "(99, 0)"], tensor.__dlpack__, dl_device=(99, 0))
        self.message(bp.InvalidArgument, ["from_dlpack", "tensor()"], self.device.from_dlpack, [1, 2])
        self.message(bp.Unsupported, ["bph_dlpack_import", "convert"], self.device.from_dlpack, np.zeros(2, "c8"))
        self.check_nothing_lives()

    def test_references_are_balanced(self):
        array = np.arange(1000, dtype="f4")
        self.device.from_dlpack(array)
        before = sys.getrefcount(array)
        for _ in range(100):
            self.device.from_dlpack(array)
            np.from_dlpack(self.device.empty((10,)))
        self.check_nothing_lives()
        self.assertLessEqual(sys.getrefcount(array), before)

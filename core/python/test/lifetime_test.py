# SPDX-License-Identifier: Apache-2.0
"""Tests of the lifetime of handles: cycles, garbage collection, threads, fork, and the end of the process."""
import gc
import os
import threading
import time
import unittest
import weakref

import backplane as bp
from backplane import ops
from support import DeviceTest, python


def threads_and_files():
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def living():
    """Returns the number of handles that were not released."""
    gc.collect()
    return sum(1 for _ in weakref.finalize._registry)


def cycle():
    with bp.open("reference:0") as device, device.create_stream() as stream:
        tensor = device.tensor([1., 2.], stream=stream)
        return ops.add(tensor, tensor).tolist()


class CycleTest(unittest.TestCase):
    def returns_to(self, handles, resources):
        """Checks that handles, threads and files return to earlier numbers. A thread ends shortly after its join."""
        gc.collect()  # a device and its stream refer to each other
        end = time.monotonic() + 10
        while threads_and_files() != resources and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual((living(), threads_and_files()), (handles, resources))

    def test_a_thousand_cycles_leak_nothing(self):
        cycle()
        handles, resources = living(), threads_and_files()
        for _ in range(1000):
            self.assertEqual(cycle(), [2, 4])
        self.returns_to(handles, resources)

    def test_objects_that_nobody_closes_are_collected(self):
        handles, resources = living(), threads_and_files()
        kept = []
        for _ in range(20):
            device = bp.open("reference:0")
            kept.append(ops.neg(device.tensor([1.])))
            device.stream.wait()
        self.assertGreaterEqual(living(), handles + 60)  # so that a leak would be noticed
        self.assertGreater(threads_and_files(), resources)
        kept.clear()
        del device
        self.returns_to(handles, resources)

    def test_memory_is_released_with_the_last_view(self):
        with bp.open("reference:0") as device:
            before = device.stats()["bytes_in_use"]
            tensor = device.tensor([1., 2., 3.])
            view = tensor[1:]
            del tensor
            self.assertEqual(view.tolist(), [2, 3])
            self.assertGreater(device.stats()["bytes_in_use"], before)
            del view
            self.assertEqual(device.stats()["bytes_in_use"], before)

    def test_close_releases_at_once(self):
        with bp.open("reference:0") as device:
            before = device.stats()["bytes_in_use"]
            tensor = device.tensor([1., 2., 3.])
            self.assertGreater(device.stats()["bytes_in_use"], before)
            tensor.buffer.close()
            self.assertEqual(device.stats()["bytes_in_use"], before)

    def test_any_order_of_release(self):
        device = bp.open("reference:0")
        tensor = device.tensor([1.])
        stream = device.stream
        device.close()
        stream.close()
        tensor.buffer.close()

    def test_plugins_registries_and_logs(self):
        lines = []
        with bp.Registry(log=lambda level, text: lines.append((level, text))) as registry, registry.load("reference") as plugin:
            self.assertEqual((plugin.info.name, plugin.device_count()), ("reference", 1))
            self.assertEqual(plugin.device_info(0).type, "cpu")
            with plugin.open() as device:
                self.assertEqual(device.name, "reference:0")
            self.assertIn("reference:0", registry.devices())
        self.assertIn("reference", [each.name for each in bp.candidates()])
        self.assertIn("reference:0", bp.devices())


class ThreadTest(DeviceTest):
    def test_threads_share_a_device(self):
        failures = []

        def work(value):
            try:
                for _ in range(100):
                    tensor = self.device.tensor([float(value)] * 10)
                    if ops.mul(ops.add(tensor, tensor), 3).tolist() != [6. * value] * 10:
                        failures.append(value)
            except Exception as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(value,)) for value in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_errors_of_threads_are_separate(self):
        texts = []

        def fail(name):
            for _ in range(50):
                try:
                    bp.open(name)
                except bp.Unavailable as failure:
                    texts.append(name in str(failure))

        threads = [threading.Thread(target=fail, args=(f"no_plugin_{index}",)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(texts), all(texts)), (200, True))


class ProcessTest(unittest.TestCase):
    def test_a_child_opens_its_own_device(self):
        run = python("""if True:
            import gc, os, sys, warnings
            import backplane as bp
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork of a process with threads
            device = bp.open("reference:0")
            tensor = bp.ops.neg(device.tensor([1., 2.]))
            child = os.fork()
            if child == 0:
                try:
                    bp.ops.neg(tensor)
                except bp.Unavailable as failure:
                    print("child:", failure, flush=True)
                del tensor, device
                gc.collect()
                own = bp.open("reference:0")
                print("child:", bp.ops.neg(own.tensor([3.])).tolist(), flush=True)
                sys.exit(0)
            print("status", os.waitpid(child, 0)[1], tensor.tolist())
            """)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("fork", run.stdout)
        self.assertIn("child: [-3.0]", run.stdout)
        self.assertIn("status 0 [-1.0, -2.0]", run.stdout)

    def test_the_process_ends_with_living_objects(self):
        run = python("""if True:
            import sys
            import backplane as bp
            try:
                import numpy
            except ImportError:
                numpy = None
            device = bp.open("reference:0")
            class Cycle: pass
            cycle = Cycle()
            cycle.self, cycle.tensor = cycle, bp.ops.neg(device.tensor([1., 2.] * 10000))
            big = device.tensor([1.] * 100000)
            for _ in range(20):
                big = bp.ops.exp(big)  # pending work
            if numpy is not None:
                shared = numpy.from_dlpack(device.tensor([1.]))
                imported = device.from_dlpack(numpy.zeros(10, "f4"))
                capsule = device.tensor([1.]).__dlpack__()
            sys.modules["keeps_a_tensor"] = big
            """)
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))

    def test_the_process_ends_by_an_exception(self):
        run = python("""if True:
            import backplane as bp
            tensor = bp.open("reference:0").tensor([1.])
            raise SystemExit(7)
            """)
        self.assertEqual((run.returncode, run.stderr), (7, ""))

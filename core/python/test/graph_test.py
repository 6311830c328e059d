# SPDX-License-Identifier: Apache-2.0
"""Tests graphs: recording, launches, bindings, refusals and lifetime."""
import gc
import unittest

import backplane as bp
from backplane import ops
from support import DeviceTest


class GraphTest(DeviceTest):
    def setUp(self):
        self.a, self.b = self.device.tensor([1., 2.]), self.device.tensor([10., 20.])
        self.out = self.device.tensor([0., 0.])

    def record(self, **named):
        return bp.Graph.record(self.device.stream, lambda: ops.add(self.a, self.b, out=self.out), **named)

    def test_calls_run_at_each_launch_only(self):
        for native in (True, False):
            with self.subTest(native=native):
                self.out.copy_from([0., 0.])
                graph = self.record(native=native)
                self.assertEqual((graph.nodes, graph.native and not native), (1, False))
                self.assertEqual(self.out.tolist(), [0, 0])
                graph.launch()
                self.assertEqual(self.out.tolist(), [11, 22])
                self.a.copy_from([5., 6.])
                graph.launch()
                self.assertEqual(self.out.tolist(), [15, 26])
                self.a.copy_from([1., 2.])

    def test_a_composite_has_memory_of_its_own(self):
        x, y = self.device.tensor([[1., 2.], [3., 3.]]), self.device.empty((2, 2))
        graph = bp.Graph.record(self.device.stream, lambda: ops.softmax(x, axis=1, out=y))
        self.assertGreaterEqual(graph.nodes, 1)
        graph.launch()
        self.assertEqual(y.tolist()[1], [0.5, 0.5])

    def test_a_launch_replaces_bindings(self):
        graph = self.record(bindings=[self.a, self.out])
        other, target = self.device.tensor([100., 200.]), self.device.tensor([0., 0.])
        graph.launch(other, target)
        self.assertEqual((target.tolist(), self.out.tolist()), ([110, 220], [0, 0]))
        graph.launch()
        self.assertEqual(self.out.tolist(), [11, 22])

    def test_a_launch_on_another_stream(self):
        graph, stream, event = self.record(), self.device.create_stream(), self.device.create_event()
        event.record()
        stream.wait_event(event)
        graph.launch(stream=stream)
        stream.wait()
        self.assertEqual(self.out.tolist(), [11, 22])

    def test_wrong_bindings_are_refused(self):
        self.message(bp.InvalidArgument, ["Graph.record", "not a contiguous tensor"], self.record, bindings=[self.a[::-1]])
        graph = self.record(bindings=[self.a])
        self.message(bp.InvalidArgument, ["Graph.launch", "binding 0 is i32 (2,)", "f32 (2,)"], graph.launch, self.device.tensor([1, 2]))
        self.message(bp.InvalidArgument, ["bph_graph_launch"], graph.launch, self.a, self.b)

    def test_a_wait_during_a_recording_is_refused_and_nothing_remains_of_it(self):
        self.message(bp.InvalidArgument, ["bph_stream_wait"], bp.Graph.record, self.device.stream, self.device.stream.wait)
        with self.assertRaises(ZeroDivisionError):
            bp.Graph.record(self.device.stream, lambda: 1 // 0)
        self.assertEqual(ops.add(self.a, self.b).tolist(), [11, 22])

    def test_a_graph_keeps_its_buffers_until_it_is_released(self):
        graph = self.record()
        before = self.device.stats()["bytes_in_use"]
        del self.a, self.b
        gc.collect()
        graph.launch()
        self.assertEqual(self.out.tolist(), [11, 22])
        graph.close()
        self.assertLess(self.device.stats()["bytes_in_use"], before)
        self.message(bp.InvalidArgument, ["Graph", "released"], graph.launch)


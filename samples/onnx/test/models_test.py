# SPDX-License-Identifier: Apache-2.0
"""Compares the outputs of whole models with random weights with those of ONNX Runtime, on each device."""
import unittest

import backplane as bp

from backplane_onnx import Session
from backplane_onnx.command import difference, runtime_of
from onnx_support import devices

import models


class ModelsTest(unittest.TestCase):
    def test_models_agree_with_onnx_runtime(self):
        for name, make in models.MODELS.items():
            proto, feeds = make(False)
            expected = runtime_of(proto.SerializeToString(), 1).run(None, feeds)
            for device in devices:
                with self.subTest(model=name, device=device), bp.open(device) as opened:
                    session = Session(proto, opened)
                    for _ in range(2):  # the first run records, and the second run launches the recorded graph
                        self.assertLess(difference(session.run(feeds), expected), 1e-4)
                    self.assertEqual(session.host_inputs, set())

    def test_a_wrong_model_is_noticed(self):
        proto, feeds = models.digits(False)
        other, _ = models.digits(False)
        other.graph.initializer[0].raw_data = bytes(len(other.graph.initializer[0].raw_data))
        with bp.open(devices[0]) as opened:
            outputs = Session(proto, opened).run(feeds)
        self.assertGreater(difference(outputs, runtime_of(other.SerializeToString(), 1).run(None, feeds)), 1e-4)

# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of this folder."""
import os
import sys
import unittest
import warnings

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import backplane as bp

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../examples"))
warnings.simplefilter("ignore")

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
devices = os.environ.get("BACKPLANE_ONNX_DEVICES", "reference:0").split()


def model(nodes, inputs, outputs, constants=None, opset=17, functions=(), domains=()):
    """Makes a model. `inputs` and `outputs` are {name: (element type, shape)}."""
    def infos(values):
        return [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in values.items()]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "graph", infos(inputs), infos(outputs), tensors)
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in domains]
    return helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=9)


class DeviceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = bp.open(devices[0])

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def message(self, error, parts, function, *arguments, **named):
        """Checks that a call raises an exception of the class `error`, and that its message contains all
        `parts`."""
        with self.assertRaises(error) as caught:
            function(*arguments, **named)
        for part in parts:
            self.assertIn(part, str(caught.exception))

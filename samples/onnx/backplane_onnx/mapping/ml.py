# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX's domain ai.onnx.ml."""
from ..node import Node
from ..registry import maps

DOMAIN = "ai.onnx.ml"


@maps("Binarizer", domain=DOMAIN)
def binarizer(n: Node):
    x = n.view(0)
    return n.b.cast(n.b.compare(x, n.attr("threshold", 0.0), "GT"), x.dtype)


@maps("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor(n: Node):
    x, index = n.view(0), n.view(1)
    out = n.b.gather(x, n.b.reshape(index, (index.size,)), x.rank - 1)
    return n.b.reshape(out, (1, *out.shape)) if x.rank == 1 else out

# SPDX-License-Identifier: Apache-2.0
"""Mappings of ONNX operators to Backplane operators. Each module is named after a family of docs/dev/map.md."""
import importlib

FAMILIES = ("copy", "cast", "index", "elementwise", "reduce", "scan", "matmul", "softmax", "norm", "conv", "pool", "attention", "quantize", "topk", "rnn",
            "resize", "spectral", "optimizer", "sequence", "ml")


def load_all() -> None:
    """Imports all modules of mappings. Each module adds its operators to the table of mappings."""
    for name in FAMILIES:
        importlib.import_module(f"{__name__}.{name}")

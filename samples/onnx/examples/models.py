#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds whole models with random weights, compares their outputs with those of ONNX Runtime, and times both
runtimes:

   models.py [--device DEVICE]... [--size small|full] [--only NAME] [--seconds S] [--threads N] [--save FOLDER]

The models have the shapes of a digits CNN, ResNet-50, BERT, GPT and U-Net. With `small`, images, layers and
widths are smaller."""
import argparse
import os
import sys
from typing import Any, Callable

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

OPSET = 17


class Maker:
    """Collects the nodes and the random weights of a graph."""

    def __init__(self, seed: int = 1) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list = []
        self.constants: list = []

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, array: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape: int, fan: int = 0) -> str:
        scale = (2 / fan) ** 0.5 if fan else 0.02
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def numbers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def linear(self, x: str, inner: int, outer: int) -> str:
        return self.add("Add", self.add("MatMul", x, self.weight(inner, outer, fan=2 * inner)), self.weight(outer))

    def conv(self, x: str, inner: int, outer: int, kernel: int, stride: int = 1, bias: bool = True) -> str:
        inputs = [x, self.weight(outer, inner, kernel, kernel, fan=inner * kernel * kernel)] + ([self.weight(outer)] if bias else [])
        return self.add("Conv", *inputs, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4)

    def batch_norm(self, x: str, channels: int) -> str:
        ones = np.ones(channels, np.float32)
        variance = self.constant((1 + self.random.random(channels) * 0.2).astype(np.float32))
        return self.add("BatchNormalization", x, self.constant(ones), self.weight(channels), self.weight(channels), variance)

    def layer_norm(self, x: str, width: int) -> str:
        return self.add("LayerNormalization", x, self.constant(np.ones(width, np.float32)), self.weight(width), axis=-1)

    def model(self, name: str, inputs: "list[tuple[str, int, list]]", output: str, rank: int) -> ModelProto:
        graph = helper.make_graph(self.nodes, name, [helper.make_tensor_value_info(*each) for each in inputs],
                                  [helper.make_tensor_value_info(output, TensorProto.FLOAT, [None] * rank)], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def digits(full: bool) -> "tuple[ModelProto, dict]":
    m, batch = Maker(), 64 if full else 8
    x = m.add("Relu", m.conv("x", 1, 16, 3))
    x = m.add("MaxPool", m.add("Relu", m.conv(x, 16, 32, 3)), kernel_shape=[2, 2], strides=[2, 2])
    x = m.add("Flatten", x)
    x = m.add("Gemm", x, m.weight(32 * 16, 64, fan=512), m.weight(64))
    x = m.add("Softmax", m.add("Gemm", m.add("Relu", x), m.weight(10, 64, fan=64), m.weight(10), transB=1), axis=1)
    return m.model("digits", [("x", TensorProto.FLOAT, ["batch", 1, 8, 8])], x, 2), {"x": m.random.random((batch, 1, 8, 8)).astype(np.float32)}


def resnet(full: bool) -> "tuple[ModelProto, dict]":
    """Makes ResNet-50, with 3, 4, 6 and 3 bottlenecks. With `small`, the image is smaller, and there are a
    quarter of the channels."""
    m, side, width = Maker(), 224 if full else 64, 64 if full else 16
    x = m.add("Relu", m.batch_norm(m.conv("x", 3, width, 7, 2, bias=False), width))
    x = m.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inner = width
    for stage, count in enumerate((3, 4, 6, 3)):
        middle, outer = width << stage, width << stage + 2
        for block in range(count):
            stride = 2 if stage and not block else 1
            skip = x if block else m.batch_norm(m.conv(x, inner, outer, 1, stride, bias=False), outer)
            y = m.add("Relu", m.batch_norm(m.conv(x, inner, middle, 1, bias=False), middle))
            y = m.add("Relu", m.batch_norm(m.conv(y, middle, middle, 3, stride, bias=False), middle))
            y = m.batch_norm(m.conv(y, middle, outer, 1, bias=False), outer)
            x, inner = m.add("Relu", m.add("Add", m.add("Mul", y, m.constant(np.float32(0.3))), skip)), outer
    x = m.add("Flatten", m.add("GlobalAveragePool", x))
    x = m.add("Gemm", x, m.weight(1000, inner, fan=inner), m.weight(1000), transB=1)
    return m.model("resnet50", [("x", TensorProto.FLOAT, [1, 3, side, side])], x, 2), {"x": m.random.random((1, 3, side, side)).astype(np.float32)}


def attention(m: Maker, x: str, width: int, heads: int, mask: str, batch: int, length: int) -> str:
    """Adds an attention as exporters write it: nodes compute the shapes from the shape of the input."""
    shape = m.add("Shape", x)
    rows, columns = m.add("Gather", shape, m.numbers(0), axis=0), m.add("Gather", shape, m.numbers(1), axis=0)
    split = m.add("Concat", rows, columns, m.numbers(heads), m.numbers(width // heads), axis=0)
    q, k, v = (m.add("Transpose", m.add("Reshape", m.linear(x, width, width), split), perm=perm)
               for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    scores = m.add("Div", m.add("MatMul", q, k), m.constant(np.float32((width // heads) ** 0.5)))
    weights = m.add("Softmax", m.add("Add", scores, mask), axis=-1)
    y = m.add("Transpose", m.add("MatMul", weights, v), perm=[0, 2, 1, 3])
    return m.linear(m.add("Reshape", y, m.add("Concat", rows, columns, m.numbers(width), axis=0)), width, width)


def gelu(m: Maker, x: str) -> str:
    inner = m.add("Erf", m.add("Div", x, m.constant(np.float32(2 ** 0.5))))
    return m.add("Mul", m.add("Mul", x, m.add("Add", inner, m.constant(np.float32(1)))), m.constant(np.float32(0.5)))


def bert(full: bool) -> "tuple[ModelProto, dict]":
    layers, width, heads, batch, length, words = (12, 768, 12, 1, 128, 30522) if full else (3, 128, 4, 2, 32, 500)
    m = Maker()
    x = m.add("Gather", m.weight(words, width), "tokens", axis=0)
    x = m.layer_norm(m.add("Add", x, m.weight(1, length, width)), width)
    mask = m.add("Cast", m.add("Unsqueeze", "mask", m.numbers(1, 2)), to=TensorProto.FLOAT)
    mask = m.add("Mul", m.add("Sub", m.constant(np.float32(1)), mask), m.constant(np.float32(-1e4)))
    for _ in range(layers):
        x = m.layer_norm(m.add("Add", x, attention(m, x, width, heads, mask, batch, length)), width)
        x = m.layer_norm(m.add("Add", x, m.linear(gelu(m, m.linear(x, width, 4 * width)), 4 * width, width)), width)
    feeds = {"tokens": m.random.integers(0, words, (batch, length)), "mask": (np.arange(length)[None, :] < length - 5).repeat(batch, 0).astype(np.int64)}
    return m.model("bert", [("tokens", TensorProto.INT64, ["batch", length]), ("mask", TensorProto.INT64, ["batch", length])], x, 3), feeds


def gpt(full: bool) -> "tuple[ModelProto, dict]":
    layers, width, heads, batch, length, words = (12, 768, 12, 1, 64, 50257) if full else (3, 128, 4, 1, 48, 500)
    m = Maker()
    table = m.weight(words, width)
    x = m.add("Add", m.add("Gather", table, "tokens", axis=0), m.weight(1, length, width))
    columns = m.add("Gather", m.add("Shape", "tokens"), m.numbers(1), axis=0)
    square = m.add("Concat", columns, columns, axis=0)
    ones = m.add("ConstantOfShape", square, value=helper.make_tensor("v", TensorProto.FLOAT, [1], [-1e9]))
    mask = m.add("Trilu", ones, m.constant(np.int64(1)), upper=1)
    for _ in range(layers):
        x = m.add("Add", x, attention(m, m.layer_norm(x, width), width, heads, mask, batch, length))
        x = m.add("Add", x, m.linear(gelu(m, m.linear(m.layer_norm(x, width), width, 4 * width)), 4 * width, width))
    x = m.add("MatMul", m.layer_norm(x, width), m.add("Transpose", table, perm=[1, 0]))
    return m.model("gpt", [("tokens", TensorProto.INT64, ["batch", length])], x, 3), {"tokens": m.random.integers(0, words, (batch, length))}


def unet(full: bool) -> "tuple[ModelProto, dict]":
    side, width = (128, 32) if full else (32, 8)
    m = Maker()

    def double(x: str, inner: int, outer: int) -> str:
        for each in (inner, outer):
            x = m.add("Relu", m.add("InstanceNormalization", m.conv(x, each, outer, 3), m.constant(np.ones(outer, np.float32)), m.weight(outer)))
        return x

    x, skips = double("x", 3, width), []
    for level in range(3):
        skips.append(x)
        x = m.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x = double(x, width << level, width << level + 1)
    for level in (2, 1, 0):
        if level == 1:
            x = m.conv(m.add("Resize", x, "", m.constant(np.array([1, 1, 2, 2], np.float32)), mode="linear"), width << level + 1, width << level, 3)
        else:
            x = m.add("ConvTranspose", x, m.weight(width << level + 1, width << level, 2, 2, fan=width << level + 1), kernel_shape=[2, 2], strides=[2, 2])
        x = double(m.add("Concat", skips[level], x, axis=1), width << level + 1, width << level)
    x = m.add("Sigmoid", m.conv(x, width, 2, 1))
    return m.model("unet", [("x", TensorProto.FLOAT, [1, 3, side, side])], x, 4), {"x": m.random.random((1, 3, side, side)).astype(np.float32)}


MODELS: "dict[str, Callable[[bool], tuple[ModelProto, dict]]]" = {"digits": digits, "resnet50": resnet, "bert": bert, "gpt": gpt, "unet": unet}


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares and times whole models against ONNX Runtime.")
    parser.add_argument("--device", action="append", help="default reference:0")
    parser.add_argument("--size", choices=("small", "full"), default="small")
    parser.add_argument("--only", choices=tuple(MODELS))
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=1, help="threads of ONNX Runtime; a plugin has its own settings")
    parser.add_argument("--save", metavar="FOLDER", help="writes the models")
    options = parser.parse_args()
    import backplane as bp
    from backplane_onnx import Session
    from backplane_onnx.command import difference, runtime_of, seconds_of
    worst = 0.0
    print("| model | nodes | device | calls | graph | bytes, without reuse | difference | preparation, ms | run, ms | ONNX Runtime, ms |")
    print("|---|--:|---|--:|---|---|--:|--:|--:|--:|")
    for name in [options.only] if options.only else MODELS:
        proto, feeds = MODELS[name](options.size == "full")
        if options.save:
            with open(os.path.join(options.save, name + ".onnx"), "wb") as file:
                file.write(proto.SerializeToString())
        runtime = runtime_of(proto.SerializeToString(), options.threads)
        expected = runtime.run(None, feeds)
        for device in options.device or ["reference:0"]:
            with bp.open(device) as opened:
                import time
                start = time.perf_counter()
                session = Session(proto, opened)
                outputs = session.run(feeds)
                ready = time.perf_counter() - start
                program, gap = session.program(feeds), difference(outputs, expected)
                worst = max(worst, gap)
                ours, theirs = seconds_of(lambda: session.run(feeds), options.seconds), seconds_of(lambda: runtime.run(None, feeds), options.seconds)
                nodes = len(proto.graph.node)
                print(f"| {name} | {nodes} | {device} | {len(program.steps)} | {'native' if program.graph.native else 'recorded'} | {program.device_bytes:,}, "
                      f"{program.unplanned_bytes:,} | {gap:.1e} | {ready * 1e3:.0f} | {ours * 1e3:.2f} | {theirs * 1e3:.2f} |", flush=True)
    print(f"greatest difference relative to the greatest value: {worst:.1e}")
    return 0 if worst <= 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs mutated ONNX files for a given time, and looks for crashes, hangs and exceptions of a wrong class:

   fuzz.py SECONDS [--device reference:0] [--seed N]

A worker process with a memory limit runs the files. Each file must run, or raise an OnnxError or a
backplane.Error. After a failure, the script prints the seed of the file, and continues with the next file."""
import argparse
import os
import random
import resource
import select
import struct
import sys
import time
from collections import Counter

import numpy as np
from onnx import ModelProto, TensorProto

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../examples"))

MEMORY = 3 << 30  # limit of the worker's address space, in bytes
HANG_S = float(os.environ.get("BACKPLANE_ONNX_HANG_S", "30"))
NUMBERS = (0, 1, -1, 2, 7, 64, 255, 2**31 - 1, 2**31, -2**31, 2**40, 2**62, 2**63 - 1, -2**63)


# ---- Mutations -----------------------------------------------------------------------------------

def base_models():
    """Returns the bytes and the inputs of unmodified models, which contain many operators."""
    import models
    from backplane_onnx.cases import all_cases
    found = [(proto.SerializeToString(), feeds) for proto, feeds in (make(False) for make in models.MODELS.values())]
    for place, (_, case) in enumerate(all_cases(("node",))):
        if place % 9 == 0 and case.model is not None and case.model.ByteSize() < 20000:
            feeds = {value.name: array for value, array in zip(case.model.graph.input, case.data_sets[0][0]) if isinstance(array, np.ndarray)}
            found.append((case.model.SerializeToString(), feeds))
    return found


def mutate_bytes(data, rng, other):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        place = rng.randrange(len(data))
        kind = rng.randrange(6)
        if kind == 0:
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[place] = rng.choice((0, 1, 127, 128, 255))
        elif kind == 2:
            del data[place:]
        elif kind == 3:
            del data[place:place + rng.randrange(1, 9)]
        elif kind == 4:
            data[place:place] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
        else:
            start = rng.randrange(len(other))
            data[place:place] = other[start:start + rng.randrange(1, 64)]
        if not data:
            return b""
    return bytes(data)


def mutate_model(data, rng):
    """Changes fields of a valid model instead of bytes, so that more files pass the parser and reach later
    code."""
    model = ModelProto.FromString(data)
    graph = model.graph
    for _ in range(rng.choice((1, 1, 2, 4))):
        node = rng.choice(graph.node) if graph.node else None
        names = [name for each in graph.node for name in (*each.input, *each.output)] or [""]
        kind = rng.randrange(11)
        if kind == 0 and node and node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice(names)
        elif kind == 1 and node and node.attribute:
            attribute = rng.choice(node.attribute)
            if attribute.ints:
                attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(NUMBERS)
            else:
                attribute.i, attribute.f = rng.choice(NUMBERS), rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf")))
        elif kind == 2 and node:
            node.op_type = rng.choice(graph.node).op_type if rng.random() < 0.5 else rng.choice(OPERATORS)
        elif kind == 3 and graph.initializer:
            tensor = rng.choice(graph.initializer)
            if tensor.dims:
                tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(NUMBERS)
            else:
                tensor.dims.append(rng.choice(NUMBERS))
        elif kind == 4 and graph.initializer:
            tensor = rng.choice(graph.initializer)
            if tensor.data_type == TensorProto.INT64 and tensor.raw_data:
                tensor.raw_data = struct.pack("<q", rng.choice(NUMBERS)) * (len(tensor.raw_data) // 8)
            else:
                tensor.data_type = rng.randrange(25)
        elif kind == 5 and graph.input:
            dims = rng.choice(graph.input).type.tensor_type.shape.dim
            if dims:
                rng.choice(dims).dim_value = rng.choice(NUMBERS)
        elif kind == 6 and len(graph.node) > 1:
            a, b = rng.randrange(len(graph.node)), rng.randrange(len(graph.node))
            copy = ModelProto().graph.node.add()
            copy.CopyFrom(graph.node[a])
            graph.node[a].CopyFrom(graph.node[b])
            graph.node[b].CopyFrom(copy)
        elif kind == 7 and node:
            del node.input[rng.randrange(len(node.input) + 1):]
        elif kind == 8 and node:
            del node.attribute[:]
        elif kind == 9 and model.opset_import:
            model.opset_import[0].version = rng.choice((1, 6, 7, 9, 11, 13, 17, 23, 28, 1000, -1))
        elif kind == 10 and node:
            node.output.append(rng.choice(names))
    return model.SerializeToString()


OPERATORS = ("Add", "MatMul", "Reshape", "Conv", "Concat", "Gather", "Slice", "Resize", "Expand", "Tile", "Pad", "Range", "ConstantOfShape", "Loop", "If",
             "Scan", "LSTM", "TopK", "Einsum", "OneHot", "ScatterND", "Split", "Attention", "MaxPool", "ConvTranspose", "DFT", "Col2Im", "QuantizeLinear",
             "LayerNormalization", "GridSample", "CumSum", "Trilu", "Cast", "Identity", "SequenceAt", "NonZero", "Unknown")


def mutated(bases, seed):
    rng = random.Random(seed)
    data, feeds = rng.choice(bases)
    if rng.random() < 0.3:
        return mutate_bytes(data, rng, rng.choice(bases)[0]), feeds, rng
    return mutate_model(data, rng), feeds, rng


# ---- Runs ----------------------------------------------------------------------------------------

def defect(rng):
    """Simulates a defect for some files, if the test of this script requests it."""
    kind = os.environ.get("BACKPLANE_ONNX_DEFECT")
    if kind and rng.random() < 0.1:
        if kind == "crash":
            os.kill(os.getpid(), 11)
        if kind == "wrong":
            raise RuntimeError("a defect")
        time.sleep(3600)


def run_one(data, feeds, rng, device):
    """Returns the class of the outcome of a file. Does not catch exceptions that are not allowed."""
    import backplane as bp
    from backplane_onnx import OnnxError, Session
    try:
        session = Session(data, device)
        given = {name: array for name, array in feeds.items() if name in session.input_names or rng.random() < 0.1}
        for name in session.input_names:  # chooses values for inputs that the mutation added or changed
            if name not in given or rng.random() < 0.3:
                kind, extents = session.declared(name)
                shape = [3 if extent is None or not 0 <= extent < 500 else extent for extent in extents]
                given[name] = np.ones(shape if np.prod(shape, dtype=float) < 1e6 else [1], kind)
        session.run(given)
        defect(rng)
        return "runs"
    except (OnnxError, bp.Error) as failure:
        return type(failure).__name__


def work(bases, seed, device_name, pipe):
    """Runs files without end. Writes a line to the pipe before and after each file."""
    import traceback

    import backplane as bp
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    device = bp.open(device_name)
    while True:
        os.write(pipe, f"begin {seed}\n".encode())
        try:
            outcome = run_one(*mutated(bases, seed), device)
        except BaseException as failure:
            outcome = "BAD"
            print(f"seed {seed}: {type(failure).__name__}: {failure}\n{''.join(traceback.format_tb(failure.__traceback__)[-3:])}", flush=True)
        os.write(pipe, f"end {outcome}\n".encode())
        seed += 1


def main():
    parser = argparse.ArgumentParser(description="Runs mutated ONNX files.")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--device", default="reference:0")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one", type=int, metavar="SEED", help="runs one file in this process")
    options = parser.parse_args()
    import warnings
    warnings.simplefilter("ignore")
    bases = base_models()
    if options.one is not None:
        import backplane as bp
        data, feeds, rng = mutated(bases, options.one)
        print(run_one(data, feeds, rng, bp.open(options.device)))
        return 0
    counts, failures, seed, end = Counter(), 0, options.seed, time.monotonic() + options.seconds
    while time.monotonic() < end:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            try:
                work(bases, seed, options.device, write)
            finally:
                os._exit(9)
        os.close(write)
        buffer, ended = b"", ""
        while time.monotonic() < end:
            ready, _, _ = select.select([read], [], [], HANG_S)
            chunk = os.read(read, 65536) if ready else b""
            if not chunk:
                ended = "hang" if not ready else "crash"
                break
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                word, value = line.decode().split()
                if word == "begin":
                    seed = int(value)
                else:
                    counts[value] += 1
        os.kill(child, 9)
        _, status = os.waitpid(child, 0)
        os.close(read)
        if ended:
            failures += 1
            print(f"seed {seed}: {ended} (status {status}); repeat it with --one {seed}", flush=True)
        seed += 1
    failures += counts["BAD"]
    print(f"{sum(counts.values())} files in {options.seconds:.0f} s: {', '.join(f'{count} {name}' for name, count in counts.most_common())}; "
          f"{failures} failures")
    return 1 if failures or not counts else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The command backplane-onnx."""
import argparse
import sys
import time
from typing import Any, Optional

import numpy as np

from .errors import OnnxError

EXIT_BAD_MODEL, EXIT_UNSUPPORTED, EXIT_BAD_INPUT, EXIT_DEVICE, EXIT_DIFFERENT = 3, 4, 5, 6, 7


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="backplane-onnx", description="Runs an ONNX model on a Backplane device.")
    out.add_argument("action", choices=("run", "check", "bench"),
                     help="run: prints the outputs; check: compares them with ONNX Runtime; bench: also times both")
    out.add_argument("model", metavar="MODEL.onnx")
    out.add_argument("--device", help="a device such as reference:0; without it, the choice of libbackplane")
    out.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="an input; other inputs get random numbers")
    out.add_argument("--shape", action="append", default=[], metavar="NAME=2,3", help="the shape of a random input")
    out.add_argument("--output", metavar="FILE.npz", help="writes the outputs")
    out.add_argument("--explain", action="store_true", help="prints the calls of each node")
    out.add_argument("--seconds", type=float, default=2.0, help="time that bench measures each side (default 2)")
    out.add_argument("--tolerance", type=float, default=1e-4, help="largest difference relative to the greatest value (default 1e-4)")
    out.add_argument("--seed", type=int, default=1, help="seed of random inputs")
    return out


def _pairs(texts, option):
    pairs = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals:
            raise ValueError(f"{option} {text}: write NAME=VALUE")
        pairs[name] = value
    return pairs


def feeds_of(session: Any, files: "dict[str, str]", shapes: "dict[str, str]", seed: int) -> "dict[str, np.ndarray]":
    """Returns the values of the inputs: the contents of `files`, and random numbers for all other inputs.
    Random integers are 0 or 1, so that they are valid indices."""
    random, feeds = np.random.default_rng(seed), {}
    for name in [*files, *shapes]:
        if name not in session.input_names:
            raise ValueError(f"there is no input {name!r}; the inputs are {', '.join(session.input_names) or 'none'}")
    for name in session.input_names:
        if name in files:
            feeds[name] = np.load(files[name], allow_pickle=False)
            continue
        kind, extents = session.declared(name)
        shape = [int(each) for each in shapes[name].split(",") if each] if name in shapes else [extent or 1 for extent in extents]
        if kind.kind == "f":
            feeds[name] = random.standard_normal(shape).astype(kind)
        else:
            feeds[name] = random.integers(0, 2, shape).astype(kind)
    return feeds


def difference(ours: "list[Any]", theirs: "list[Any]") -> float:
    """Returns the greatest difference of two outputs, relative to the greatest value of the output."""
    worst = 0.0
    for one, other in zip(ours, theirs):
        a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
        if a.shape != b.shape:
            return float("inf")
        if a.size:
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            gap = np.where(same, 0, np.abs(a - b))
            finite = b[np.isfinite(b)]
            worst = max(worst, float(np.nan_to_num(gap, nan=np.inf).max() / max(np.abs(finite).max(initial=0), 1e-30)) if gap.any() else 0.0)
    return worst


def seconds_of(function: Any, limit: float) -> float:
    """Calls the function repeatedly for `limit` seconds. Returns the least time of a call in seconds."""
    best, end = float("inf"), time.perf_counter() + limit
    while time.perf_counter() < end:
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def runtime_of(path: str, threads: int = 0) -> Any:
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def act(options: argparse.Namespace) -> int:
    from .explain import explain, summary
    from .session import Session
    session = Session(options.model, options.device)
    feeds = feeds_of(session, _pairs(options.input, "--input"), _pairs(options.shape, "--shape"), options.seed)
    start = time.perf_counter()
    program = session.program(feeds)
    ready = time.perf_counter() - start
    print(explain(session, program) if options.explain else summary(session, program).strip())
    outputs = session.run(feeds)
    if options.output:
        np.savez(options.output, **dict(zip(session.output_names, outputs)))
    if options.action == "run":
        for name, array in zip(session.output_names, outputs):
            text = np.array2string(np.asarray(array), threshold=8, precision=5)
            print(f"{name}: {np.asarray(array).dtype} {np.shape(array)} {' '.join(text.split())}")
        return 0
    runtime = runtime_of(options.model)
    gap = difference(outputs, runtime.run(session.output_names, feeds))
    print(f"greatest relative difference from ONNX Runtime: {gap:.2g}")
    if options.action == "bench":
        ours, theirs = seconds_of(lambda: session.run(feeds), options.seconds), seconds_of(lambda: runtime.run(None, feeds), options.seconds)
        print(f"preparation {ready * 1e3:.1f} ms; one run {ours * 1e3:.3f} ms on {session.device.name}, {theirs * 1e3:.3f} ms with ONNX Runtime (CPU)")
    if gap > options.tolerance:
        print(f"backplane-onnx: the outputs differ by {gap:.2g}, and --tolerance is {options.tolerance:g}", file=sys.stderr)
        return EXIT_DIFFERENT
    return 0


def main(arguments: "Optional[list[str]]" = None) -> int:
    """Runs the command, and returns its exit code: 0 after success, 2 for wrong arguments, 3 for a broken
    model, 4 for an unsupported node, 5 for wrong inputs, 6 for a device that fails, 7 if the outputs differ
    from those of ONNX Runtime."""
    options = parser().parse_args(arguments)
    import backplane as bp
    try:
        return act(options)
    except OnnxError as failure:
        print(f"backplane-onnx: {failure}", file=sys.stderr)
        return {"ModelError": EXIT_BAD_MODEL, "UnsupportedNode": EXIT_UNSUPPORTED}.get(type(failure).__name__, EXIT_BAD_INPUT)
    except bp.Error as failure:
        print(f"backplane-onnx: {failure}", file=sys.stderr)
        return EXIT_DEVICE
    except (OSError, ValueError) as failure:
        print(f"backplane-onnx: {failure}; see --help", file=sys.stderr)
        return 2
    except ImportError as failure:
        print(f"backplane-onnx: {failure}; install onnxruntime for check and bench", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

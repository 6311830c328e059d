# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of onnx.backend.test on a device:

   python3 -m backplane_onnx.cases --device reference:0 [--filter TEXT] [--share K/N] [--json FILE]

A case passes if ONNX's own comparison accepts the outputs. The other outcomes are:
- unsupported: UnsupportedNode or InputError was raised.
- rounding: floats exceed the tolerance of the case, but differ by at most one unit in the last place of the
  greatest expected value.
- wrong: the outputs have other values.
- error: any other exception was raised."""
import argparse
import glob
import json
import os
import sys
import time
import warnings
from collections import Counter
from typing import Any, Iterator, Optional

OUTCOMES = ("pass", "unsupported", "rounding", "wrong", "error")
NO_CALL = "no call of the device"  # the message of a case whose outputs the host computes, such as those of Shape
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def all_cases(kinds: "tuple[str, ...]" = KINDS) -> "Iterator[tuple[str, Any]]":
    """Yields (kind, case) for the test cases in the wheel `onnx`. For the kind `real`, onnx downloads models."""
    from onnx.backend.test.loader import load_model_tests
    for kind in kinds:
        for case in load_model_tests(kind=kind):
            yield kind, case


def _data(case: Any, model: Any) -> "Iterator[tuple[list, list]]":
    """Yields the inputs and the expected outputs of a case."""
    import onnx
    from onnx import numpy_helper
    if case.data_sets is not None:
        for inputs, outputs in case.data_sets:
            yield [_array(each) for each in inputs], [_array(each) for each in outputs]
        return
    for folder in sorted(glob.glob(os.path.join(case.model_dir, "test_data_set_*"))):
        def read(prefix, values):
            found = []
            for place in range(len(glob.glob(os.path.join(folder, f"{prefix}_*.pb")))):
                with open(os.path.join(folder, f"{prefix}_{place}.pb"), "rb") as file:
                    raw = file.read()
                kind = values[place].type.WhichOneof("value")
                if kind == "sequence_type":
                    found.append(numpy_helper.to_list(onnx.SequenceProto.FromString(raw)))
                elif kind == "optional_type":
                    found.append(numpy_helper.to_optional(onnx.OptionalProto.FromString(raw)))
                else:
                    found.append(numpy_helper.to_array(onnx.TensorProto.FromString(raw)))
            return found
        yield read("input", model.graph.input), read("output", model.graph.output)


def _reader(model: Any, message: str) -> str:
    """Returns the operator of the first node that reads an input whose name `message` contains."""
    return next((node.op_type for node in model.graph.node for name in node.input if name and f"input {name!r}" in message), "")


def _only_rounded(expected: "list", outputs: "list") -> bool:
    """Returns whether all floats differ by at most one unit in the last place of the greatest expected value."""
    import numpy as np
    from ml_dtypes import finfo
    for one, other in zip(expected, outputs):
        if isinstance(one, list) or one.shape != other.shape or one.dtype != other.dtype or one.dtype.kind not in "fV" or not one.size:
            return False
        a, b = one.astype(np.float64), other.astype(np.float64)
        if not np.isfinite(a).all() or not np.abs(a - b).max() <= float(finfo(one.dtype).eps) * np.abs(a).max():
            return False
    return True


def _array(each: Any) -> Any:
    import onnx
    return onnx.numpy_helper.to_array(each) if isinstance(each, onnx.TensorProto) else each


def run_case(case: Any, device: Any) -> "tuple[str, str, str]":
    """Returns the outcome, the operator and the message. The message of a case that passes is empty, or NO_CALL
    if the case needs no call of the device."""
    import onnx
    from onnx.backend.test.runner import Runner

    from . import InputError, Session, UnsupportedNode
    operator = "none"
    try:
        model = case.model if case.model is not None else onnx.load(os.path.join(case.model_dir, "model.onnx"))
        operator = model.graph.node[0].op_type
        session = Session(model, device)
        for inputs, expected in _data(case, model):
            outputs = session.run(dict(zip(session.input_names, inputs)))
            Runner.assert_similar_outputs(expected, outputs, rtol=case.rtol, atol=case.atol)
    except UnsupportedNode as failure:
        return "unsupported", failure.operator, str(failure)
    except InputError as failure:
        return "unsupported", _reader(model, str(failure)) or operator, str(failure)
    except AssertionError as failure:
        return "rounding" if _only_rounded(expected, outputs) else "wrong", operator, str(failure)
    except TypeError as failure:
        if "Unable to compare expected type" not in str(failure):
            return "error", operator, f"TypeError: {failure}"
        return "unsupported", operator, "the comparison of ONNX fails on a sequence of tensors of rank 0"
    except Exception as failure:  # every exception that is not listed above is an error
        return "error", operator, f"{type(failure).__name__}: {failure}"
    return "pass", operator, "" if session.calls else NO_CALL


def main(arguments: "Optional[list[str]]" = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m backplane_onnx.cases", description="Runs the cases of onnx.backend.test on a device.")
    parser.add_argument("--device", default="reference:0")
    parser.add_argument("--filter", default="", help="a part of the names of the cases")
    parser.add_argument("--share", default="1/1", metavar="K/N", help="only part K of N of the cases")
    parser.add_argument("--json", metavar="FILE", help="writes the outcomes")
    parser.add_argument("--verbose", action="store_true", help="prints each case that does not pass")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    import backplane as bp
    device = bp.open(options.device)
    part, parts = map(int, options.share.split("/"))
    rows, start = [], time.process_time()
    for place, (kind, case) in enumerate(all_cases()):
        if options.filter in case.name and place % parts == part - 1:
            if options.verbose:
                print(case.name, file=sys.stderr, flush=True)
            outcome, operator, message = run_case(case, device)
            rows.append({"kind": kind, "name": case.name, "outcome": outcome, "operator": operator, "message": message[:600]})
            if options.verbose and outcome != "pass":
                print(f"{outcome:12}{case.name}: {message[:400]}", flush=True)
    counts = Counter(row["outcome"] for row in rows)
    others = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES[1:])
    print(f"{options.device}: {counts['pass']} of {len(rows)} cases pass ({100 * counts['pass'] / max(len(rows), 1):.1f} %), {others}; "
          f"{time.process_time() - start:.0f} s of CPU time")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": options.device, "cases": rows}, file, indent=1)
    return 1 if counts["wrong"] or counts["error"] else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Text that shows to which Backplane calls a model is mapped."""
from collections import Counter
from typing import Any

from .builder import Immediate, Step
from .fusion import FUSION
from .program import OUTPUTS, Program
from .session import Session
from .views import View


def _operand(each: Any) -> str:
    if isinstance(each, Immediate):
        return f"{each.value:g}" if isinstance(each.value, float) else str(each.value)
    if not isinstance(each, View):
        return "-"
    text = f"{each.dtype}[{','.join(map(str, each.shape))}]"
    return text if each.is_contiguous else text + "~"


def _call(program: Program, step: Step, once: bool) -> str:
    path = "once" if once else program.path(step)
    if program.packed(step):
        path += ", packed"
    return f"    {step.op:18}{path:16}{', '.join(map(_operand, step.inputs))} -> {', '.join(map(_operand, step.outputs))}"


def explain(session: Session, program: Program) -> str:
    """Returns a text with one line for each node and each call. `~` marks a view that is not contiguous. `once`
    marks a call whose operands are constants; the device runs it once, before the first run of the model."""
    once, kept = set(map(id, program.once)), set(map(id, program.once + program.steps))
    lines = [f"{session.model.name} on {session.device.name}: {len(program.origins)} nodes, {len(program.steps)} calls for each run, "
             f"{len(program.once)} calls once"]
    for text, how, steps in program.origins:
        calls = [_call(program, step, id(step) in once) for step in steps if id(step) in kept]
        lines.append(f"  {text}: {how}{', fused into another call' if steps and not calls else '' if calls else ', no call'}")
        lines += calls
    own = [step for step in program.once + program.steps if step.node in (FUSION, OUTPUTS)]
    lines += [_call(program, step, id(step) in once) + f"  # {step.node}" for step in own]
    if session.host_inputs:
        lines.append(f"  the host reads the inputs {', '.join(sorted(session.host_inputs))}, and each new value makes a new program")
    lines.append(summary(session, program))
    return "\n".join(lines)


def summary(session: Session, program: Program) -> str:
    """Returns a line with the numbers of calls and bytes."""
    paths = Counter(program.path(step) for step in program.steps)
    graph = program.graph
    launch = "no call" if graph is None else f"{graph.nodes} recorded executions, launched by {'the plugin' if graph.native else 'libbackplane'}"
    return (f"  {', '.join(f'{count} {path}' for path, count in sorted(paths.items())) or 'no calls'}; {launch}; {program.device_bytes} bytes for "
            f"tensors, {program.unplanned_bytes} without reuse, {session.constant_bytes} for constants of the model")

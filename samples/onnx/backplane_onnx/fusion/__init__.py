# SPDX-License-Identifier: Apache-2.0
"""Replaces neighbouring calls by one call, before memory is placed. Each module has one pattern."""
from typing import Iterable

from .. import memory
from ..builder import Builder
from ..views import Storage
from . import attention, epilogue, gelu, linear
from .uses import Uses

FUSION = epilogue.FUSION


def fuse(builder: Builder, outputs: "Iterable[Storage]") -> None:
    """Changes the calls of the builder. `outputs` lists storages that the caller reads."""
    outputs = list(outputs)
    memory.divide(builder.steps)  # marks the storages that depend on constants only
    for pattern in (gelu.replace, attention.replace, linear.replace):
        uses = Uses(builder.steps, outputs)
        for step in builder.steps:
            pattern(step, uses)
        builder.steps[:] = [step for step in builder.steps if step not in uses.gone]
    epilogue.fuse(builder, outputs)

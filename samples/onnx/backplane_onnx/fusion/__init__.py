# SPDX-License-Identifier: Apache-2.0
"""Replaces groups of calls by one call, before memory is placed. Each module replaces one pattern."""
from typing import Iterable

from .. import memory
from ..builder import Builder
from ..views import Storage
from . import attention, epilogue, gelu, linear
from .uses import Uses

FUSION = epilogue.FUSION


def fuse(builder: Builder, outputs: "Iterable[Storage]") -> None:
    """Changes the calls of the builder. `outputs` are the storages of the program's outputs."""
    outputs = list(outputs)
    memory.divide(builder.steps)  # sets storage.fixed if a storage depends on constants only
    for pattern in (gelu.replace, attention.replace, linear.replace):
        uses = Uses(builder.steps, outputs)
        for step in builder.steps:
            pattern(step, uses)
        builder.steps[:] = [step for step in builder.steps if step not in uses.gone]
    epilogue.fuse(builder, outputs)

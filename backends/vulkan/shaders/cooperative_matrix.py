#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Translates SPV_NV_cooperative_matrix to SPV_KHR_cooperative_matrix: cooperative_matrix.py IN.spv OUT.spv [bf16]

Every glslc compiles the NV extension, but some do not compile the KHR extension. The extensions use different opcodes,
and encode the layout of a matrix differently. A KHR matrix type also states its use (`a`, `b` or accumulator), and the
KHR multiplication states which integers are signed. The script derives the use from the specialisation constants that
give the size of a matrix; specialization.h has their ids. With `bf16`, 16-bit elements are bf16 (SPV_KHR_bfloat16),
for which GLSL has no name."""
import array
import os
import re
import sys

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "specialization.h"), encoding="utf-8") as header:
    IDS = dict(re.findall(r"#define BACKPLANE_ID_MATRIX_([MNK]) (\d+)", header.read()))
M, N, K = (int(IDS[name]) for name in "MNK")
USES = {(M, K): 0, (K, N): 1, (M, N): 2}  # 0 to 2 are MatrixAKHR, MatrixBKHR and MatrixAccumulatorKHR
SIGNED = 0xF                              # the matrices `a`, `b`, `c` and the result are signed
CAPABILITY, EXTENSION, DECORATE, SPEC_ID = 17, 10, 71, 1
TYPE_INT, TYPE_FLOAT, CONSTANT_TRUE, CONSTANT_FALSE, CONSTANT = 21, 22, 41, 42, 43
NV = {"capability": 5357, "type": 5358, "load": 5359, "store": 5360, "multiply": 5361}
KHR = {"capability": 6022, "type": 4456, "load": 4457, "store": 4458, "multiply": 4459}
BFLOAT16_CAPABILITIES, BFLOAT16_ENCODING, FLOAT16_CAPABILITY = (5116, 5118), 0, 9


def text(name):
    data = name.encode() + b"\0"
    return array.array("I", data + b"\0" * (-len(data) % 4)).tolist()


def instructions(words):
    at = 5
    while at < len(words):
        count = words[at] >> 16
        yield words[at] & 0xFFFF, words[at + 1:at + count]
        at += count


def translate(words, bf16):
    bound, out = words[3], []
    spec, layouts, integers, signed = {}, {}, set(), set()  # keys and elements are SPIR-V ids
    made = False

    def emit(opcode, operands):
        out.extend([(len(operands) + 1) << 16 | opcode, *operands])

    for opcode, operands in instructions(words):
        if opcode == CAPABILITY and operands == [NV["capability"]]:
            emit(CAPABILITY, [KHR["capability"]])
            continue
        if opcode == CAPABILITY and operands == [FLOAT16_CAPABILITY] and bf16:
            for capability in BFLOAT16_CAPABILITIES:
                emit(CAPABILITY, [capability])
            continue
        if opcode == EXTENSION and operands == text("SPV_NV_cooperative_matrix"):
            for name in ["SPV_KHR_cooperative_matrix"] + ["SPV_KHR_bfloat16"] * bf16:
                emit(EXTENSION, text(name))
            continue
        if opcode == DECORATE and operands[1] == SPEC_ID:
            spec[operands[0]] = operands[2]
        elif opcode == TYPE_FLOAT and operands[1:] == [16] and bf16:
            operands = [operands[0], 16, BFLOAT16_ENCODING]
        elif opcode in (CONSTANT_TRUE, CONSTANT_FALSE):
            layouts[operands[1]] = int(opcode == CONSTANT_TRUE)  # 1 is ColumnMajorKHR, and 0 is RowMajorKHR
        elif opcode == NV["type"]:
            result, component, scope, rows, columns = operands
            if component in integers:
                signed.add(result)
            opcode, operands = KHR["type"], [result, component, scope, rows, columns, bound + USES[spec[rows], spec[columns]]]
        elif opcode == NV["load"]:
            result_type, result, pointer, stride, column_major, *access = operands
            opcode, operands = KHR["load"], [result_type, result, pointer, bound + layouts[column_major], stride, *access]
        elif opcode == NV["store"]:
            pointer, value, stride, column_major, *access = operands
            opcode, operands = KHR["store"], [pointer, value, bound + layouts[column_major], stride, *access]
        elif opcode == NV["multiply"]:
            opcode, operands = KHR["multiply"], operands + [SIGNED] * (operands[0] in signed)
        elif opcode in range(5357, 5363):
            sys.exit(f"the cooperative matrix instruction {opcode} is unknown to this script")
        emit(opcode, operands)
        if opcode == TYPE_INT:
            integers.add(operands[0])
            if operands[1:] == [32, 0] and not made:  # the constants 0, 1 and 2 get three ids, starting at `bound`
                made = True
                for number in range(3):
                    emit(CONSTANT, [operands[0], bound + number, number])
    return words[:3] + [bound + 3] + words[4:5] + out


source, target, *options = sys.argv[1:]
with open(source, "rb") as file:
    module = array.array("I", file.read()).tolist()
with open(target, "wb") as file:
    array.array("I", translate(module, options == ["bf16"])).tofile(file)

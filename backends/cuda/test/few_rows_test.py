#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks products with few rows whose k exceeds the suite's: few_rows_test.py COMMAND LIBRARY.

Local memory holds a part of each row of a, and the suite's products fit into one part. The script computes the exact
sums from the inputs that `backplane run` prints, and the bound of class D (docs/spec/accuracy.md)."""
import json
import math
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import certified
import tap

command, library = sys.argv[1:]
certified.skip_without_device(command, library)


def run(*arguments):
    """Runs an operator on random data, and returns the tensors: (inputs, output)."""
    done = subprocess.run([command, "--json", "--plugin-path", os.path.dirname(library), "run", *arguments, "--device", "cuda:0", "--all",
                           "--repeat", "0"], capture_output=True, text=True)
    if done.returncode != 0:
        tap.check(" ".join(arguments), False, done.stdout + done.stderr)
        return None
    said = json.loads(done.stdout)
    return [each["values"] for each in said["inputs"]], said["outputs"][0]["values"]


def check(name, k, terms_of, output):
    """Checks each output against the sum of `terms_of(index)`."""
    worst = 0.0
    for index, y in enumerate(output):
        terms = terms_of(index)
        bound = 2 * (k + 2) * 2.0**-24 * math.fsum(map(abs, terms)) + 2.0**-24 * abs(y)
        worst = max(worst, abs(y - math.fsum(terms)) / bound)
    tap.check(f"{name}: the error is within the bound", len(output) != 0 and worst <= 1, f"{worst} of the bound")


for rows, k, columns in ((1, 9000, 36), (3, 2100, 20), (11, 2100, 20)):
    for layout, strides in (("contiguous rows", f"{columns},1"), ("contiguous columns", f"1,{k}")):
        tensors = run("matmul", "--shape", f"{rows}x{k}", "--shape", f"{k}x{columns}", "--strides", f"{k},1", "--strides", strides)
        if tensors is None:
            continue
        (a, b), y = tensors
        check(f"matmul of {rows} x {k} by {k} x {columns}, {layout} of b", k,
              lambda i: [a[i // columns * k + j] * b[j * columns + i % columns] for j in range(k)], y)

# The cases include blocks whose weights are and are not a multiple of 16 bytes, columns that do and do not begin at a
# multiple of 16 bytes, and columns whose last 16 bytes are and are not full.
for rows, k, bits, block in ((1, 9216, 4, 32), (1, 9100, 4, 32), (6, 2112, 4, 48), (16, 2100, 4, 32), (1, 5000, 8, 40), (3, 5008, 8, 16)):
    columns, blocks = 19, -(-k // block)
    tensors = run("quantized_matmul", "--shape", f"{rows}x{k}", "--shape", f"{columns}x{k * bits // 8}", "--shape", f"{columns}x{blocks}",
                  "--attr", f"weight_bits={bits}", "--attr", f"block={block}")
    if tensors is None:
        continue
    (a, w, scales), y = tensors

    def terms_of(i):
        row, column = divmod(i, columns)
        terms = []
        for j in range(k):
            if bits == 4:
                weight = int(w[column * (k // 2) + j // 2]) >> (4 * (j % 2)) & 15
            else:
                weight = int(w[column * k + j])
            terms.append(a[row * k + j] * weight * scales[column * blocks + j // block])
        return terms

    check(f"quantized_matmul of {rows} x {k}, {bits} bits, blocks of {block}", k, terms_of, y)
tap.done()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures training steps and small calls on PyTorch's CPU and on devices, in turns: bench.py [--threads N]
[--write FILE] DEVICE... Prints a table of the least CPU times of the process. `--write` replaces the table in a
page. Environment variables such as BACKPLANE_ONEDNN_THREADS set the threads of plugins."""
import argparse
import os
import sys
import time

import torch
import torch.nn.functional as F

import backplane_torch
from networks import Block, perceptron

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../examples"))
import digits_cnn


def training_step(make_network, make_inputs, classes):
    """Returns a function on(device), which returns a training step on this device. The step waits for its loss."""
    def on(device):
        torch.manual_seed(0)
        network, inputs = make_network().to(device), make_inputs().to(device)
        targets = torch.randint(0, classes, network(inputs).shape[:1]).to(device)
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, fused=True)

        def step():
            optimizer.zero_grad()
            loss = F.cross_entropy(network(inputs), targets)
            loss.backward()
            optimizer.step()
            return loss.item()
        return step
    return on


def item(device):
    number = torch.ones((), device=device)
    return number.item


def sum_of_four(device):
    a, b = torch.ones(4, device=device), torch.ones(4, device=device)
    return lambda: a + b


# Each entry is a name, a function of a device that returns the body to measure, and the number of calls per
# round.
subjects = [
    ("digits network (batch 64)", training_step(digits_cnn.make_network, lambda: torch.randn(64, 1, 8, 8), 10), 20),
    ("perceptron (batch 64)", training_step(perceptron, lambda: torch.randn(64, 64), 10), 100),
    ("GPT block (512 words, width 64)", training_step(lambda: Block(50, 64, 64, 4), lambda: torch.randint(0, 50, (8, 64)), 50), 20),
    ("`item()` of an idle device", item, 5000),
    ("`a + b` of 4 elements", sum_of_four, 5000),
]


def least_times(make_body, devices, calls, rounds=8):
    """Returns the least CPU time of a call on each device, in seconds. The devices take turns."""
    bodies = [make_body(device) for device in devices]
    least = [float("inf")] * len(devices)
    for _ in range(rounds):
        for i, (device, body) in enumerate(zip(devices, bodies)):
            for _ in range(3):
                body()
            begin = time.process_time()
            for _ in range(calls):
                body()
            if device.type != "cpu":
                torch.accelerator.synchronize(device)
            least[i] = min(least[i], (time.process_time() - begin) / calls)
    return least


def text(seconds):
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.2f} µs"


def main():
    parser = argparse.ArgumentParser(description="Measures PyTorch's CPU and devices.")
    parser.add_argument("devices", nargs="+")
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch's CPU")
    parser.add_argument("--write", help="the page whose table is replaced")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    backplane_torch.forbid_fallbacks()
    devices = [torch.device("cpu"), *map(backplane_torch.device, arguments.devices)]
    names = [name.split(":")[0] for name in arguments.devices]
    rows = [f"| CPU time | PyTorch's CPU | {' | '.join(names)} |", "|---" * (len(devices) + 1) + "|"]
    for name, make_body, calls in subjects:
        least = least_times(make_body, devices, calls)
        rows.append(f"| {name} | {text(least[0])} | " + " | ".join(f"{text(each)} ({each / least[0]:.2f})" for each in least[1:]) + " |")
        print(rows[-1], flush=True)
    if arguments.write:
        begin_mark, end_mark = f"<!-- from bench.py, {arguments.threads} -->", f"<!-- end of bench.py, {arguments.threads} -->"
        with open(arguments.write, encoding="utf-8") as file:
            before, rest = file.read().split(begin_mark)
        with open(arguments.write, "w", encoding="utf-8") as file:
            file.write("\n".join([before + begin_mark, *rows, end_mark]) + rest.split(end_mark)[1])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a convolutional network on 1,797 handwritten digits, on a device that the command line names:
digits_cnn.py [DEVICE] [--epochs N] [--seed N]. DEVICE is "plugin" or "plugin:index"; the default is the first
device."""
import argparse
import gzip
import math
import os
import time

import torch
import torch.nn.functional as F

import backplane_torch

data_file = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../digits/data/digits.csv.gz")


def read_digits(seed):
    """Returns the images and labels of the training set, and those of the test set. A fifth of the digits is
    the test set."""
    with gzip.open(data_file, "rt", encoding="ascii") as file:
        table = torch.tensor([[int(number) for number in line.split(",")] for line in file])
    table = table[torch.randperm(len(table), generator=torch.Generator().manual_seed(seed))]
    images, labels = table[:, :64].float().div(16).view(-1, 1, 8, 8), table[:, 64]
    held_out = len(table) // 5
    return images[held_out:], labels[held_out:], images[:held_out], labels[:held_out]


def make_network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1, bias=False), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, padding=1, bias=False), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(512, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))


def main():
    parser = argparse.ArgumentParser(description="Trains a convolutional network on handwritten digits.")
    parser.add_argument("device", nargs="?", help='"plugin" or "plugin:index"')
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    device = backplane_torch.device(arguments.device) if arguments.device else torch.device("backplane:0")
    name = backplane_torch.devices()[device.index]

    torch.manual_seed(arguments.seed)
    network = make_network().to(device)
    train_images, train_labels, test_images, test_labels = (each.to(device) for each in read_digits(arguments.seed))
    optimizer = torch.optim.AdamW(network.parameters(), lr=6e-3, fused=True)
    batch_size = 64
    steps = arguments.epochs * math.ceil(len(train_images) / batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=steps)
    order = torch.Generator().manual_seed(arguments.seed)

    start = time.monotonic()
    for epoch in range(arguments.epochs):
        total = torch.zeros((), device=device)
        for rows in torch.randperm(len(train_images), generator=order).split(batch_size):
            rows = rows.to(device)
            optimizer.zero_grad()
            loss = F.cross_entropy(network(train_images[rows]), train_labels[rows])
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.detach() * len(rows)
        print(f"epoch {epoch + 1}/{arguments.epochs}  loss {total.item() / len(train_images):.4f}", flush=True)
    network.eval()
    with torch.no_grad():
        right = (network(test_images).argmax(1) == test_labels).sum().item()
    seconds = time.monotonic() - start
    fallbacks = sum(backplane_torch.fallbacks().values())
    print(f"{100 * right / len(test_labels):.2f} % of {len(test_labels)} held-out digits read correctly on {name} ({device}), "
          f"{seconds:.1f} s, {fallbacks} CPU fallbacks")


if __name__ == "__main__":
    main()

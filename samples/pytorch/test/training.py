#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains networks on devices and on the CPU, from the same initial parameters, and compares the results:
training.py DEVICE..."""
import os
import sys

import torch
import torch.nn.functional as F

import backplane_torch
from networks import Block, Encoder, UNet, convolutions, perceptron

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import tap

tolerance = 1e-5


# Adam divides a gradient by its magnitude. Thus it turns the rounding errors of tiny gradients into whole
# steps. With these learning rates, the difference of two devices stays below the tolerance.
optimizers = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-4, eps=1e-4),
    "AdamW, fused, with a rate on the device": lambda parameters: torch.optim.AdamW(parameters, lr=torch.tensor(1e-4, device=parameters[0].device), eps=1e-4, fused=True),
    "AdamW, fused": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, eps=1e-4, fused=True),
}
networks = {
    "perceptron": (perceptron, lambda random: (torch.randn(32, 64, generator=random), torch.randint(0, 10, (32,), generator=random)), optimizers),
    "convolutions": (convolutions, lambda random: (torch.randn(16, 1, 8, 8, generator=random), torch.randint(0, 10, (16,), generator=random)), ["SGD"]),
    "encoder": (Encoder, lambda random: (torch.randint(0, 50, (4, 16), generator=random), torch.randint(0, 50, (64,), generator=random)), ["AdamW, fused"]),
    "diffusion U-Net": (UNet, lambda random: (torch.randn(4, 1, 8, 8, generator=random), torch.randint(0, 10, (4,), generator=random)), ["AdamW, fused"]),
    "GPT block": (Block, lambda random: (torch.randint(0, 50, (4, 16), generator=random), torch.randint(0, 50, (64,), generator=random)), ["SGD", "AdamW, fused"]),
}


def train(device, make_network, make_data, make_optimizer, steps=12):
    """Returns the losses of all steps, and the final state of the network."""
    torch.manual_seed(0)
    network = make_network().to(device)
    optimizer, random, losses = make_optimizer(list(network.parameters())), torch.Generator().manual_seed(5), []
    for _ in range(steps):
        inputs, targets = make_data(random)
        optimizer.zero_grad()
        loss = F.cross_entropy(network(inputs.to(device)), targets.to(device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses], [each.cpu() for each in network.state_dict().values()]


backplane_torch.forbid_fallbacks()
for name, (make_network, make_data, chosen) in networks.items():
    for optimizer in chosen:
        arguments = (make_network, make_data, optimizers[optimizer])
        losses, state = train("cpu", *arguments)
        for device_name in sys.argv[1:]:
            found, found_state = train(backplane_torch.device(device_name), *arguments)
            of_loss = max(abs(a - b) for a, b in zip(losses, found))
            of_state = max((a - b).abs().max().item() for a, b in zip(state, found_state))
            tap.check(f"{device_name}: {name}, {optimizer}: the loss differs by {of_loss:.0e}, the state by {of_state:.0e}",
                      of_loss < tolerance and of_state < tolerance and losses[0] != losses[-1], f"losses {losses} and {found}")
tap.done()

# SPDX-License-Identifier: Apache-2.0
"""Prints the table of the ATen overloads that have a kernel: python -m backplane_torch.overloads."""
import torch

import backplane_torch  # noqa: F401  registers the overloads


def main():
    flat = torch.ops.backplane.overloads()
    families = {}
    for family, overload in zip(flat[::2], flat[1::2]):
        families.setdefault(family, []).append(f"`{overload}`")
    print("| family | overloads |\n|---|---|")
    for family, overloads in sorted(families.items()):
        print(f"| {family} | {' '.join(sorted(overloads))} |")


if __name__ == "__main__":
    main()

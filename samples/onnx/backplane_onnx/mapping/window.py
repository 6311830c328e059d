# SPDX-License-Identifier: Apache-2.0
"""Strides and padding of the windows of convolutions and pooling."""
from typing import NamedTuple

from ..node import Node


class Window(NamedTuple):
    """The parameters of a sliding window. `extra` is the part of the padding `after` that only ceil_mode adds."""

    kernel: "tuple[int, ...]"
    stride: "tuple[int, ...]"
    dilation: "tuple[int, ...]"
    before: "tuple[int, ...]"
    after: "tuple[int, ...]"
    out: "tuple[int, ...]"
    extra: "tuple[int, ...]"

    def attributes(self, **more):
        return dict(spatial_rank=len(self.kernel), stride=self.stride, dilation=self.dilation, pad_begin=self.before, pad_end=self.after, **more)


def window_of(n: Node, image, kernel) -> Window:
    """Returns the window of a node for an image and a kernel with these extents."""
    rank = len(image)
    if not 1 <= rank <= 3:
        n.fail(f"the image has {rank} spatial dimensions; Backplane has 1 to 3")
    stride, dilation = n.attr("strides") or [1] * rank, n.attr("dilations") or [1] * rank
    pads, auto, ceil = n.attr("pads") or [0] * (2 * rank), n.attr("auto_pad", "NOTSET"), n.attr("ceil_mode", 0)
    if any(len(each) != rank for each in (kernel, stride, dilation)) or len(pads) != 2 * rank or min([*kernel, *stride, *dilation]) < 1 or min(pads) < 0:
        n.fail(f"kernel {list(kernel)}, strides {stride}, dilations {dilation} and pads {pads} do not fit an image of {rank} dimensions")
    before, after, out, extra = [], [], [], []
    for d in range(rank):
        span = dilation[d] * (kernel[d] - 1) + 1
        low, high = pads[d], pads[rank + d]
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-image[d] // stride[d])
            total = max((count - 1) * stride[d] + span - image[d], 0)
            low = total // 2 if auto == "SAME_UPPER" else total - total // 2
            high = total - low
        elif auto == "VALID":
            low = high = 0
        padded = image[d] + low + high
        if padded < span:
            n.fail(f"the kernel {list(kernel)} is larger than the padded image {list(image)}")
        count = (padded - span) // stride[d] + 1
        more = 0
        if ceil and (padded - span) % stride[d] and count * stride[d] < image[d] + low:
            count += 1
            more = (count - 1) * stride[d] + span - padded
        before.append(low)
        after.append(high + more)
        out.append(count)
        extra.append(more)
    return Window(*map(tuple, (kernel, stride, dilation, before, after, out, extra)))

# SPDX-License-Identifier: Apache-2.0
"""The networks that training.py and bench.py train."""
import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    """A GPT with one block: embeddings, causal attention and a perceptron. A layer norm precedes attention, and
    another one precedes the perceptron."""

    def __init__(self, words=50, places=16, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.words, self.places = torch.nn.Embedding(words, width), torch.nn.Embedding(places, width)
        self.norm1, self.norm2, self.norm3 = (torch.nn.LayerNorm(width) for _ in range(3))
        self.projection, self.output = torch.nn.Linear(width, 3 * width, bias=False), torch.nn.Linear(width, width)
        self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.head = torch.nn.Linear(width, words)

    def forward(self, tokens):
        batch, length = tokens.shape
        x = self.words(tokens) + self.places(torch.arange(length, device=tokens.device))
        q, k, v = self.projection(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.output(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        x = x + self.narrow(F.gelu(self.wide(self.norm2(x))))
        return self.head(self.norm3(x)).flatten(0, 1)


class Residual(torch.nn.Module):
    """Two convolutions, each after a group norm. Between them, adds a projection of the embedded diffusion time."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.GroupNorm(4, inputs), torch.nn.GroupNorm(4, outputs)
        self.conv1, self.conv2 = torch.nn.Conv2d(inputs, outputs, 3, padding=1), torch.nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = torch.nn.Linear(16, outputs)
        self.skip = torch.nn.Conv2d(inputs, outputs, 1) if inputs != outputs else torch.nn.Identity()

    def forward(self, x, time):
        hidden = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.conv2(F.silu(self.norm2(hidden))) + self.skip(x)


class UNet(torch.nn.Module):
    """A diffusion U-Net with one level. The pixels of the small image attend to each other."""

    def __init__(self):
        super().__init__()
        self.time = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.SiLU(), torch.nn.Linear(16, 16))
        self.first, self.down = torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.before, self.middle, self.after = Residual(8, 8), Residual(16, 16), Residual(24, 8)
        self.attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        self.up, self.last = torch.nn.Upsample(scale_factor=2, mode="nearest"), torch.nn.Conv2d(8, 10, 3, padding=1)

    def forward(self, image):
        angles = image.mean((1, 2, 3))[:, None] * torch.exp(torch.arange(4, device=image.device) * -0.5)
        time = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        large = self.before(self.first(image), time)
        small = self.middle(self.down(large), time)
        pixels = small.flatten(2).transpose(1, 2)
        small = small + self.attention(pixels, pixels, pixels, need_weights=False)[0].transpose(1, 2).reshape(small.shape)
        return self.last(self.after(torch.cat([self.up(small), large], 1), time)).mean((2, 3))


class Encoder(torch.nn.Module):
    """An encoder as in BERT: embeddings and two layers. Each token attends to all other tokens except padding."""

    def __init__(self, words=50, places=16, width=32):
        super().__init__()
        self.words, self.places, self.norm = torch.nn.Embedding(words, width), torch.nn.Embedding(places, width), torch.nn.LayerNorm(width)
        layer = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.layers, self.head = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.nn.Linear(width, words)

    def forward(self, tokens):
        x = self.norm(self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device)))
        return self.head(self.layers(x, src_key_padding_mask=tokens == 0)).flatten(0, 1)


def perceptron():
    return torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64), torch.nn.Tanh(), torch.nn.Linear(64, 10))


def convolutions():
    return torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3, padding=1, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                               torch.nn.Conv2d(8, 16, 3, stride=2, padding=1), torch.nn.GELU(), torch.nn.Flatten(), torch.nn.Linear(64, 10))

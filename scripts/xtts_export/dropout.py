"""Dropout whose mask is a function of one integer.

ONNX's own random operators keep hidden state in the session, so a resumed run would draw other masks. Here the mask is
integer arithmetic on (seed, site, row, column): the same in PyTorch and in ONNX Runtime, on a CPU and on a GPU.
"""

import torch
from torch import Tensor, nn

# Largest primes below 2^31: squares of residues fit int64, and two moduli use all 63 bits of the seed.
_PRIME_A, _PRIME_B = 2147483647, 2147483629
# (P-1)*P + (P-1) < 2^31, so that the per-element arithmetic fits int32, which is twice as fast.
_PRIME_SMALL = 46337


def _hash_axis(count: int, salt: int, seed: Tensor) -> Tensor:
    """One residue below _PRIME_SMALL for each index of an axis."""
    x = (torch.arange(count, device=seed.device) * 7919 + seed % _PRIME_A + salt * 1299709) % _PRIME_A
    x = (x * x + seed % _PRIME_B + 12345) % _PRIME_A
    x = (x * x + 67891) % _PRIME_A
    return (x % _PRIME_SMALL).to(torch.int32)


def dropout(x: Tensor, rate: float, seed: Tensor, site: int) -> Tensor:
    """Drops elements of x[B, T, D] with probability rate and scales the others by 1/(1-rate).

    seed is an i64 scalar; a negative one returns x itself. site numbers the places of a model.
    """
    keep = kept(*x.shape, rate, seed, site)
    off = (seed < 0).to(torch.float32)
    # In f32: bf16 would round the scale, and with it the mean of what is kept.
    return (x * (keep * ((1 - off) / (1 - rate)) + off)).to(x.dtype)


def kept(rows: int, time: int, width: int, rate: float, seed: Tensor, site: int) -> Tensor:
    """f32[rows, time, width]: 1 for what dropout keeps, 0 for what it drops."""
    row = _hash_axis(rows * time, 2 * site + 1, seed).view(rows, time, 1)
    column = _hash_axis(width, 2 * site + 2, seed)
    y = (row * column + row) % _PRIME_SMALL
    y = (y * y + column) % _PRIME_SMALL
    return (y >= int(rate * _PRIME_SMALL)).to(torch.float32)


class Dropout(nn.Module):
    """dropout with its rate and site, for use in a model."""

    def __init__(self, rate: float, site: int):
        super().__init__()
        self.rate, self.site = rate, site

    def forward(self, x: Tensor, seed: Tensor) -> Tensor:
        return dropout(x, self.rate, seed, self.site)

"""PyTorch's functions of signals, written with others: convolutions, pools, windows, padding, resampling, Fourier transforms."""

import torch

from . import convolutions, pads, resample, spectrum, windows
from .complexes import Complex


def _pad(x: torch.Tensor | Complex, pad: list[int], mode: str = "constant", value: float | None = None) -> torch.Tensor | Complex:
    return Complex(*(pads.pad(part, pad, mode, value) for part in (x.real, x.imag))) if isinstance(x, Complex) else pads.pad(x, pad, mode, value)


FUNCTIONS = (
    *convolutions.FUNCTIONS, *windows.FUNCTIONS, *resample.FUNCTIONS, *spectrum.FUNCTIONS,
    (torch.nn.functional, "pad", _pad),
)

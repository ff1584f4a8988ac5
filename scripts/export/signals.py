"""PyTorch's functions of signals, written with others: convolutions, pools, windows, padding, resampling, Fourier transforms."""

import torch

from . import convolutions, pads, resample, spectrum, windows

FUNCTIONS = (
    *convolutions.FUNCTIONS, *windows.FUNCTIONS, *resample.FUNCTIONS, *spectrum.FUNCTIONS,
    (torch.nn.functional, "pad", pads.pad),
)

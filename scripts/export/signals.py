"""PyTorch's functions of signals, written with others: convolutions, pools, windows, padding, resampling."""

import torch

from . import convolutions, pads, resample, windows

FUNCTIONS = (
    *convolutions.FUNCTIONS, *windows.FUNCTIONS, *resample.FUNCTIONS,
    (torch.nn.functional, "pad", pads.pad),
)

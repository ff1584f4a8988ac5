"""Window functions by their formulas, as torch.hamming_window documents them: ONNX has other coefficients, or lacks them."""

import math

import numpy as np
import torch
from torch import Tensor

from . import refusal
from .refusal import Refusal

_LINSPACE = torch.linspace


def _angles(length: int, periodic: bool) -> Tensor:
    """2 pi k / n for each place k. One place alone is at pi, where the window is 1."""
    if isinstance(length, int) and length < 2:
        return torch.full([length], math.pi)
    return torch.arange(length, dtype=torch.float32) * (2 * math.pi / (length if periodic else length - 1))


def _hann(window_length: int, periodic: bool = True, *, dtype: torch.dtype | None = None, **options) -> Tensor:
    return (0.5 - 0.5 * _angles(window_length, periodic).cos()).to(dtype or torch.get_default_dtype())


def _hamming(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: torch.dtype | None = None, **options) -> Tensor:
    return (alpha - beta * _angles(window_length, periodic).cos()).to(dtype or torch.get_default_dtype())


def _blackman(window_length: int, periodic: bool = True, *, dtype: torch.dtype | None = None, **options) -> Tensor:
    angles = _angles(window_length, periodic)
    return (0.42 - 0.5 * angles.cos() + 0.08 * (2 * angles).cos()).to(dtype or torch.get_default_dtype())


def _bartlett(window_length: int, periodic: bool = True, *, dtype: torch.dtype | None = None, **options) -> Tensor:
    return (1 - (_angles(window_length, periodic) / math.pi - 1).abs()).to(dtype or torch.get_default_dtype())


def _kaiser(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: torch.dtype | None = None, **options) -> Tensor:
    """Of a fixed length: its Bessel function has no form in ONNX."""
    if not isinstance(window_length, int):
        raise Refusal("kaiser_window has a dynamic length", "give it a number, or use torch.hann_window", refusal.here())
    values = np.kaiser(window_length + periodic, beta)[:window_length] if window_length > 1 else np.ones(window_length)
    return torch.tensor(values.tolist(), dtype=dtype or torch.get_default_dtype())


def _linspace(start: float, end: float, steps: int, *, dtype: torch.dtype | None = None, **options) -> Tensor:
    """Of a dynamic count by its formula: PyTorch computes a fixed count."""
    if isinstance(steps, int):
        return _LINSPACE(start, end, steps, dtype=dtype, **options)
    places = torch.arange(steps, dtype=torch.float32)
    return (start + places * ((end - start) / places[-1:].clamp(min=1.0))).to(dtype or torch.get_default_dtype())


FUNCTIONS = (
    (torch, "hann_window", _hann), (torch, "hamming_window", _hamming), (torch, "blackman_window", _blackman), (torch, "bartlett_window", _bartlett),
    (torch, "kaiser_window", _kaiser), (torch, "linspace", _linspace),
)

"""Fourier transforms as products with matrices of cosines and sines, and the short-time transforms made of them.

A large transform has two steps, each with a small matrix (Cooley and Tukey 1965): with n = a * b, elements b * i + j and frequencies k + a * l,

    X[k + a l] = sum over j of exp(-2 pi i j l / b) exp(-2 pi i j k / n) sum over i of exp(-2 pi i i k / a) x[b i + j]

A single matrix would be a constant of 4 MB for n = 1024, and five times the work.
"""

import functools
import math

import numpy as np
import torch
from torch import Tensor

from . import complexes, pads, precision, refusal, tensors, windows
from .complexes import Complex, pair
from .refusal import Refusal


def _matrix(rows: int, columns: int, n: int, whole: bool) -> np.ndarray:
    """[rows, 2 * columns]: cosines and minus sines of the products of both numbers, in turns of n; whole: of complex rows, [2 * rows, 2 * columns]."""
    turn = np.outer(np.arange(rows), np.arange(columns)) % n
    angle = 2 * np.pi / n * turn
    # Half a turn has the sine 0 and not 1e-16: the highest frequency of real numbers is real, and its phase is 0 or pi, as in PyTorch.
    cos, sin = np.cos(angle), np.where(2 * turn == n, 0.0, np.sin(angle))
    real = np.concatenate([cos, -sin], 1)
    return np.concatenate([real, np.concatenate([sin, cos], 1)]) if whole else real


@functools.cache
def _constants(n: int, bins: int, whole: bool) -> tuple[Tensor, ...] | None:
    """The matrix of a transform of n elements, or the two of its steps and the turns between them; None if all are too large."""
    constant = lambda array: tensors.made(lambda: torch.from_numpy(np.ascontiguousarray(array)).float())
    if 4 * n * bins * (4 if whole else 2) <= tensors.LARGEST:
        return (constant(_matrix(n, bins, n, whole)),)
    a = next(d for d in range(math.isqrt(n), 0, -1) if n % d == 0)
    b = n // a
    if 16 * b * b > tensors.LARGEST:
        return None
    turns = _matrix(b, a, n, False)
    return constant(_matrix(a, a, a, whole)), constant(turns[:, :a]), constant(turns[:, a:]), constant(_matrix(b, (bins - 1) // a + 1, b, True))


def _computed(n, bins, whole: bool) -> Tensor:
    """The matrix for a length of the batch."""
    turn = torch.arange(n)[:, None] * torch.arange(bins)[None] % n
    angle = turn.float() * (2 * math.pi) / n
    cos, sin = angle.cos(), torch.where(2 * turn == n, 0.0, angle.sin())
    real = torch.cat([cos, -sin], 1)
    return torch.cat([real, torch.cat([sin, cos], 1)]) if whole else real


def _transform(real: Tensor, imag: Tensor | None, bins) -> tuple[Tensor, Tensor]:
    """The first frequencies of the last axis."""
    n = real.shape[-1]
    constants = None if pads.varies(n) else _constants(int(n), int(bins), imag is not None)
    with precision.full():
        if constants is None or len(constants) == 1:
            matrix = _computed(n, bins, imag is not None) if constants is None else constants[0]
            y = torch.matmul(real if imag is None else torch.cat([real, imag], -1), matrix)
            return y.narrow(-1, 0, bins), y.narrow(-1, bins, bins)
        first, cos, sin, second = constants
        b, a = cos.shape
        columns = lambda x: x.unflatten(-1, (a, b)).transpose(-1, -2)
        y = torch.matmul(columns(real) if imag is None else torch.cat([columns(real), columns(imag)], -1), first)
        real, imag = y.narrow(-1, 0, a), y.narrow(-1, a, a)
        turned = torch.cat([real * cos - imag * sin, real * sin + imag * cos], -2)
        # [..., 2, b, a] to [..., a, 2 b], and then [..., a, 2, frequencies] to the order of frequencies.
        y = torch.matmul(turned.transpose(-1, -2), second).unflatten(-1, (2, -1))
        y = y.movedim(-3, -1).flatten(-2).narrow(-1, 0, bins)
        return y.select(-2, 0), y.select(-2, 1)


def _from_half(real: Tensor, imag: Tensor, n) -> Tensor:
    """The n real elements of half a spectrum, times n: the transpose of _transform, with all frequencies but the outer ones twice."""
    bins = real.shape[-1]
    twice = torch.arange(bins)
    twice = 2 - (twice == 0).float() - (2 * twice == n).float()
    constants = None if pads.varies(n) else _constants(int(n), int(bins), False)
    with precision.full():
        real, imag = real * twice, imag * twice
        if constants is None or len(constants) == 1:
            matrix = _computed(n, bins, False) if constants is None else constants[0]
            return torch.matmul(torch.cat([real, imag], -1), matrix.transpose(0, 1))
        first, cos, sin, second = constants
        b, a = cos.shape
        count = second.shape[1] // 2
        parts = [pads.constant(x, x.dim() - 1, 0, count * a - bins).unflatten(-1, (count, a)) for x in (real, imag)]
        y = torch.matmul(torch.cat(parts, -2).transpose(-1, -2), second.transpose(0, 1)).transpose(-1, -2)
        real, imag = y.narrow(-2, 0, b), y.narrow(-2, b, b)
        turned = torch.cat([real * cos + imag * sin, imag * cos - real * sin], -1)
        return torch.matmul(turned, first.transpose(0, 1)).transpose(-1, -2).flatten(-2)


def _scale(norm: str | None, n, forward: bool) -> float | None:
    """What a transform of n elements is divided by."""
    match norm or "backward":
        case "ortho":
            return n ** 0.5
        case "forward":
            return n if forward else None
        case "backward":
            return None if forward else n
    raise Refusal(f"a Fourier transform has the norm {norm!r}", "use backward, forward or ortho", refusal.here())


def _fit(x: Tensor, dim: int, n) -> Tensor:
    """With n elements along the axis, which comes last."""
    x = x.float().movedim(dim, -1)
    return x if n is None else pads.constant(x, x.dim() - 1, 0, n - x.shape[-1])


def _result(parts, dim: int, by) -> Complex:
    return Complex(*((x if by is None else x / by).movedim(-1, dim) for x in parts))


def rfft(x: Tensor, n=None, dim: int = -1, norm: str | None = None, *, forward: bool = True) -> Complex:
    """torch.fft.rfft."""
    x = _fit(x, dim, n)
    n = x.shape[-1]
    return _result(_transform(x, None, n // 2 + 1), dim, _scale(norm, n, forward))


def irfft(z, n=None, dim: int = -1, norm: str | None = None) -> Tensor:
    """torch.fft.irfft."""
    z = complexes.full(z)
    n = 2 * (z.shape[dim] - 1) if n is None else n
    y = _from_half(_fit(z.real, dim, n // 2 + 1), _fit(z.imag, dim, n // 2 + 1), n)
    by = _scale(norm, n, False)
    return (y if by is None else y / by).movedim(-1, dim)


def fft(z, n=None, dim: int = -1, norm: str | None = None) -> Complex:
    """torch.fft.fft."""
    real, imag = (None if part is None else _fit(part, dim, n) for part in pair(z))
    n = real.shape[-1]
    return _result(_transform(real, imag, n), dim, _scale(norm, n, True))


def ifft(z, n=None, dim: int = -1, norm: str | None = None) -> Complex:
    """torch.fft.ifft."""
    real, imag = (_fit(part, dim, n) for part in pair(complexes.full(z)))
    n = real.shape[-1]
    y, turned = _transform(real, -imag, n)
    return _result((y, -turned), dim, _scale(norm, n, False))


def _over_axes(transform):
    def transformed(z, s=None, dim=(-2, -1), norm: str | None = None) -> Complex:
        """torch.fft.fft2 and ifft2."""
        for i, axis in enumerate(dim):
            z = transform(z, None if s is None else s[i], axis, norm)
        return z
    return transformed


def _window(window: Tensor | None, length: int, n: int) -> Tensor:
    window = torch.ones(length) if window is None else window
    return pads.constant(window, 0, (n - length) // 2, n - length - (n - length) // 2)


def stft(x: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None, center: bool = True,
         pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
         align_to_window: bool | None = None) -> Complex | Tensor:
    """torch.stft."""
    if isinstance(x, Complex) or align_to_window:
        raise Refusal("torch.stft has complex samples or align_to_window", "give real samples, and leave align_to_window out", refusal.here())
    if x.dim() == 1:
        y = stft(x[None], n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex)
        return y.squeeze(0)
    x = x.float()
    if center:
        x = pads.pad(x, [n_fft // 2, n_fft // 2], pad_mode)
    frames = windows.frames(x, n_fft, hop_length or n_fft // 4) * _window(window, win_length or n_fft, n_fft)
    real, imag = _transform(frames, None, n_fft if onesided is False else n_fft // 2 + 1)
    z = Complex(real.transpose(1, 2), imag.transpose(1, 2))
    z = z * n_fft ** -0.5 if normalized else z
    return z if return_complex else torch.view_as_real(z)


def istft(z, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None, center: bool = True,
          normalized: bool = False, onesided: bool | None = None, length=None, return_complex: bool = False) -> Tensor:
    """torch.istft. A window whose sum over frames is 0 somewhere gives infinities there, where PyTorch stops."""
    z = complexes.full(z)
    if z.dim() == 2:
        return istft(z.unsqueeze(0), n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex).squeeze(0)
    if return_complex:
        raise Refusal("torch.istft has return_complex", "leave return_complex out: graphs have real samples", refusal.here())
    if onesided is False or onesided is None and not pads.varies(z.shape[1]) and z.shape[1] == n_fft != n_fft // 2 + 1:
        z = z.narrow(1, 0, n_fft // 2 + 1)
    hop, window = hop_length or n_fft // 4, _window(window, win_length or n_fft, n_fft)
    frames = irfft(z, n_fft, dim=1).transpose(1, 2) * window
    frames = frames * n_fft ** 0.5 if normalized else frames
    weight = window.square().expand(1, frames.shape[1], n_fft)
    start = n_fft // 2 if center else 0
    count = n_fft + hop * (frames.shape[1] - 1) - start
    end = count if not center else count - n_fft // 2
    end = end if length is None else length
    samples, weight = (pads.constant(windows.overlapped(y, hop).narrow(1, start, count), 1, 0, end - count) for y in (frames, weight))
    if length is not None:
        # What is beyond the frames is 0.
        weight = weight + (weight == 0).float()
    return samples / weight


_OWN = {"rfft": rfft, "irfft": irfft, "fft": fft, "ifft": ifft, "fft2": _over_axes(fft), "ifft2": _over_axes(ifft)}
FUNCTIONS = (
    *((torch.fft, name, function) for name, function in _OWN.items()),
    (torch, "stft", stft), (torch.functional, "stft", stft), (torch, "istft", istft),
)

"""Fourier transforms and complex numbers of the exporter against PyTorch's, without a graph. suite/spectrum.py has graphs."""

import pytest
import torch
from torch import Tensor

from . import lowering
from .complexes import Complex
from .refusal import Refusal
from .test_signals import numbers, same

parts = torch.view_as_real


@pytest.mark.parametrize("n", [1, 2, 7, 16, 400, 512, 600, 1024, 1025, 2048, 601])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_fft_is_pytorchs(n, norm):
    """512 and above have two steps, but for 601, which is prime."""
    x = numbers(2, n)
    same(lambda x: parts(torch.fft.rfft(x, norm=norm)), x)
    same(lambda x: parts(torch.fft.fft(x, norm=norm)), x)
    same(lambda x: torch.fft.irfft(torch.fft.rfft(x, norm=norm) * (2 - 1j), n=n, norm=norm), x)
    same(lambda x, y: parts(torch.fft.ifft(torch.complex(x, y), norm=norm)), x, x.flip(1))
    same(lambda x, y: parts(torch.fft.fft(torch.complex(x, y), norm=norm)), x, x.flip(1))


def test_fft_over_axes_and_lengths():
    x = numbers(3, 8, 6)
    same(lambda x: parts(torch.fft.rfft(x, dim=1)), x)
    same(lambda x: parts(torch.fft.rfft(x, n=5)) + parts(torch.fft.rfft(x, n=7))[..., :3, :], x)
    same(lambda x: parts(torch.fft.rfft(x, n=12, dim=1)), x)
    same(lambda x: torch.fft.irfft(torch.fft.fft(x), dim=1), x)
    same(lambda x: parts(torch.fft.fft2(x)) + parts(torch.fft.ifft2(x)), x)


@pytest.mark.parametrize("options", [
    {"n_fft": 32}, {"n_fft": 32, "hop_length": 10, "win_length": 21}, {"n_fft": 1024, "hop_length": 300, "win_length": 600, "pad_mode": "constant"},
    {"n_fft": 40, "hop_length": 40, "center": False}, {"n_fft": 16, "normalized": True, "onesided": False}, {"n_fft": 17, "hop_length": 3, "pad_mode": "replicate"},
], ids=str)
def test_stft_is_pytorchs(options):
    window = torch.hann_window(options.get("win_length", options["n_fft"])) + 0.1
    same(lambda x, window: parts(torch.stft(x, window=window, return_complex=True, **options)), numbers(2, 700), window)
    same(lambda x: x.stft(return_complex=True, **options).abs(), numbers(700))


@pytest.mark.parametrize("options", [
    {"n_fft": 32}, {"n_fft": 32, "length": 150}, {"n_fft": 32, "length": 190}, {"n_fft": 32, "center": False}, {"n_fft": 30, "hop_length": 7, "normalized": True},
    {"n_fft": 512, "hop_length": 100, "win_length": 400},
], ids=str)
def test_istft_is_pytorchs(options):
    window = torch.hann_window(options.get("win_length", options["n_fft"])) + 0.1
    bins = options["n_fft"] // 2 + 1
    same(lambda a, b: torch.istft(torch.complex(a, b), window=window, **options), numbers(2, bins, 21), numbers(2, bins, 21).flip(2))


@pytest.mark.parametrize("call", [
    lambda z, w: z * w + z / w - w, lambda z, w: 2 * z - 1j * w + (1 - z) / 3j, lambda z, w: 1 / (z + 3) + z ** 3 + (z + 4) ** 0.5, lambda z, w: (z @ w.mT).conj().mH,
    lambda z, w: torch.exp(1j * w.angle()) * z.real, lambda z, w: torch.sgn(z) + z.imag * w, lambda z, w: torch.einsum("btc,bsc->bts", z, w), lambda z, w: -z.mean(1) + w.sum(1),
    lambda z, w: torch.cat([z, w], 1)[:, 1:].flip(2), lambda z, w: torch.stack([z, w.conj()], 1).flatten(1, 2), lambda z, w: torch.where(z.real > 0, z, w) * z.abs(),
    lambda z, w: z.masked_fill(z.imag > 0, 0) + w.transpose(1, 2).reshape(w.shape), lambda z, w: torch.add(z, w, alpha=2).log(), lambda z, w: torch.polar(z.abs(), w.imag) * w,
    lambda z, w: z * torch.tensor(0.5 + 1j) + torch.ones(3, dtype=torch.complex64) * w, lambda z, w: sum(z.unbind(1)) + w.chunk(2, 1)[0][:, 0], lambda z, w: z.real.to(torch.complex64) * w,
    lambda z, w: torch.nn.functional.pad(z, (1, 2)) + w[..., :1],
])
def test_complex_numbers_are_pytorchs(call):
    x = [numbers(2, 4, 3), numbers(2, 4, 3).flip(1), numbers(2, 4, 3).flip(2) + 1, numbers(2, 4, 3).roll(1)]
    same(lambda a, b, c, d: parts(call(torch.complex(a, b), parts_of(c, d))), *x)


def parts_of(c: Tensor, d: Tensor):
    return torch.view_as_complex(torch.stack([c, d], -1))


def test_gradients_at_zero_are_pytorchs():
    zero = torch.zeros(3)
    same(lambda a, b: torch.complex(a, b).abs() + torch.complex(a, b).angle() + torch.atan2(a, b), zero, zero)


def test_constants_of_a_module_are_pairs():
    table = torch.polar(torch.ones(4), torch.arange(4.0))
    with lowering.functions():
        z = table[1:] * 2
        assert isinstance(z, Complex) and table.real.shape == (4,) and table.dtype is torch.complex64
    torch.testing.assert_close(torch.complex(z.real, z.imag), table[1:] * 2)


@pytest.mark.parametrize(("call", "message"), [
    (lambda z: z.tanh(), "tanh of complex numbers"), (lambda z: torch.linalg.eigvals(z), "linalg_eigvals of complex numbers"), (lambda z: z.float(), "float of complex"),
    (lambda z: z.to(torch.float32), "become real"), (lambda z: torch.stft(z, 4), "complex samples"), (lambda z: 2.0 ** z, "a tensor as its exponent"),
    (lambda z: z.mul_(2), "mul_ of complex numbers"), (lambda z: torch.view_as_complex(z.real), "a last axis of 8"),
])
def test_refuses_with_a_hint(call, message):
    with lowering.functions(), pytest.raises(Refusal, match=message) as caught:
        call(torch.complex(numbers(3, 8), numbers(3, 8)))
    assert caught.value.hint

"""Each function of PyTorch that replaced.py writes with others, beside PyTorch's own: values and gradients of some hundred random calls.

The calls have options, shapes of every number of axes that the function takes, equal elements, zeros and large numbers. The largest difference of each
function is printed: pytest -s.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from . import replaced
from .complexes import Complex

CALLS = 200
# Of a result, as a part of its largest number and 1. What takes logarithms or divides by differences loses digits in PyTorch, too.
TOLERANCE = 2e-5
LOOSE = {"det": 1e-4, "slogdet": 1e-3, "logdet": 1e-3, "inv": 1e-3, "inverse": 1e-3, "solve": 1e-3, "solve_triangular": 1e-3, "ctc_loss": 1e-4, "bilinear": 1e-4,
         "cdist": 1e-3, "group_norm": 1e-3, "logcumsumexp": 2e-2, "istft": 1e-4, "stft": 1e-4}
# Functions of functions, of TorchScript, of sizes, and with random numbers: the suite compares modules that call them.
OTHERS = {"__call__", "len", "_detect_is_causal_mask", "rrelu", "rrelu_", "grad_and_value_impl", "grad_impl", "_vjp_with_argnums"}


class Random(np.random.Generator):
    """Arguments."""

    def tensor(self, *shape: int) -> Tensor:
        """Normal numbers; sometimes with equal elements, zeros, or large."""
        x = torch.from_numpy(self.standard_normal(shape).astype(np.float32))
        kind = self.integers(6)
        if kind == 0:
            x = (x * 2).round()
        elif kind == 1:
            x = torch.where(x > 0, x, 0.0)
        elif kind == 2:
            x = x * 50
        return x.requires_grad_()

    def equal(self, *shape: int) -> Tensor:
        return self.tied(*shape, least=None)

    def tied(self, *shape: int, least: float | None = -math.inf) -> Tensor:
        """Often with equal elements, sometimes with minus infinity, as masks leave it."""
        x = torch.from_numpy(self.integers(-2, 3, shape).astype(np.float32))
        kind = self.integers(4)
        if kind == 0:
            return self.distinct(*shape)
        if kind == 1 and least is not None:
            x = torch.where(x > 0, x, least)
        return x.requires_grad_()

    def extreme(self, *shape: int) -> Tensor:
        """From the least to infinity, whose squares and exponentials are too large or too small."""
        given = torch.tensor([0.0, 1.0, 3.0, 1e-18, 1e-8, 100.0, 1e4, 1e18, 1e20, math.inf])
        x = given[torch.from_numpy(self.integers(0, len(given), shape))] * torch.from_numpy(self.choice([-1, 1], shape).astype(np.float32))
        return x.requires_grad_()

    def large(self, *shape: int) -> Tensor:
        return torch.from_numpy(1e4 * self.standard_normal(shape).astype(np.float32)).requires_grad_()

    def distinct(self, *shape: int) -> Tensor:
        """All elements different, in any order: where two are equal, PyTorch's kthvalue and median of an axis take any."""
        return (torch.from_numpy(self.permutation(math.prod(shape)).astype(np.float32)).reshape(shape) / 7 - 2).requires_grad_()

    def shape(self, least: int = 1, most: int = 4) -> list[int]:
        return [int(self.integers(1, 6)) for _ in range(self.integers(least, most + 1))]

    def one(self, *of):
        return of[self.integers(len(of))]


def _alike(r: Random) -> list[Tensor]:
    """Three that broadcast."""
    shape = r.shape()
    return [r.tensor(*(n if r.integers(3) else 1 for n in shape)) for _ in range(3)]


def _matrix(r: Random) -> Tensor:
    n = int(r.integers(1, 6))
    x = torch.from_numpy(r.standard_normal((*r.shape(0, 1), n, n)).astype(np.float32)) + 3 * torch.eye(n) * r.one(-1, 1)
    return x.requires_grad_()


def _convolution(d: int) -> Callable:
    def call(r: Random):
        groups, size = int(r.one(1, 1, 2)), [int(r.integers(7, 12)) for _ in range(d)]
        a, b = groups * int(r.integers(1, 4)), groups * int(r.integers(1, 4))
        kernel = [int(r.integers(1, 4)) for _ in range(d)]
        options = {"stride": int(r.integers(1, 4)), "dilation": int(r.integers(1, 3)), "groups": groups, "padding": int(r.integers(0, 3))}
        if options["stride"] == 1 and not r.integers(4):
            options["padding"] = r.one("same", "valid")
        return [r.tensor(2, a, *size), r.tensor(b, a // groups, *kernel), r.tensor(b) if r.integers(2) else None], options
    return call


def _transposed(d: int) -> Callable:
    def call(r: Random):
        groups = int(r.one(1, 1, 2))
        a, b = groups * int(r.integers(1, 4)), groups * int(r.integers(1, 4))
        stride = int(r.integers(1, 4))
        options = {"stride": stride, "groups": groups, "padding": int(r.integers(0, 2)), "output_padding": int(r.integers(0, stride)), "dilation": int(r.integers(1, 3))}
        if options["output_padding"] >= max(stride, options["dilation"]):
            options["output_padding"] = 0
        return [r.tensor(2, a, *(int(r.integers(3, 7)) for _ in range(d))), r.tensor(a, b // groups, *[3] * d), r.tensor(b) if r.integers(2) else None], options
    return call


def _pool(d: int, most: bool) -> Callable:
    def call(r: Random):
        kernel = int(r.integers(1, 4))
        options = {"kernel_size": kernel, "stride": int(r.integers(1, 4)), "padding": int(r.integers(0, kernel // 2 + 1))}
        if most:
            options["dilation"] = int(r.integers(1, 3))
        elif r.integers(2):
            options["count_include_pad"] = False
        return [(r.tied if most else r.tensor)(2, 3, *(int(r.integers(7, 11)) for _ in range(d)))], options
    return call


def _adaptive(d: int, most: bool) -> Callable:
    """Of a multiple to any, and to 1."""
    def call(r: Random):
        out = [int(r.integers(1, 4)) for _ in range(d)]
        return [(r.tied if most else r.tensor)(2, 3, *(n * int(r.integers(1, 4)) for n in out)), out if d > 1 else out[0]], {}
    return call


def _over_axis(whole: str = "distinct", axis: str = "distinct") -> Callable:
    def call(r: Random):
        shape = r.shape()
        if not r.integers(4):
            return [getattr(r, whole)(*shape)], {}
        return [getattr(r, axis)(*shape), int(r.integers(-len(shape), len(shape)))], {"keepdim": bool(r.integers(2))}
    return call


def _interpolate(r: Random):
    d = int(r.one(1, 2))
    mode = r.one("nearest", "nearest-exact", "linear" if d == 1 else "bilinear")
    options = {"mode": mode} | ({"align_corners": bool(r.integers(2))} if "linear" in mode else {})
    if r.integers(2):
        options["scale_factor"] = float(r.one(0.5, 2.0, 3.0, 1.5, 0.7, 1.13))
    else:
        options["size"] = [int(r.integers(1, 13)) for _ in range(d)]
    # Of as many elements as before, PyTorch copies some by the factor and some not.
    return [r.tensor(2, 3, *(int(r.integers(9, 13) if mode.startswith("nearest") else r.integers(3, 9)) for _ in range(d)))], options


def _padded(r: Random):
    mode = r.one("constant", "reflect", "replicate", "circular")
    axes = int(r.integers(1, 3))
    most = 3 if mode != "constant" else 4
    pad = [int(r.integers(-1 if mode == "constant" else 0, most)) for _ in range(2 * axes)]
    return [r.tensor(2, 3, *[5] * axes), pad], {"mode": mode} | ({"value": float(r.one(0.0, 1.5))} if mode == "constant" else {})


def _stft(r: Random):
    n = int(r.one(8, 12, 15, 16))
    options = {"hop_length": int(r.integers(1, n)), "win_length": int(r.integers(n // 2, n + 1)), "center": bool(r.integers(2)), "normalized": bool(r.integers(2)),
               "onesided": r.one(True, False, None), "return_complex": True}
    options["window"] = torch.hann_window(options["win_length"])
    return [r.tensor(2, 64), n], options


def _istft(r: Random):
    n = int(r.one(8, 12, 16))
    return [torch.complex(r.tensor(2, n // 2 + 1, 9), r.tensor(2, n // 2 + 1, 9)), n], {"hop_length": n // 4, "window": torch.hann_window(n), "normalized": bool(r.integers(2)),
                                                                                        "length": r.one(None, 2 * n + 1)}


def _fourier(complex_input: bool, axes: int = 1) -> Callable:
    def call(r: Random):
        shape = [3, *(int(r.integers(2, 13)) for _ in range(axes))]
        x = torch.complex(r.tensor(*shape), r.tensor(*shape)) if complex_input else r.tensor(*shape)
        return [x], {"norm": r.one(None, "ortho", "forward", "backward")} | ({"n": int(r.integers(2, 15))} if axes == 1 and r.integers(2) else {})
    return call


def _half(r: Random):
    """The imaginary part of the first and of the last number of half a spectrum has no effect."""
    n = int(r.integers(2, 13))
    return [torch.complex(r.tensor(3, n // 2 + 1), r.tensor(3, n // 2 + 1))], {"n": n, "norm": r.one(None, "ortho", "forward")}


def _ctc(r: Random, number: bool = False):
    """torch.ctc_loss has numbers for reductions."""
    frames, rows, symbols = int(r.integers(4, 12)), int(r.integers(1, 4)), int(r.integers(2, 6))
    lengths = torch.from_numpy(r.integers(1, frames + 1, rows))
    longest = int(r.integers(1, 5))
    return [r.tensor(frames, rows, symbols), torch.from_numpy(r.integers(1, symbols, (rows, longest))), lengths,
            torch.from_numpy(r.integers(0, longest + 1, rows))], {"reduction": r.one(*(0, 1, 2) if number else ("none", "sum", "mean")), "zero_infinity": True}


def _taken(r: Random):
    shape = r.shape()
    dim = int(r.integers(len(shape)))
    index = [n if d != dim else int(r.integers(1, 5)) for d, n in enumerate(shape)]
    return [r.tensor(*shape), torch.from_numpy(r.integers(0, shape[dim], index)), dim], {}


def _unfold(r: Random):
    kernel, stride = int(r.integers(1, 4)), int(r.integers(1, 4))
    return [r.tensor(2, 3, int(r.integers(5, 9)), int(r.integers(5, 9)))], {"kernel_size": kernel, "stride": stride, "padding": int(r.integers(0, 2)), "dilation": int(r.integers(1, 3))}


def _fold(r: Random):
    kernel, stride, size = int(r.integers(1, 4)), int(r.integers(1, 3)), [int(r.integers(5, 9)), int(r.integers(5, 9))]
    count = math.prod((n - kernel) // stride + 1 for n in size)
    return [r.tensor(2, 2 * kernel * kernel, count), size], {"kernel_size": kernel, "stride": stride}


def _axis_windows(r: Random):
    shape = [4, 9, 5]
    dim = int(r.integers(3))
    return [r.tensor(*shape), dim, int(r.integers(1, shape[dim] + 1)), int(r.integers(1, 4))], {}


def _window(r: Random):
    return [int(r.integers(1, 40))], {"periodic": bool(r.integers(2))}


def _triangle(r: Random):
    a, upper = _matrix(r), bool(r.integers(2))
    n = a.shape[-1]
    return [a.triu() if upper else a.tril(), r.tensor(*a.shape[:-2], n, 2)], {"upper": upper}


def _solved(r: Random):
    a = _matrix(r)
    return [a, r.tensor(*a.shape[:-2], a.shape[-1], 3)], {}


def _positive(r: Random):
    """A determinant above 0."""
    a = _matrix(r)
    return [(a @ a.mT + torch.eye(a.shape[-1])).detach().requires_grad_()], {}


def _edges(r: Random):
    edges = torch.from_numpy(np.sort(r.integers(-4, 5, int(r.integers(1, 7))))).float()
    return [edges, torch.from_numpy(r.integers(-5, 6, r.shape(1, 3))).float()], {"right": bool(r.integers(2))}


ARGUMENTS: dict[str, Callable[[Random], tuple[list, dict]]] = {
    **{f"conv{d}d": _convolution(d) for d in (1, 2, 3)}, **{f"conv_transpose{d}d": _transposed(d) for d in (1, 2, 3)},
    **{f"{kind}_pool{d}d": _pool(d, kind == "max") for kind in ("avg", "max") for d in (1, 2, 3)},
    **{f"adaptive_{kind}_pool{d}d": _adaptive(d, kind == "max") for kind in ("avg", "max") for d in (1, 2, 3)},
    "unfold": _unfold, "Tensor.unfold": _axis_windows, "fold": _fold, "interpolate": _interpolate, "pad": _padded,
    "rfft": _fourier(False), "irfft": _half, "fft": _fourier(True), "ifft": _fourier(True), "fft2": _fourier(True, 2), "ifft2": _fourier(True, 2), "stft": _stft, "istft": _istft,
    "complex": lambda r: ((lambda s: [r.tensor(*s), r.tensor(*s)])(r.shape()), {}), "polar": lambda r: ((lambda s: [r.tensor(*s), r.tensor(*s)])(r.shape()), {}),
    "view_as_complex": lambda r: ([r.tensor(*r.shape(), 2)], {}),
    **dict.fromkeys(("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"), _window),
    "linspace": lambda r: ([float(r.normal()), float(r.normal()), int(r.integers(1, 30))], {}),
    **dict.fromkeys(("slogdet", "det", "inverse", "inv"), lambda r: ([_matrix(r)], {})), "logdet": _positive, "solve": _solved, "solve_triangular": _triangle,
    "baddbmm": lambda r: ([r.tensor(2, 3, 5), r.tensor(2, 3, 4), r.tensor(2, 4, 5)], {"beta": float(r.one(0, 1, 0.5)), "alpha": float(r.one(1, -2.0))}),
    "addcmul": lambda r: (_alike(r), {"value": float(r.one(1, -0.5))}),
    "addcdiv": lambda r: ((lambda x, a, b: [x, a, (b.detach().abs() + 0.5).requires_grad_()])(*_alike(r)), {"value": float(r.one(1, -0.5))}),
    "lerp": lambda r: ((lambda x, y, w: [x, y, w if r.integers(2) else 0.3])(*_alike(r)), {}),
    "bilinear": lambda r: ([r.tensor(3, 2, 4), r.tensor(3, 2, 5), r.tensor(6, 4, 5), r.tensor(6) if r.integers(2) else None], {}),
    "_weight_norm": lambda r: ((lambda v: [v, r.tensor(v.shape[0], *[1] * (v.dim() - 1)), 0])((r.distinct(*r.shape(2, 3)).detach() + 0.1).requires_grad_()), {}),
    "take_along_dim": _taken, "cdist": lambda r: ([r.distinct(2, 3, 4), (r.distinct(2, 5, 4).detach() + 0.05).requires_grad_()], {"p": float(r.one(1.0, 2.0, 3.0))}),
    **dict.fromkeys(("hypot", "atan2", "arctan2", "logaddexp"), lambda r: (_alike(r)[:2] if r.integers(2) else [r.extreme(5), r.extreme(5)], {})),
    "logaddexp2": lambda r: (_alike(r)[:2], {}),
    **dict.fromkeys(("atan", "arctan"), lambda r: ([r.one(r.tensor, r.extreme)(*r.shape())], {})),
    "logcumsumexp": lambda r: ((lambda x: [x, int(r.integers(x.dim()))])(r.one(r.tensor, r.large)(*r.shape())), {}),
    "prod": lambda r: ((lambda a, o: ([a[0].detach().clamp(-1.2, 1.2).requires_grad_(), *a[1:]], o))(*_over_axis()(r))), "cumprod": lambda r: ((lambda x: [x, int(r.integers(x.dim()))])((r.tensor(*r.shape()).detach().clamp(-3, 3)).requires_grad_()), {}),
    **dict.fromkeys(("amax", "amin"), lambda r: ([r.tied(3, 4, 2), r.one(0, 1, -1, (0, 2), ())], {"keepdim": bool(r.integers(2))})),
    **dict.fromkeys(("max", "min"), _over_axis("tied", "tied")), "median": _over_axis("equal"),
    "kthvalue": lambda r: ([r.distinct(4, 5), int(r.integers(1, 5))], {"dim": int(r.one(0, 1, -1)), "keepdim": bool(r.integers(2))}) if r.integers(2) else ([r.distinct(7), 3], {}),
    **dict.fromkeys(("hardshrink", "softshrink"), lambda r: ([r.tensor(*r.shape())], {"lambd": float(r.one(0.5, 1.0, 0.0))})),
    "group_norm": lambda r: ([r.tensor(2, 6, *r.shape(1, 2), 2), r.one(1, 2, 3), *r.one([None, None], [r.tensor(6), r.tensor(6)])], {}),
    "searchsorted": _edges, "one_hot": lambda r: ([torch.from_numpy(r.integers(0, 5, r.shape()))], {"num_classes": int(r.one(5, 7))}), "ctc_loss": _ctc,
    "torch.ctc_loss": lambda r: _ctc(r, number=True),
}


def _parts(result: object) -> list[Tensor]:
    if isinstance(result, Complex):
        return [result.real, torch.zeros_like(result.real) if result.imag is None else result.imag]
    if isinstance(result, Tensor):
        return [result.real, result.imag] if result.is_complex() else [result]
    return [part for x in result for part in _parts(x)]


def _run(function: Callable, args: list, options: dict, join: Callable[[Tensor, Tensor], object] = torch.complex) -> list[Tensor]:
    """The results, and the gradients of a weighted sum of them. join makes a complex argument of its parts."""
    leaves: list[Tensor] = []

    def leaf(x: Tensor) -> Tensor:
        y = x.detach().clone().requires_grad_()
        leaves.append(y)
        return y

    def given(x: object) -> object:
        if not isinstance(x, Tensor) or not (x.is_floating_point() or x.is_complex()):
            return x
        if x.is_complex():
            return join(*map(leaf, torch.view_as_real(x.detach()).unbind(-1)))
        return leaf(x) if x.requires_grad else x

    parts = _parts(function(*map(given, args), **options))
    floats = [x for x in parts if x.is_floating_point() and x.requires_grad]
    if not floats or not leaves:
        return [x.detach() for x in parts]
    total = sum((x * torch.cos(torch.arange(x.numel()).float()).reshape(x.shape)).sum() for x in floats)
    gradients = torch.autograd.grad(total, leaves, allow_unused=True)
    return [x.detach() for x in (*parts, *(torch.zeros_like(x) if g is None else g for x, g in zip(leaves, gradients, strict=True)))]


def _of_logarithms(ctc: Callable) -> Callable:
    """PyTorch's gradient of CTC is right behind a log_softmax only."""
    return lambda x, *rest, **options: ctc(x.log_softmax(-1), *rest, **options)


FUNCTIONS = {f"{getattr(owner, '__name__', owner)}.{name}": (owner, name, function) for owner, name, function in replaced._FUNCTIONS}


@pytest.mark.parametrize("label", [label for label, (_, name, _) in FUNCTIONS.items() if name not in OTHERS])
def test_equals_pytorch(label):
    owner, name, ours = FUNCTIONS[label]
    arguments = ARGUMENTS.get(label) or ARGUMENTS[name]
    theirs = getattr(owner, name)
    if name == "ctc_loss":
        theirs, ours = _of_logarithms(theirs), _of_logarithms(ours)
    random, calls = Random(np.random.PCG64(0)), []
    for _ in range(CALLS):
        args, options = arguments(random)
        try:
            calls.append((args, options, _run(theirs, args, options)))
        except (RuntimeError, ValueError):
            continue  # PyTorch does not take these
    assert len(calls) >= CALLS // 2
    worst = 0.0
    with replaced.functions():
        for args, options, want in calls:
            got = _run(ours, args, options, Complex)
            assert [x.shape for x in got] == [x.shape for x in want] and [x.dtype for x in got] == [x.dtype for x in want], (args, options)
            for a, b in zip(got, want, strict=True):
                if b.numel():
                    # Where PyTorch has no number, there is nothing to be equal to.
                    a, b = torch.where(b.isnan(), 0, a), b.nan_to_num(0, math.inf, -math.inf)
                    assert torch.equal(torch.where(a.isfinite(), 0, a), torch.where(b.isfinite(), 0, b)), (args, options, a, b)
                    error = float((a - b).nan_to_num(0, 0, 0).abs().max() / max(1.0, float(b.nan_to_num(0, 0, 0).abs().max())))
                    assert error <= LOOSE.get(name, TOLERANCE), (error, args, options, a, b)
                    worst = max(worst, error)
    print(f"{label}: {len(calls)} calls, largest difference {worst:.1e}")


def test_every_replacement_has_arguments():
    assert {name for _, name, _ in FUNCTIONS.values()} == {name.rpartition(".")[2] for name in ARGUMENTS} | OTHERS

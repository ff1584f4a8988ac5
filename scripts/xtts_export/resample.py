"""torch.nn.functional.interpolate: by whole factors with copies and sums, by any other factor as a product with a matrix of [in, out]."""

import math
from fractions import Fraction

import sympy
import torch
from torch import Tensor

from . import pads, precision, refusal
from .refusal import Refusal
from .windows import shifted, tupled

# Whether a mode is linear, and how many axes it takes; None: any.
_MODES = {"nearest": (False, None), "nearest-exact": (False, None), "linear": (True, 1), "bilinear": (True, 2), "trilinear": (True, 3), "area": (False, None)}
# Lengths at which a factor that is written as a fraction must give PyTorch's length.
_TRIED = range(1, 4097)


def interpolate(x: Tensor, size=None, scale_factor=None, mode: str = "nearest", align_corners: bool | None = None,
                recompute_scale_factor: bool | None = None, antialias: bool = False) -> Tensor:
    axes = x.dim() - 2
    linear, wanted = _MODES.get(mode, (False, 0))
    if wanted not in (None, axes) or antialias:
        raise Refusal(f"F.interpolate of {x.dim()} dimensions has the mode {mode!r}{' and antialias' if antialias else ''}",
                      "use nearest, or linear of [B, C, T] and bilinear of [B, C, H, W]", refusal.here())
    if (size is None) == (scale_factor is None):
        raise Refusal("F.interpolate has neither or both of size and scale_factor", "give one of them", refusal.here())
    factors = [None] * axes if scale_factor is None else [_fraction(factor) for factor in tupled(scale_factor, axes)]
    if size is None:
        size = [_size(x.shape[2 + i], factor) for i, factor in enumerate(factors)]
    if mode == "area":
        return getattr(torch.nn.functional, f"adaptive_avg_pool{axes}d")(x, tuple(size) if isinstance(size, list) else size)
    for i, out in enumerate(tupled(size, axes)):
        x = _along(x, 2 + i, out, None if recompute_scale_factor else factors[i], mode, linear, bool(align_corners))
    return x


def _size(n, factor: Fraction | float):
    return n * factor.numerator // factor.denominator if isinstance(factor, Fraction) else math.floor(n * factor)


def _along(x: Tensor, dim: int, out, factor: Fraction | float | None, mode: str, linear: bool, corners: bool) -> Tensor:
    """Positions follow the factor if there is one, else the relation of the sizes, which may be another after rounding."""
    n = x.shape[dim]
    ratio = factor or _ratio(out, n)
    if isinstance(ratio, float):
        return _product(x, dim, out, 1 / ratio, mode, linear, corners)
    if ratio == 1:
        return x
    if ratio is not None and not (linear and corners):
        if ratio.denominator == 1:
            return _upward(x, dim, ratio.numerator, linear)
        if ratio.numerator == 1:
            return _downward(x, dim, ratio.denominator, mode, linear)
    return _product(x, dim, out, None if factor is None else float(1 / factor), mode, linear, corners)


def _fraction(factor: float) -> Fraction | float:
    """A factor as a fraction of small numbers, if lengths stay the same whole numbers with it; otherwise the factor itself, as 0.7: 90 * 0.7 is below 63."""
    fraction = Fraction(factor).limit_denominator(1000)
    return float(factor) if any(int(n * factor) != n * fraction.numerator // fraction.denominator for n in _TRIED) else fraction


def _ratio(out, n) -> Fraction | None:
    """The quotient of two sizes, if it is the same for all lengths."""
    expression = lambda size: size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)
    quotient = sympy.cancel(expression(out) / expression(n))
    return Fraction(int(quotient.p), int(quotient.q)) if quotient.is_Rational else None


def _upward(x: Tensor, dim: int, factor: int, linear: bool) -> Tensor:
    """Each element becomes `factor` ones; linear: between it and its neighbours, of which the first and the last have one."""
    if not linear:
        return x.unsqueeze(dim + 1).expand([*x.shape[:dim + 1], factor, *x.shape[dim + 1:]]).flatten(dim, dim + 1)
    # Source positions, counted from the element.
    at = (torch.arange(factor, dtype=torch.float64) + 0.5) / factor - 0.5
    shares = [share.to(x.dtype).view(-1, *[1] * (x.dim() - 1 - dim)) for share in ((-at).clamp(min=0), 1 - at.abs(), at.clamp(min=0))]
    wide = pads.pad(x, [0, 0] * (x.dim() - 1 - dim) + [1, 1], "replicate")
    before, same, after = (share * copy.unsqueeze(dim + 1) for share, copy in zip(shares, shifted(wide, dim, 3), strict=True))
    return (before + same + after).flatten(dim, dim + 1)


def _downward(x: Tensor, dim: int, factor: int, mode: str, linear: bool) -> Tensor:
    """Of each `factor` elements one; linear: the middle one, or the mean of the two in the middle."""
    copies = shifted(x, dim, factor, factor)
    if mode == "nearest":
        return copies[0]
    middle = factor // 2
    return copies[middle] if not linear or factor % 2 else (copies[middle - 1] + copies[middle]) * 0.5


def _product(x: Tensor, dim: int, out, step: float | None, mode: str, linear: bool, corners: bool) -> Tensor:
    """By a matrix. Positions are computed as PyTorch computes them, in f32 and in this order, so that they round to the same element."""
    n = x.shape[dim]
    places = torch.arange(out, dtype=torch.float32)
    count = lambda size: torch.ones(()) * size
    if linear and corners:
        at = places * (count(n - 1) / count(out - 1).clamp(min=1))
    else:
        scale = count(n) / count(out) if step is None else torch.tensor(step)
        at = places * scale if mode == "nearest" else (places + 0.5) * scale
        at = (at - 0.5).clamp(min=0) if linear else at.floor()
        if linear and step is not None:
            # As many elements as there were are copied, whatever the factor.
            at = torch.where(count(n) == count(out), places, at)
    at = torch.minimum(at, count(n - 1))
    sources = torch.arange(n, dtype=torch.float32)
    matrix = (1 - (sources[:, None] - at).abs()).clamp(min=0) if linear else (sources[:, None] == at).float()
    with precision.full():
        return torch.matmul(x.movedim(dim, -1).float(), matrix).movedim(-1, dim).to(x.dtype)


FUNCTIONS = ((torch.nn.functional, "interpolate", interpolate),)

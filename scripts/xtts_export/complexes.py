"""Complex numbers as pairs of real tensors, while a module is traced: ONNX has none.

Functions of PyTorch find their rule here by name, whether they are called as torch.abs(z), z.abs() or abs(z). Where PyTorch would make
complex numbers, of real tensors and Python's complex numbers, or by their type, a TorchFunctionMode makes a Complex; complex tensors that the
module holds become pairs of constants.
"""

import functools
import itertools
import operator
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from . import refusal, tensors, ways_out
from .refusal import Refusal


class Complex:
    """real + imag j. Not a Tensor: whatever has no rule must be refused, not computed."""

    dtype = torch.complex64
    # So that a NumPy number on the left leaves the operator to this class.
    __array_ufunc__ = None

    def __init__(self, real: Tensor, imag: Tensor):
        self.real, self.imag = (real, imag) if real.shape == imag.shape else torch.broadcast_tensors(real, imag)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return _ruled(function.__name__, args, kwargs or {})

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("shape", "device", "ndim", "requires_grad", "is_cuda", "layout"):
            return getattr(self.real, name)
        if name in ("T", "mT", "H", "mH"):
            turned = _each(self, lambda part: getattr(part, name.replace("H", "T")))
            return turned.conj() if "H" in name else turned
        return lambda *args, **kwargs: _ruled(name, (self, *args), kwargs)

    def __len__(self) -> int:
        return len(self.real)

    def __iter__(self):
        return iter(self.unbind(0))


def _each(z: Complex, function: Callable) -> Complex:
    return Complex(function(z.real), function(z.imag))


def _ruled(name: str, args: tuple, kwargs: dict):
    if name not in _RULES:
        raise Refusal(f"{name} of complex numbers has no form in plain ONNX", ways_out.COMPLEX, refusal.here())
    return _RULES[name](*args, **kwargs)


def pair(x) -> tuple:
    """The real and the imaginary part of a tensor or number; None for none."""
    if isinstance(x, Complex):
        return x.real, x.imag
    if isinstance(x, complex):
        return x.real, x.imag
    if isinstance(x, Tensor) and x.is_complex():
        return pair(_constant(x))
    return x, None


def full(x) -> Complex:
    """Both parts, of a real tensor or a number, too."""
    real, imag = pair(x)
    if not isinstance(real, Tensor):
        real, imag = torch.tensor(float(real)), torch.tensor(float(imag or 0))
    return Complex(real, torch.zeros_like(real) if imag is None else imag)


def _made(real, imag):
    """Of parts that may be numbers."""
    if not isinstance(real, Tensor):
        real = torch.full_like(imag, real)
    return Complex(real, imag if isinstance(imag, Tensor) else torch.full_like(real, imag))


_CONSTANTS = WeakTensorKeyDictionary()


def _constant(x: Tensor) -> Complex:
    """A tensor of the module."""
    if isinstance(x, FakeTensor):
        raise Refusal("complex numbers are made by a function that has no form in plain ONNX", ways_out.COMPLEX, refusal.here())
    if x not in _CONSTANTS:
        parts = lambda: [part.contiguous() for part in torch.view_as_real(x.detach().resolve_conj()).to(torch.float32).unbind(-1)]
        _CONSTANTS[x] = Complex(*tensors.made(parts))
    return _CONSTANTS[x]


def _add(x, y, *, alpha: float = 1, sign: int = 1) -> Complex:
    (a, b), (c, d) = pair(x), pair(y)
    c, d = (part if part is None or alpha * sign == 1 else part * (alpha * sign) for part in (c, d))
    return _made(a + c, d if b is None else b if d is None else b + d)


def _subtract(x, y, *, alpha: float = 1) -> Complex:
    return _add(x, y, alpha=alpha, sign=-1)


def _bilinear(function: Callable, x, y) -> Complex:
    (a, b), (c, d) = pair(x), pair(y)
    if d is None:
        return _made(function(a, c), function(b, c))
    if b is None:
        return _made(function(a, c), function(a, d))
    return _made(function(a, c) - function(b, d), function(a, d) + function(b, c))


def _times(x, y) -> Complex:
    return _bilinear(operator.mul, x, y)


def _divide(x, y, *, rounding_mode: None = None) -> Complex:
    if isinstance(y, complex):
        return _times(x, 1 / y)
    c, d = pair(y)
    if d is None:
        a, b = pair(x)
        return _made(a / c, b / c)
    size = c * c + d * d
    return _times(x, _made(c / size, -d / size))


def _magnitude(z: Complex) -> Tensor:
    """With a gradient of 0 at 0, as PyTorch's."""
    square = z.real.square() + z.imag.square()
    some = square > 0
    return torch.where(some, torch.where(some, square, 1.0).sqrt(), 0.0)


def _power(z: Complex, exponent) -> Complex:
    if not isinstance(exponent, (int, float)):
        raise Refusal("a power of complex numbers has a tensor as its exponent", ways_out.COMPLEX, refusal.here())
    if isinstance(exponent, int) and 1 <= exponent <= 8:
        return functools.reduce(_times, [z] * exponent)
    size = _magnitude(z) ** exponent
    turned = _angle(z) * exponent
    return Complex(size * turned.cos(), size * turned.sin())


def _angle(z: Complex) -> Tensor:
    return torch.atan2(z.imag, z.real)


def _exponential(z: Complex) -> Complex:
    size = z.real.exp()
    return Complex(size * z.imag.cos(), size * z.imag.sin())


def _sign(z: Complex) -> Complex:
    size = _magnitude(z)
    size = torch.where(size > 0, size, 1.0)
    return Complex(z.real / size, z.imag / size)


def _einsum(equation: str, *operands) -> Complex:
    """A sum over the choices of a part of each operand."""
    pairs = [pair(x) for x in (operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands)]
    parts = [None, None]
    for choice in itertools.product(*([0] if imag is None else [0, 1] for _, imag in pairs)):
        term = torch.einsum(equation, *(p[i] for p, i in zip(pairs, choice, strict=True)))
        turns, at = sum(choice), sum(choice) % 2
        term = -term if turns % 4 > 1 else term
        parts[at] = term if parts[at] is None else parts[at] + term
    return Complex(*parts)


def _matmul(x, y) -> Complex:
    return _bilinear(torch.matmul, x, y)


def _listed(name: str) -> Callable:
    def rule(parts, *args, **options) -> Complex:
        parts = [full(x) for x in parts]
        function = getattr(torch, name)
        return Complex(function([z.real for z in parts], *args, **options), function([z.imag for z in parts], *args, **options))
    return rule


def _where(condition: Tensor, x, y) -> Complex:
    (a, b), (c, d) = pair(x), pair(y)
    return Complex(torch.where(condition, a, c), torch.where(condition, 0.0 if b is None else b, 0.0 if d is None else d))


def _moved(name: str) -> Callable:
    """A function that moves or adds elements, of each part."""
    def rule(z, *args, **options):
        z = full(z)
        of = lambda i: getattr((z.real, z.imag)[i], name)(*(pair(x)[i] if isinstance(x, Complex) else x for x in args), **options)
        real, imag = of(0), of(1)
        return tuple(Complex(a, b) for a, b in zip(real, imag, strict=True)) if isinstance(real, (list, tuple)) else Complex(real, imag)
    return rule


def _of_magnitude(function: Callable) -> Callable:
    return lambda z, *args, **options: function(_magnitude(z), *args, **options)


def _converted(x, *args, **options):
    """Tensor.to and others: to a complex type, or to a device, which graphs have no choice of."""
    kind = next((a for a in (*args, *options.values()) if isinstance(a, torch.dtype)), torch.complex64)
    if not kind.is_complex:
        raise Refusal("complex numbers become real ones", "take z.real or z.abs()", refusal.here())
    return full(x)


def _filled(name: str) -> Callable:
    def rule(*args, dtype: torch.dtype | None = None, **options) -> Complex:
        parts = [pair(x) for x in args]
        real = getattr(torch, name)(*(p[0] for p in parts), **options)
        imag = next((p[1] for p in parts if p[1] is not None), 0.0)
        return Complex(real, torch.full_like(real, imag))
    return rule


def _tensor(data, **options) -> Complex:
    values = np.asarray(data, dtype=np.complex64)
    return Complex(*(tensors.made(lambda part=part: torch.from_numpy(np.ascontiguousarray(part))) for part in (values.real, values.imag)))


def complex_of(real: Tensor, imag: Tensor) -> Complex:
    """torch.complex."""
    return Complex(real.float(), imag.float())


def polar(size: Tensor, angle: Tensor) -> Complex:
    """torch.polar."""
    # PyTorch takes sizes for positive: the gradient of a negative one has the other sign, and that of 0 is 0.
    value, sign = size.detach(), size.detach().sign()
    size = size * sign + (value - value * sign)
    return Complex(size * angle.cos(), size * angle.sin())


def view_as_complex(x: Tensor) -> Complex:
    """torch.view_as_complex."""
    if x.shape[-1] != 2:
        raise Refusal(f"view_as_complex of a last axis of {x.shape[-1]}", "it has a real and an imaginary part: y.unflatten(-1, (-1, 2))", refusal.here())
    return Complex(*x.float().unbind(-1))


_MOVES = (
    "transpose", "permute", "unsqueeze", "squeeze", "expand", "flatten", "unflatten", "contiguous", "clone", "detach", "movedim", "moveaxis", "swapaxes", "swapdims",
    "narrow", "select", "index_select", "repeat", "repeat_interleave", "tile", "flip", "roll", "__getitem__", "sum", "mean", "cumsum", "diff", "t", "unfold", "gather",
    "diagonal", "broadcast_to", "tril", "triu", "chunk", "split", "unbind", "tensor_split", "neg", "negative", "expand_as", "take_along_dim", "requires_grad_",
)
_RULES: dict[str, Callable] = {
    **{name: _moved(name) for name in _MOVES},
    "view": _moved("reshape"), "reshape": _moved("reshape"), "view_as": lambda z, other: z.reshape(other.shape), "reshape_as": lambda z, other: z.reshape(other.shape),
    "cat": _listed("cat"), "concat": _listed("cat"), "concatenate": _listed("cat"), "stack": _listed("stack"),
    "add": _add, "sub": _subtract, "subtract": _subtract, "mul": _times, "multiply": _times, "div": _divide, "divide": _divide, "true_divide": _divide,
    "rsub": lambda x, y: _subtract(y, x), "reciprocal": lambda z: _divide(1.0, z), "square": lambda z: _times(z, z), "pow": _power,
    "matmul": _matmul, "mm": _matmul, "bmm": _matmul, "einsum": _einsum, "where": _where,
    "masked_fill": lambda z, mask, value: _where(mask, value, z),
    "abs": _magnitude, "absolute": _magnitude, "angle": _angle, "exp": _exponential, "sgn": _sign,
    "log": lambda z: Complex(_magnitude(z).log(), _angle(z)),
    "norm": _of_magnitude(torch.norm), "vector_norm": _of_magnitude(torch.linalg.vector_norm), "linalg_vector_norm": _of_magnitude(torch.linalg.vector_norm),
    "linalg_norm": _of_magnitude(torch.linalg.norm),
    "conj": lambda z: Complex(full(z).real, -full(z).imag), "conj_physical": lambda z: Complex(z.real, -z.imag), "resolve_conj": lambda z: z, "adjoint": lambda z: z.mH,
    "real": lambda z: pair(z)[0], "imag": lambda z: pair(z)[1], "view_as_real": lambda z: torch.stack(pair(z), -1),
    "is_complex": lambda z: True, "is_floating_point": lambda z: False,
    **{name: lambda z, *args, name=name: getattr(z.real, name)(*args) for name in ("size", "dim", "numel", "nelement", "ndimension", "stride", "is_contiguous", "get_device")},
    "to": _converted, "type": _converted, "cfloat": _converted, "cuda": _converted, "cpu": _converted, "type_as": lambda x, other: full(x),
    "zeros": _filled("zeros"), "ones": _filled("ones"), "full": _filled("full"), "tensor": _tensor, "as_tensor": _tensor,
    "zeros_like": lambda z, **_: Complex(torch.zeros_like(pair(z)[0]), torch.zeros_like(pair(z)[0])),
    "ones_like": lambda z, **_: Complex(torch.ones_like(pair(z)[0]), torch.zeros_like(pair(z)[0])),
}
_OPERATORS = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "matmul": "matmul"}
for _name, _rule in _OPERATORS.items():
    _RULES |= {f"__{_name}__": _RULES[_rule], f"__r{_name}__": lambda x, y, rule=_rule: _RULES[rule](y, x)}
_RULES |= {"__div__": _divide, "__rdiv__": _RULES["__rtruediv__"], "__neg__": _RULES["neg"], "__abs__": _magnitude}
for _name in ("__getitem__", "__neg__", "__abs__", *(f"__{side}{name}__" for name in _OPERATORS for side in ("", "r"))):
    setattr(Complex, _name, _RULES[_name])


class Numbers(TorchFunctionMode):
    """Finds what is complex among the arguments of functions: Python's numbers, types, and tensors of the module."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not any(_is_complex(x) for x in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        name = getattr(function, "__name__", "")
        if name == "__get__":
            # Of properties only those that would be complex, or a part of it.
            name = getattr(function.__self__, "__name__", "")
            return getattr(_constant(args[0]), name) if name in ("real", "imag", "T", "mT", "H", "mH") else function(*args, **kwargs)
        if name not in _RULES and all(isinstance(x, torch.dtype) for x in (*args, *kwargs.values()) if _is_complex(x)):
            return function(*args, **kwargs)
        seen = lambda x: _constant(x) if isinstance(x, Tensor) and x.is_complex() else x
        return _ruled(name, tuple(seen(x) for x in args), {key: seen(x) for key, x in kwargs.items()})


def _is_complex(x) -> bool:
    if isinstance(x, Tensor):
        return x.is_complex()
    if isinstance(x, torch.dtype):
        return x.is_complex
    return isinstance(x, complex) or isinstance(x, (list, tuple)) and any(_is_complex(y) for y in x)


FUNCTIONS = ((torch, "complex", complex_of), (torch, "polar", polar), (torch, "view_as_complex", view_as_complex))

"""Mixed precision: matrix products in bf16, what accumulates or has a wide range in f32, masters in f32.

torch.autocast chooses by device, and traced without that device it fails in the backward pass; here the policy is a
TorchFunctionMode around forward. It casts the operands of matrix products to bf16, and of reductions, norms, softmax, exponentials and
losses to f32 (the lists are torch.autocast's). Unlike torch.autocast it rounds residual sums to bf16, as a model whose weights are bf16
has them, and what computes weights (a weight norm, a spectral norm) is in f32 as a whole. Functions that want one type get one. Everything
else computes in what it is given. Autograd then gives the backward pass the same types. bf16 has f32's range, so
that there is no loss scale.

bf16.py lets the graph take and give matrices in bf16.
"""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from unittest import mock

import torch
from torch import Tensor, nn
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn.utils import parametrize
from torch.overrides import TorchFunctionMode

from .complexes import Complex

functional = torch.nn.functional
# The name in torch.nn.utils is a function.
spectral_norm = sys.modules["torch.nn.utils.spectral_norm"]

# What `--precision` knows.
NAMES = ("f32", "bf16")
LOW = torch.bfloat16

# Functions by name: torch, torch.nn.functional and Tensor have them under the same ones, torch.linalg and torch.special with a prefix (_PREFIXES).
_PRODUCTS = frozenset({
    "linear", "matmul", "__matmul__", "__rmatmul__", "mm", "mv", "bmm", "addmm", "addmv", "addbmm", "baddbmm", "einsum", "tensordot", "bilinear",
    "inner", "multi_dot", "chain_matmul",
})
_WIDE = frozenset({
    "softmax", "log_softmax", "softmin", "logsumexp", "softplus", "logsigmoid", "log_sigmoid",
    "layer_norm", "group_norm", "instance_norm", "rms_norm", "norm", "normalize", "renorm", "vector_norm", "matrix_norm",
    "sum", "mean", "prod", "cumsum", "cumprod", "std", "var", "std_mean", "var_mean", "nansum", "nanmean",
    "dot", "vdot", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "__pow__", "__rpow__", "square", "reciprocal", "__rtruediv__", "__rdiv__", "rsqrt",
    "cosh", "sinh", "tan", "acos", "asin", "erfinv", "cdist", "dist", "pdist", "cosine_similarity",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss2d", "mse_loss", "l1_loss",
    "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss", "margin_ranking_loss", "hinge_embedding_loss", "cosine_embedding_loss",
    "soft_margin_loss", "triplet_margin_loss", "ctc_loss", "multi_margin_loss", "multilabel_margin_loss",
    "vecdot", "logcumsumexp", "logaddexp", "logaddexp2", "float_power", "trace", "cov", "corrcoef",
    # These have no form in bf16.
    "complex", "polar", "solve", "solve_ex", "solve_triangular", "inv", "inv_ex", "inverse", "pinv", "cholesky", "cholesky_ex", "cholesky_solve",
    "triangular_solve", "lu_solve", "lstsq", "tensorsolve", "tensorinv", "det", "slogdet", "logdet", "matrix_exp", "matrix_power", "householder_product",
})
# PyTorch refuses arguments of two types here. They get the widest of theirs, as from torch.autocast (which has a few of them), and in place that of
# the tensor that is written to.
_ALIKE = frozenset({
    "cross", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "lerp", "heaviside", "embedding_bag", "meshgrid", "cartesian_prod", "isclose", "allclose",
    "scatter", "scatter_add", "scatter_reduce", "masked_scatter", "index_add", "index_copy", "index_put", "index_reduce", "put",
})
# Here a weight gets the type of the first argument, which is large.
_FOLLOWING = frozenset({"prelu"})
_PREFIXES = ("linalg_", "special_")
_SUMS = frozenset({"add", "__add__", "__radd__"})
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)

# What moves numbers, and computes nothing: exact in every type, also as gradients of each other. Views are asked for by their schema.
_MOVES = frozenset({
    "_to_copy", "clone", "contiguous", "copy", "copy_", "cat", "stack", "where", "gather", "index", "index_select", "embedding", "flip", "roll", "repeat", "tril", "triu",
    "masked_fill", "masked_fill_", "constant_pad_nd", "slice_scatter", "select_scatter", "lift_fresh", "lift_fresh_copy", "slice_backward", "select_backward",
    "fill", "fill_", "zero_", "full", "full_like", "new_full", "zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "empty", "empty_like", "new_empty",
    "empty_strided", "new_empty_strided", "empty_permuted", "scalar_tensor", "arange", "_unsafe_view",
})
# Those of them that ONNX Runtime has for bf16 on a CPU, with their gradients.
_MOVES_OF_BF16 = frozenset({"_to_copy", "clone", "_unsafe_view", "view", "_reshape_alias", "alias", "detach", "permute", "transpose", "t", "unsqueeze", "squeeze"})
_applied = False
# While a weight is computed.
_paused = False


def _cast(x, dtype: torch.dtype):
    """x, or what a list or tuple holds, with its floats as dtype."""
    if isinstance(x, Tensor):
        return x.to(dtype) if x.dtype in _FLOATS else x
    if isinstance(x, (list, tuple)) and any(isinstance(y, Tensor) for y in x):
        return type(x)(_cast(y, dtype) for y in x)
    return x


def _residual(input, other=None, *_, out=None, **__) -> bool:
    """Whether input + other adds the bf16 results of products to f32 activations of their shape, such as [B, T, D].

    Biases, masks and positions that are broadcast have other shapes. Losses and lengths have fewer axes, or a last one of 1.
    """
    if out is not None or not (isinstance(input, Tensor) and isinstance(other, Tensor)):
        return False
    if {input.dtype, other.dtype} != {torch.float32, LOW} or not input.dim() == other.dim() >= 3 or statically_known_true(input.shape[-1] == 1):
        return False
    return all(statically_known_true(a == b) for a, b in zip(input.shape, other.shape, strict=True))


def _type(name: str, args: tuple, kwargs: dict) -> torch.dtype | None:
    """The type that a function gets its floats in; None if it takes them as they are."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    if name in _PRODUCTS:
        return LOW
    if name in _WIDE:
        return torch.float32
    written = name.endswith("_") and name[:-1] in _ALIKE
    if not written and name not in _ALIKE | _FOLLOWING:
        return None
    given = [x.dtype for x in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor) and x.dtype in _FLOATS]
    if not given:
        return None
    if written or name in _FOLLOWING:
        return (args[0] if args else kwargs["input"]).dtype
    return functools.reduce(torch.promote_types, given)


class Policy(TorchFunctionMode):
    """Casts the arguments of the functions above, and residual sums."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name, kwargs = getattr(function, "__name__", ""), kwargs or {}
        if _paused:
            return function(*args, **kwargs)
        if name in _SUMS and _residual(*args, **kwargs):
            with torch._C.DisableTorchFunction():
                return function(*args, **kwargs).to(LOW)
        dtype = _type(name, args, kwargs)
        if dtype is None or any(isinstance(x, Complex) for x in args):
            return function(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            return function(*(_cast(x, dtype) for x in args), **{key: _cast(x, dtype) for key, x in kwargs.items()})


def arithmetic(operator: torch._ops.OpOverload, result: object) -> torch.dtype | None:
    """The type below 32 bits that an operator computes in, if it rounds and no policy of the export has chosen the type. ONNX Runtime rounds such sums and
    products once after several of them, or has no kernel for them."""
    if _applied:
        return None
    made = result if isinstance(result, (list, tuple)) else [result]
    narrow = next((x.dtype for x in made if isinstance(x, Tensor) and x.is_floating_point() and x.dtype.itemsize < 4), None)
    if narrow is None:
        return None
    name = operator._schema.name.partition("::")[2]
    views = narrow == torch.float16 and any(r.alias_info is not None and not r.alias_info.is_write for r in operator._schema.returns)
    return None if views or name in (_MOVES if narrow == torch.float16 else _MOVES_OF_BF16) else narrow


def operands(*tensors: Tensor | None) -> tuple[Tensor | None, ...]:
    """Operands that a product will get, cast before they are copied for it."""
    return tuple(_cast(x, LOW) for x in tensors) if mixing() else tensors


def mixing() -> bool:
    """Whether a policy casts now."""
    return not _paused and any(isinstance(mode, Policy) for mode in torch.overrides._get_current_function_mode_stack())


def full() -> contextlib.AbstractContextManager:
    """Within it no policy casts: for products that are part of another function, as DFTs are."""
    return torch._C.DisableTorchFunction()


def _in_full(function: Callable) -> Callable:
    """The function without a policy in it, which computes a weight: its products are small, and its errors would be those of every use of the weight."""
    @functools.wraps(function)
    def wide(*args, **options):
        with mock.patch.dict(globals(), _paused=True):
            return function(*args, **options)
    return wide


# What PyTorch computes weights by: parametrizations, and the former spectral norm. The former weight norm has no products.
_OF_WEIGHTS = ((parametrize.ParametrizationList, "forward"), (spectral_norm.SpectralNorm, "compute_weight"))


@contextlib.contextmanager
def applied(module: nn.Module, precision: str) -> Iterator[None]:
    """Makes module's forward follow the policy of a precision. Its results are f32 in all of them."""
    if precision == "f32":
        yield
        return
    forward = module.forward

    def mixed(*args):
        # Functions written in Python must be entered, or the policy would see attention as a whole and not its products.
        entered = [mock.patch.object(functional, name, lambda *_: False)
                   for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")]
        weights = [mock.patch.object(owner, name, _in_full(getattr(owner, name))) for owner, name in _OF_WEIGHTS]
        with contextlib.ExitStack() as stack:
            for part in (Policy(), *entered, *weights):
                stack.enter_context(part)
            results = forward(*args)
        return tuple(_cast(x, torch.float32) for x in results) if isinstance(results, tuple) else {key: _cast(x, torch.float32) for key, x in results.items()}

    with mock.patch.object(module, "forward", mixed), mock.patch.dict(globals(), _applied=True):
        yield

"""The optimizers' graphs, for any model: over flat vectors (AdamW, SGD, Lion), or over one matrix or vector (Muon, Adafactor).

Every input of a vector's length is read for an element before that element of an output is written, and an output's last
operator depends on all readers of the input it replaces. So the host may bind acc_out onto acc, param_out onto param and so on.
"""

from pathlib import Path

import onnx

from . import textual

# A micro-batch's gradients, weight and weighted loss are added to the sums of its window. Weights count frames or tokens: their sum is
# exact below 2^24. Of the losses only whether their sum is finite matters.
ACCUMULATE = """
accumulate (float[N] acc, float[N] grads, float loss, float loss_weight, bool first, float loss_sum, float weight_sum)
      => (float[N] acc_out, float loss_sum_out, float weight_sum_out) {
    zero = Constant <value = float {0}> ()
    before = Where (first, zero, acc)
    weighted = Mul (loss_weight, grads)
    acc_out = Add (before, weighted)
    loss_before = Where (first, zero, loss_sum)
    loss_weighted = Mul (loss_weight, loss)
    loss_sum_out = Add (loss_before, loss_weighted)
    weight_before = Where (first, zero, weight_sum)
    weight_sum_out = Add (weight_before, loss_weight)
}
"""

# The squares of gradients that the norm's graph does not get itself, chunk by chunk.
SQUARES = """
squares (float[N] grads, bool first, float sum) => (float sum_out) {
    zero = Constant <value = float {0}> ()
    before = Where (first, zero, sum)
    own = ReduceSumSquare <keepdims = 0> (grads)
    sum_out = Add (before, own)
}
"""

# What the update needs to know of a window stays where it was computed, so that the host can queue the update before it has seen it.
# grads is one batch's mean gradient, or the weighted sum of several; others is the sum of the squares of those that are not among
# them. Comparisons with the largest f32 are false for infinities
# and for NaN.
NORM = """
norm (float[N] grads, float others, float loss, float loss_weight, bool summed) => (float grad_norm, float grad_scale, bool finite) {
    largest = Constant <value = float {3.4028234663852886e38}> ()
    zero = Constant <value = float {0}> ()
    one = Constant <value = float {1}> ()
    one_f64 = Constant <value = double {1}> ()
    weight_f64 = Cast <to = 11> (loss_weight)
    mean_f64 = Div (one_f64, weight_f64)
    mean = Cast <to = 1> (mean_f64)
    scale = Where (summed, mean, one)
    counted = Greater (loss_weight, zero)
    grad_scale = Where (counted, scale, zero)
    own = ReduceSumSquare <keepdims = 0> (grads)
    square = Add (own, others)
    root = Sqrt (square)
    grad_norm = Mul (root, grad_scale)
    loss_size = Abs (loss)
    loss_finite = LessOrEqual (loss_size, largest)
    square_finite = LessOrEqual (square, largest)
    both_finite = And (loss_finite, square_finite)
    finite = And (both_finite, counted)
}
"""

# How every optimizer's graph begins: what the gradient is multiplied with.
_CLIP = """
    zero = Constant <value = double {0}> ()
    one = Constant <value = double {1}> ()
    tiny = Constant <value = double {1e-6}> ()

    norm = Cast <to = 11> (grad_norm)
    norm_tiny = Add (norm, tiny)
    ratio = Div (max_norm, norm_tiny)
    shrink = Min (ratio, one)
    clipping = Greater (max_norm, zero)
    clip = Where (clipping, shrink, one)
    mean_scale = Cast <to = 11> (grad_scale)
    scale_f64 = Mul (mean_scale, clip)
    scale = Cast <to = 1> (scale_f64)
"""

# AdamW as torch.optim.AdamW computes it: scalars in f64, then f32 vectors. torch's lerp is exp_avg + (1-beta1) * (grad-exp_avg).
# Where at the end, rather than a zero step: it keeps every bit, -0 included, whatever the gradients are.
ADAMW = """
adamw (double lr, double beta1, double beta2, double eps, double weight_decay, double max_norm, int64 step,
       float grad_scale, float grad_norm, bool finite,
       float[N] param, float[N] grad, float[N] exp_avg, float[N] exp_avg_sq)
      => (float[N] param_out, float[N] exp_avg_out, float[N] exp_avg_sq_out) {""" + _CLIP + """
    t = Cast <to = 11> (step)
    beta1_power = Pow (beta1, t)
    correction1 = Sub (one, beta1_power)
    step_size_f64 = Div (lr, correction1)
    step_size = Cast <to = 1> (step_size_f64)
    beta2_power = Pow (beta2, t)
    correction2 = Sub (one, beta2_power)
    root2_f64 = Sqrt (correction2)
    root2 = Cast <to = 1> (root2_f64)
    lr_decay = Mul (lr, weight_decay)
    keep_f64 = Sub (one, lr_decay)
    keep = Cast <to = 1> (keep_f64)
    rest1_f64 = Sub (one, beta1)
    rest1 = Cast <to = 1> (rest1_f64)
    rest2_f64 = Sub (one, beta2)
    rest2 = Cast <to = 1> (rest2_f64)
    decay2 = Cast <to = 1> (beta2)
    eps_f32 = Cast <to = 1> (eps)

    g = Mul (grad, scale)
    to_g = Sub (g, exp_avg)
    to_g_part = Mul (to_g, rest1)
    exp_avg_new = Add (exp_avg, to_g_part)
    exp_avg_out = Where (finite, exp_avg_new, exp_avg)

    g_square = Mul (g, g)
    g_square_part = Mul (g_square, rest2)
    exp_avg_sq_part = Mul (exp_avg_sq, decay2)
    exp_avg_sq_new = Add (exp_avg_sq_part, g_square_part)
    exp_avg_sq_out = Where (finite, exp_avg_sq_new, exp_avg_sq)

    root = Sqrt (exp_avg_sq_out)
    root_corrected = Div (root, root2)
    denominator = Add (root_corrected, eps_f32)
    direction = Div (exp_avg_out, denominator)
    change = Mul (direction, step_size)
    param_decayed = Mul (param, keep)
    param_new = Sub (param_decayed, change)
    param_out = Where (finite, param_new, param)
}
"""

# SGD as torch.optim.SGD computes it, with dampening 0: decay is added to the gradient, and a buffer that begins at 0 makes the first
# step what PyTorch's is, whose buffer begins as the first gradient.
SGD = """
sgd (double lr, double momentum, double weight_decay, double max_norm,
     float grad_scale, float grad_norm, bool finite,
     float[N] param, float[N] grad, float[N] momentum_buffer)
    => (float[N] param_out, float[N] momentum_buffer_out) {""" + _CLIP + """
    momentum_f32 = Cast <to = 1> (momentum)
    decay = Cast <to = 1> (weight_decay)
    step_size = Cast <to = 1> (lr)

    g = Mul (grad, scale)
    pull = Mul (param, decay)
    g_decayed = Add (g, pull)
    carried = Mul (momentum_buffer, momentum_f32)
    momentum_buffer_new = Add (carried, g_decayed)
    momentum_buffer_out = Where (finite, momentum_buffer_new, momentum_buffer)

    change = Mul (momentum_buffer_out, step_size)
    param_new = Sub (param, change)
    param_out = Where (finite, param_new, param)
}
"""

# Lion as its authors' code computes it (https://github.com/google/automl/blob/master/lion/lion_pytorch.py). The first interpolation gives
# the direction, the second the momentum. `known` is always true for a finite update. It makes exp_avg_out, which replaces exp_avg, wait
# for the direction, which reads exp_avg.
LION = """
lion (double lr, double beta1, double beta2, double weight_decay, double max_norm,
      float grad_scale, float grad_norm, bool finite,
      float[N] param, float[N] grad, float[N] exp_avg)
     => (float[N] param_out, float[N] exp_avg_out) {""" + _CLIP + """
    lr_decay = Mul (lr, weight_decay)
    keep_f64 = Sub (one, lr_decay)
    keep = Cast <to = 1> (keep_f64)
    step_size = Cast <to = 1> (lr)
    decay1 = Cast <to = 1> (beta1)
    rest1_f64 = Sub (one, beta1)
    rest1 = Cast <to = 1> (rest1_f64)
    decay2 = Cast <to = 1> (beta2)
    rest2_f64 = Sub (one, beta2)
    rest2 = Cast <to = 1> (rest2_f64)

    g = Mul (grad, scale)
    carried1 = Mul (exp_avg, decay1)
    g_part1 = Mul (g, rest1)
    mixed = Add (carried1, g_part1)
    direction = Sign (mixed)
    change = Mul (direction, step_size)
    param_decayed = Mul (param, keep)
    param_new = Sub (param_decayed, change)
    param_out = Where (finite, param_new, param)

    carried2 = Mul (exp_avg, decay2)
    g_part2 = Mul (g, rest2)
    exp_avg_new = Add (carried2, g_part2)
    known = Equal (direction, direction)
    write = And (finite, known)
    exp_avg_out = Where (write, exp_avg_new, exp_avg)
}
"""

# The coefficients of Muon's Newton-Schulz iteration and the least norm that it divides by, as in torch.optim.Muon.
_NS = 3.4445, -4.7750, 2.0315
_NS_STEPS, _NS_EPS = 5, 1e-7


def _newton_schulz(tall: bool) -> str:
    """X becomes aX + (bA + cA^2)X, with A = XX^T, so that its singular values come near 1. A tall X has A = X^TX, on the right."""
    a, b, c = _NS
    lines = []
    for n in range(_NS_STEPS):
        lines.append(f"gram{n} = Gemm <{'transA' if tall else 'transB'} = 1> (x{n}, x{n})")
        lines.append(f"poly{n} = Gemm <alpha = {c}, beta = {b}> (gram{n}, gram{n}, gram{n})")
        lines.append(f"x{n + 1} = Gemm <beta = {a}> ({f'x{n}, poly{n}' if tall else f'poly{n}, x{n}'}, x{n})")
    return "\n    ".join(lines)


def _muon(name: str, tall: bool) -> str:
    """Muon as torch.optim.Muon computes it, with Nesterov's momentum, but in f32, where PyTorch iterates in bf16. adjust depends on the shape."""
    return f"""
{name} (double lr, double momentum, double adjust, double weight_decay, double max_norm,
        float grad_scale, float grad_norm, bool finite,
        float[M, N] param, float[M, N] grad, float[M, N] momentum_buffer)
       => (float[M, N] param_out, float[M, N] momentum_buffer_out) {{""" + _CLIP + f"""
    least = Constant <value = float {{{_NS_EPS}}}> ()
    lr_decay = Mul (lr, weight_decay)
    keep_f64 = Sub (one, lr_decay)
    keep = Cast <to = 1> (keep_f64)
    step_size_f64 = Mul (lr, adjust)
    step_size = Cast <to = 1> (step_size_f64)
    rest_f64 = Sub (one, momentum)
    rest = Cast <to = 1> (rest_f64)

    g = Mul (grad, scale)
    to_g = Sub (g, momentum_buffer)
    to_g_part = Mul (to_g, rest)
    momentum_buffer_new = Add (momentum_buffer, to_g_part)
    momentum_buffer_out = Where (finite, momentum_buffer_new, momentum_buffer)
    ahead = Sub (momentum_buffer_out, g)
    ahead_part = Mul (ahead, rest)
    nesterov = Sub (momentum_buffer_out, ahead_part)

    square = ReduceSumSquare <keepdims = 0> (nesterov)
    length = Sqrt (square)
    divisor = Max (length, least)
    x0 = Div (nesterov, divisor)
    {_newton_schulz(tall)}

    change = Mul (x{_NS_STEPS}, step_size)
    param_decayed = Mul (param, keep)
    param_new = Sub (param_decayed, change)
    param_out = Where (finite, param_new, param)
}}
"""


# Adafactor as torch.optim.Adafactor computes it: what the step size needs of the whole parameter, ...
_ADAFACTOR = _CLIP + """
    t = Cast <to = 11> (step)
    fresh_f64 = Pow (t, beta2_decay)
    fresh = Cast <to = 1> (fresh_f64)
    root_t = Sqrt (t)
    slowing = Div (one, root_t)
    rho = Min (lr, slowing)
    param_square = Mul (param, param)
    param_mean = ReduceMean <keepdims = 0> (param_square)
    param_rms = Sqrt (param_mean)
    param_rms_f64 = Cast <to = 11> (param_rms)
    size = Max (eps2, param_rms_f64)
    alpha = Mul (size, rho)
    lr_decay = Mul (lr, weight_decay)
    keep_f64 = Sub (one, lr_decay)
    keep = Cast <to = 1> (keep_f64)
    eps1_square = Mul (eps1, eps1)
    least = Cast <to = 1> (eps1_square)

    g = Mul (grad, scale)
    g_square = Mul (g, g)
"""


def _adafactor_update(variance: str) -> str:
    """... and, with an estimate of the variance, the update."""
    return f"""
    variance_floor = Max ({variance}, least)
    deviation = Sqrt (variance_floor)
    update = Div (g, deviation)
    update_square = Mul (update, update)
    update_mean = ReduceMean <keepdims = 0> (update_square)
    update_rms = Sqrt (update_mean)
    update_rms_f64 = Cast <to = 11> (update_rms)
    excess = Div (update_rms_f64, d)
    divisor = Max (excess, one)
    step_size_f64 = Div (alpha, divisor)
    step_size = Cast <to = 1> (step_size_f64)
    change = Mul (update, step_size)
    param_decayed = Mul (param, keep)
    param_new = Sub (param_decayed, change)
    param_out = Where (finite, param_new, param)
}}
"""


_ADAFACTOR_INPUTS = """double lr, double beta2_decay, double eps1, double eps2, double d, double weight_decay, double max_norm, int64 step,
           float grad_scale, float grad_norm, bool finite,"""

# Matrices, or stacks of them along the first dimension: the variance is the product of the means of rows and of columns.
ADAFACTOR = f"""
adafactor ({_ADAFACTOR_INPUTS}
           float[B, M, N] param, float[B, M, N] grad, float[B, M, 1] row_var, float[B, 1, N] col_var)
          => (float[B, M, N] param_out, float[B, M, 1] row_var_out, float[B, 1, N] col_var_out) {{""" + _ADAFACTOR + """
    last = Constant <value = int64[1] {2}> ()
    middle = Constant <value = int64[1] {1}> ()
    row_mean = ReduceMean <keepdims = 1> (g_square, last)
    to_row = Sub (row_mean, row_var)
    to_row_part = Mul (to_row, fresh)
    row_var_new = Add (row_var, to_row_part)
    row_var_out = Where (finite, row_var_new, row_var)
    col_mean = ReduceMean <keepdims = 1> (g_square, middle)
    to_col = Sub (col_mean, col_var)
    to_col_part = Mul (to_col, fresh)
    col_var_new = Add (col_var, to_col_part)
    col_var_out = Where (finite, col_var_new, col_var)
    product = Mul (row_var_out, col_var_out)
    eps1_f32 = Cast <to = 1> (eps1)
    mean = ReduceMean <keepdims = 1> (row_var_out, middle)
    mean_floor = Max (mean, eps1_f32)
    estimate = Div (product, mean_floor)
""" + _adafactor_update("estimate")

ADAFACTOR_VECTOR = f"""
adafactor_vector ({_ADAFACTOR_INPUTS}
           float[N] param, float[N] grad, float[N] variance)
          => (float[N] param_out, float[N] variance_out) {{""" + _ADAFACTOR + """
    to_square = Sub (g_square, variance)
    to_square_part = Mul (to_square, fresh)
    variance_new = Add (variance, to_square_part)
    variance_out = Where (finite, variance_new, variance)
""" + _adafactor_update("variance_out")

GRAPHS = {
    "accumulate": ACCUMULATE, "squares": SQUARES, "norm": NORM, "adamw": ADAMW, "sgd": SGD, "lion": LION,
    "muon_wide": _muon("muon_wide", tall=False), "muon_tall": _muon("muon_tall", tall=True),
    "adafactor": ADAFACTOR, "adafactor_vector": ADAFACTOR_VECTOR,
}


def scalars(spec: dict) -> dict[str, float]:
    """The f64 inputs that a bundle's `optimizer` fixes; weight_decay is left to the caller, who knows which vectors it is for."""
    fixed = {"lr": spec["lr"], "max_norm": spec["grad_clip"]}
    if "betas" in spec:
        fixed["beta1"], fixed["beta2"] = spec["betas"]
    return fixed | {key: spec[key] for key in ("eps", "momentum", "beta2_decay", "eps1", "eps2", "d") if key in spec}


def build(name: str) -> onnx.ModelProto:
    return textual.parse(GRAPHS[name])


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    textual.write(GRAPHS, folder)

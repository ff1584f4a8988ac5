"""The optimizers' graphs: a few elementwise operators over flat vectors, whatever the model.

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

GRAPHS = {"accumulate": ACCUMULATE, "squares": SQUARES, "norm": NORM, "adamw": ADAMW, "sgd": SGD}

# What each optimizer keeps of every parameter, as PyTorch names it: the graph's inputs NAME and outputs NAME_out. It begins at 0.
STATE = {"adamw": ("exp_avg", "exp_avg_sq"), "sgd": ("momentum_buffer",)}


def scalars(spec: dict) -> dict[str, float]:
    """The f64 inputs that a bundle's `optimizer` fixes; weight_decay is left to the caller, who knows which vectors it is for."""
    common = {"lr": spec["lr"], "max_norm": spec["grad_clip"]}
    match spec["name"]:
        case "adamw":
            beta1, beta2 = spec["betas"]
            return {**common, "beta1": beta1, "beta2": beta2, "eps": spec["eps"]}
        case "sgd":
            return {**common, "momentum": spec["momentum"]}
    raise ValueError(f"unknown optimizer {spec['name']!r}")


def build(name: str) -> onnx.ModelProto:
    return textual.parse(GRAPHS[name])


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    textual.write(GRAPHS, folder)

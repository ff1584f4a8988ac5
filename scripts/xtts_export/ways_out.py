"""What to write in place of operators that no graph has. Each way out is a module of the suite."""

MASK = "keep the whole size: multiply by the mask, or torch.where(mask, x, 0), and divide a sum by mask.sum().clamp(min=1)"
ANY = "write it with elementwise operators, matrix products, torch.where and torch.cat"
COMPLEX = "compute with both parts: torch.complex(f(z.real), f(z.imag)); sums, products, abs, angle, exp, conj, views and Fourier transforms have a form"
NARROW = ("compute in float32, without .half() and .bfloat16(): y.half().float() rounds and stays, and --precision f32,bf16 makes a graph "
          "with products in bf16")
_BAG = "F.embedding(ids, table), times a mask of the ids, summed over them"

# By the operator's name without namespace, overload, a leading underscore and what says that it is a gradient.
_OPERATORS = {
    "nonzero": MASK, "masked_select": MASK, "index": MASK,
    "unique2": "compare all elements with each value: (ids[..., None] == torch.arange(table)).any(1)",
    "unique_dim": "compare all elements with each value: (ids[..., None] == torch.arange(table)).any(1)",
    "bincount": "sum one-hot vectors: F.one_hot(ids, table).sum(1)",
    "histc": "compare with the edges of the bins and sum: (x[..., None] >= edges).float().sum(1)",
    "repeat_interleave": "compare positions with the cumulative sum of durations, and multiply by that matrix of [T_mel, T_text]",
    "embedding_bag": _BAG, "embedding_bag_forward_only": _BAG,
    "cummax": "a maximum over a triangle: torch.where(ones.tril(), x[:, None], -1e9).amax(2), ones of [T, T]",
    "cummin": "a minimum over a triangle: torch.where(ones.tril(), x[:, None], 1e9).amin(2), ones of [T, T]",
    "lgamma": "Stirling's series: (z - 0.5) * z.log() - z + 0.5 * math.log(2 * math.pi) + 1 / (12 * z)",
    "erfinv": "a logistic quantile in place of the normal one: torch.log(u / (1 - u))",
    "embedding_renorm": "leave max_norm out, and scale in forward: table * (m / table.norm(dim=1, keepdim=True).clamp(min=m)), then F.embedding(ids, it)",
    "linalg_householder_product": "the map of Cayley: parametrizations.orthogonal(layer, orthogonal_map='cayley')",
    "linalg_cholesky_ex": "learn the factor itself: a.tril(-1) + torch.diag_embed(d.exp())",
    "linalg_matrix_exp": "the map of Cayley, torch.linalg.solve(eye + a, eye - a); parametrizations.orthogonal has it as orthogonal_map='cayley'",
}


# Of operators that draw random numbers.
RANDOM = "torch.rand, randn, randint, normal, bernoulli and their _like forms, and nn.Dropout, follow from the seed of the step"
_RANDOM = {
    "randperm": "the order of random numbers, which follow from the seed of the step: torch.rand(n).argsort()",
    "multinomial": "the largest of perturbed logarithms, whose noise follows from the seed of the step: (p.log() - (-torch.rand_like(p).log()).log()).argmax(-1)",
}


def every() -> set[str]:
    """All of this page."""
    return {MASK, ANY, COMPLEX, NARROW, RANDOM, *_OPERATORS.values(), *_RANDOM.values()}


def of_random(operator) -> str:
    """The way out for an operator of PyTorch that draws random numbers."""
    return _RANDOM.get(base(operator), RANDOM)


def of(operator) -> str:
    """The way out for an operator of PyTorch."""
    return _OPERATORS.get(base(operator), ANY)


def known(operator) -> bool:
    """Whether no graph has the operator, so that it is refused where it is called."""
    return base(operator) in _OPERATORS and base(operator) != "index"


def base(operator) -> str:
    """The name that an operator shares with its gradient, and with the one that it is taken apart to."""
    return operator._schema.name.partition("::")[2].removesuffix("_backward").strip("_")

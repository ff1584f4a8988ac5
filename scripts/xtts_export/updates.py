"""How an optimizer updates a parameter, in the host and in PyTorch. Needs PyTorch only."""

import torch

from . import names
from .lion import Lion

# The optimizers of PyTorch that count their steps.
COUNTING = ("adamw", "adafactor")

# What each graph keeps of a parameter, as PyTorch names it: the graph's inputs NAME and outputs NAME_out. It begins at 0.
STATE = {
    "adamw": ("exp_avg", "exp_avg_sq"), "sgd": ("momentum_buffer",), "lion": ("exp_avg",),
    "muon_wide": ("momentum_buffer",), "muon_tall": ("momentum_buffer",),
    "adafactor": ("row_var", "col_var"), "adafactor_vector": ("variance",),
}


def graph(spec: dict, parameter: dict) -> str:
    """The graph that updates a parameter, as the host's package ortgraphs chooses it."""
    shape = parameter["shape"]
    match spec["name"]:
        case "muon" if len(shape) == 2 and not names.match(spec.get("adamw", ()), parameter):
            return "muon_tall" if shape[0] > shape[1] else "muon_wide"
        case "muon":
            return "adamw"
        case "adafactor":
            return "adafactor" if len(shape) > 1 else "adafactor_vector"
    return spec["name"]


def state(spec: dict, parameter: dict) -> dict[str, tuple[int, ...]]:
    """Names and shapes of what an optimizer keeps of a parameter."""
    shape = tuple(parameter["shape"])
    shapes = {"row_var": (*shape[:-1], 1), "col_var": (*shape[:-2], 1, *shape[-1:])}
    return {kind: shapes.get(kind, shape) for kind in STATE[graph(spec, parameter)]}


def torch_optimizer(spec: dict, param_groups: list[dict]) -> torch.optim.Optimizer:
    """PyTorch's optimizer with the settings of a bundle's `optimizer`. For "muon" it is the one of the matrices alone."""
    match spec["name"]:
        case "adamw":
            return torch.optim.AdamW(param_groups, lr=spec["lr"], betas=tuple(spec["betas"]), eps=spec["eps"])
        case "sgd":
            return torch.optim.SGD(param_groups, lr=spec["lr"], momentum=spec["momentum"])
        case "lion":
            return Lion(param_groups, lr=spec["lr"], betas=tuple(spec["betas"]))
        case "muon":
            return torch.optim.Muon(param_groups, lr=spec["lr"], momentum=spec["momentum"], adjust_lr_fn="match_rms_adamw")
        case "adafactor":
            return torch.optim.Adafactor(param_groups, lr=spec["lr"], beta2_decay=spec["beta2_decay"], eps=(spec["eps1"], spec["eps2"]), d=spec["d"])
    raise ValueError(f"unknown optimizer {spec['name']!r}")


def groups(named_parameters, parameters: list[dict] | None = None, weight_decay: float = 0.0, own: list[dict] | tuple = (),
           lr: float | None = None) -> list[dict]:
    """param_groups in the order of the saved optimizer: what is decayed, then what is not, in the bundle's order; nothing frozen.

    Without the bundle's `parameters`, tensors of two and more dimensions are decayed, as the exporter of bundles does it. Parameters
    that a group of `own` names come after the others, group by group; lr is what the factors of groups are of.
    """
    named = dict(named_parameters)
    if parameters is None:
        parameters = [{"name": name, "decay": p.dim() >= 2, "frozen": not p.requires_grad} for name, p in named.items()]
    trained = [p for p in parameters if not p.get("frozen")]
    out = []
    for group in ({"match": {p["name"] for p in trained} - {name for g in own for name in g["match"]}}, *own):
        rate = {} if lr is None or "lr_factor" not in group else {"lr": lr * group["lr_factor"]}
        for decay, usual in ((True, weight_decay), (False, 0.0)):
            part = [(p["name"], named[p["name"]]) for p in trained if p["name"] in group["match"] and bool(p.get("decay")) == decay]
            if part:
                out.append({"params": part, "weight_decay": group.get("weight_decay", usual), **rate})
    return out

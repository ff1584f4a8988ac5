"""PyTorch's optimizer step, as the host's must be."""

from collections.abc import Iterable

import torch
from torch import nn


def optimizer(module: nn.Module, spec: dict) -> torch.optim.Optimizer:
    """PyTorch's own of a bundle's `optimizer`: matrices are decayed, vectors are not."""
    parameters = list(module.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": spec["weight_decay"]},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    match spec["name"]:
        case "adamw":
            return torch.optim.AdamW(groups, lr=spec["lr"], betas=tuple(spec["betas"]), eps=spec["eps"])
        case "sgd":
            return torch.optim.SGD(groups, lr=spec["lr"], momentum=spec["momentum"])
    raise ValueError(f"unknown optimizer {spec['name']!r}")


def step(module: nn.Module, optimizer: torch.optim.Optimizer, batch: Iterable[torch.Tensor], seed: torch.Tensor,
         grad_clip: float) -> tuple[dict[str, float], float]:
    """One training step of a Step; returns its outputs and the norm of the gradient before clipping."""
    optimizer.zero_grad()
    outputs = module(*batch, seed)
    outputs["loss"].backward()
    norm = nn.utils.clip_grad_norm_(module.parameters(), grad_clip or float("inf"))
    optimizer.step()
    return {name: x.item() for name, x in outputs.items()}, norm.item()

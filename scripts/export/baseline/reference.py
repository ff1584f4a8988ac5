"""PyTorch's optimizer step, as the host's must be."""

import torch
from torch import nn


def optimizer(module: nn.Module, spec: dict) -> torch.optim.AdamW:
    """AdamW from a bundle's `optimizer`: matrices are decayed, vectors are not."""
    parameters = list(module.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": spec["weight_decay"]},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=spec["lr"], betas=tuple(spec["betas"]), eps=spec["eps"])


def step(module: nn.Module, adamw: torch.optim.AdamW, batch: list, seed: torch.Tensor, grad_clip: float) -> tuple[list[float], float]:
    """One training step; returns the module's outputs and the norm of the gradient before clipping."""
    adamw.zero_grad()
    outputs = module(*batch, seed)
    outputs[0].backward()
    norm = nn.utils.clip_grad_norm_(module.parameters(), grad_clip or float("inf"))
    adamw.step()
    return [x.item() for x in outputs], norm.item()

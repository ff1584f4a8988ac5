"""PyTorch's optimizer step, as the host's must be."""

from collections.abc import Collection, Iterable

import torch
from torch import nn

from .. import names, updates


def optimizer(module: nn.Module, spec: dict, only: Collection[str] | None = None) -> torch.optim.Optimizer:
    """PyTorch's own of a bundle's `optimizer`: matrices are decayed, vectors are not. only names what it trains, if that is not everything."""
    named = [(name, p) for name, p in module.named_parameters() if only is None or name in only]
    return Muon(named, spec) if spec["name"] == "muon" else updates.torch_optimizer(spec, _groups(named, spec))


def _groups(named_parameters: Iterable[tuple[str, nn.Parameter]], spec: dict) -> list[dict]:
    """param_groups of some of a module's parameters, with those of the bundle."""
    named = dict(named_parameters)
    own = names.resolved(spec.get("groups", ()), [{"name": name} for name in named])
    return updates.groups(named.items(), None, spec["weight_decay"], own, spec["lr"])


class Muon:
    """torch.optim.Muon for the matrices of the host's choice and torch.optim.AdamW for the rest. Unless rounded, Muon iterates in f32."""

    def __init__(self, named_parameters: Iterable[tuple[str, nn.Parameter]], spec: dict, rounded: bool = False):
        self.rounded, self.both, named = rounded, [], list(named_parameters)
        for kind in ("muon", "adamw"):
            part = [(name, p) for name, p in named
                    if (updates.graph(spec, {"name": name, "shape": p.shape}) == "adamw") == (kind == "adamw")]
            if part:
                self.both.append(updates.torch_optimizer({**spec, "name": kind}, _groups(part, spec)))

    @property
    def param_groups(self) -> list[dict]:
        return [group for o in self.both for group in o.param_groups]

    @property
    def state(self) -> dict:
        return {p: state for o in self.both for p, state in o.state.items()}

    def zero_grad(self) -> None:
        for o in self.both:
            o.zero_grad()

    def step(self) -> None:
        theirs = torch.optim._muon._zeropower_via_newtonschulz
        torch.optim._muon._zeropower_via_newtonschulz = theirs if self.rounded else f32_newton_schulz
        try:
            for o in self.both:
                o.step()
        finally:
            torch.optim._muon._zeropower_via_newtonschulz = theirs


def f32_newton_schulz(matrix: torch.Tensor, coefficients: tuple, steps: int, eps: float) -> torch.Tensor:
    """torch.optim.Muon's iteration without its rounding to bf16."""
    a, b, c = coefficients
    x = matrix.T if matrix.size(0) > matrix.size(1) else matrix
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if matrix.size(0) > matrix.size(1) else x


def step(module: nn.Module, optimizer: torch.optim.Optimizer, batch: Iterable[torch.Tensor], seed: torch.Tensor,
         grad_clip: float) -> tuple[dict[str, float], float]:
    """One training step of a Step; returns its outputs and the norm of the gradient before clipping."""
    optimizer.zero_grad()
    outputs = module(*batch, seed)
    outputs["loss"].backward()
    norm = nn.utils.clip_grad_norm_(module.parameters(), grad_clip or float("inf"))
    optimizer.step()
    return {name: x.item() for name, x in outputs.items()}, norm.item()

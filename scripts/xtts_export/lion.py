"""Lion, which PyTorch does not have: its authors' formula (https://github.com/google/automl/blob/master/lion/lion_pytorch.py)."""

import torch


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, Symbolic Discovery of Optimization Algorithms: a step in the direction of the sign of a mean of gradients."""

    def __init__(self, params, lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p)
                mean = state["exp_avg"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_((mean * beta1 + p.grad * (1 - beta1)).sign_(), alpha=-group["lr"])
                mean.mul_(beta2).add_(p.grad, alpha=1 - beta2)
        return loss

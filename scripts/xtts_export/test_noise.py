"""Noise follows from the seed: it looks random, and graphs draw what PyTorch draws."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from . import noise, session
from .inputs import Input, batch
from .joint import export
from .lowering import seeded
from .module import Export, Step
from .refusal import Refusal

SHAPE = (16, 200, 80)
SEEDS = (-1, 0, 1, 2**62 + 5)


def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]).double())[0, 1])


@pytest.mark.parametrize("seed", SEEDS)
def test_looks_random(seed):
    count, seed = np.prod(SHAPE), torch.tensor(seed)
    limit = 5 / np.sqrt(count)
    u, n = noise.uniform(SHAPE, seed, 0), noise.normal(SHAPE, seed, 0)
    assert 0 < u.min() < 1e-4 and 1 - 1e-4 < u.max() < 1
    assert abs(u.mean() - 0.5) < limit and abs(u.var() * 12 - 1) < limit
    assert [float((n.double()**k).mean()) for k in (1, 2, 3, 4)] == pytest.approx([0, 1, 0, 3], abs=10 * limit)
    flat = n.flatten()
    for name, other in {
        "next number": flat[1:], "next row": flat[80:], "next seed": noise.normal(SHAPE, seed + 1, 0), "next site": noise.normal(SHAPE, seed, 1),
    }.items():
        other = other.flatten()
        mine = flat[:len(other)]
        assert abs(correlation(mine, other)) < limit and abs(correlation(mine**2, other**2)) < limit, name
    # Pairs of neighbours fill the square: chi-squared of 1,023 degrees of freedom.
    pairs = torch.bincount((u.flatten()[:-1] * 32).long() * 32 + (u.flatten()[1:] * 32).long(), minlength=1024).double()
    assert ((pairs - pairs.mean())**2 / pairs.mean()).sum() < 1023 + 5 * np.sqrt(2 * 1023)
    drawn = torch.bincount(noise.integers(-2, 5, SHAPE, seed, 0).flatten() + 2).double()
    assert len(drawn) == 7 and ((drawn - drawn.mean())**2 / drawn.mean()).sum() < 30


class Draws(nn.Module):
    """One of each kind."""

    def __init__(self):
        super().__init__()
        self.scale, self.channels, self.elements = nn.Parameter(torch.ones(4)), nn.Dropout1d(0.2), nn.Dropout(0.1)

    def forward(self, x):
        y = self.channels((x * self.scale).transpose(1, 2)).transpose(1, 2)
        y = y + torch.randn_like(y) * torch.rand(y.shape[0])[:, None, None] + torch.rand_like(y[:, :, :1]) + torch.randn(4)
        y = y + torch.distributions.Normal(torch.zeros_like(y), torch.ones_like(y)).rsample() + torch.normal(0.0, 1.0, (1, 1, 4))
        y = y * F.gumbel_softmax(y, dim=-1) + torch.empty_like(y).uniform_(-1, 1) + torch.zeros_like(y).normal_()
        y = y * torch.bernoulli(torch.full_like(y, 0.5)) + torch.randint(3, 9, y.shape) + torch.randint_like(y, 4)
        return {"loss": self.elements(y).square().mean(), "loss_weight": torch.ones(())}


@pytest.fixture(scope="module")
def drawing(tmp_path_factory):
    path = tmp_path_factory.mktemp("draws") / "draws.onnx"
    inputs = [Input("x", "f32", ("B", "T", 4))]
    step = Step(Export("draws", Draws(), inputs, [{"T": 9}], {}))
    step.outputs = ("loss", "loss_weight")
    export(step, [*inputs, Input("seed", "i64", ())], [torch.zeros(3, 5, 4), torch.tensor(0)], step.outputs, path)
    return step, inputs, session.load(path)


@pytest.mark.parametrize("sizes", [{"B": 1, "T": 9}, {"B": 4, "T": 17}], ids=str)
def test_graph_draws_what_pytorch_draws(drawing, sizes):
    step, inputs, graph = drawing
    tensors = batch(inputs, sizes, np.random.default_rng(0))
    losses = {}
    for seed in SEEDS:
        got = session.run(graph, {"scale": step._export[0].module.scale.detach().numpy(), **session.batch_feed(inputs, tensors.values(), seed)})
        losses[seed], _ = step(*tensors.values(), torch.tensor(seed))
        [gradient] = torch.autograd.grad(losses[seed], step.parameters())
        assert got["loss"] == pytest.approx(losses[seed].item(), rel=1e-5)
        np.testing.assert_allclose(got["grad.scale"], gradient.numpy(), rtol=1e-4)
    assert len({loss.item() for loss in losses.values()}) == len(SEEDS)
    assert step(*tensors.values())[0].item() == losses[-1].item()  # evaluation has no seed


def test_dropout_of_channels():
    with seeded(torch.tensor(3)):
        kept = F.dropout1d(torch.ones(50, 40, 6), 0.25)
    assert kept.unique().tolist() == pytest.approx([0, 1 / 0.75]) and (kept == kept[:, :, :1]).all()
    assert abs((kept > 0).float().mean() - 0.75) < 0.05
    with seeded(torch.tensor(-1)):
        assert (F.dropout2d(torch.ones(5, 4, 6, 2), 0.25) == 1).all()


def test_refuses_a_generator_of_its_own():
    with pytest.raises(Refusal, match="torch.Generator has a state"), seeded(torch.tensor(3)):
        torch.randn(3, generator=torch.Generator())

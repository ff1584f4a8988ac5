"""What a loss or a module captures is trained, left alone on purpose, or refused; and dropout in place drops."""

import functools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from . import verify
from .inputs import batch
from .refusal import Refusal
from .suite.case import WIDTH, Case, write
from .test_leftovers import dry

CRITERION = nn.Linear(WIDTH, WIDTH)


class Model(Case):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.linear(x)


def closure(case):
    criterion, own = nn.Linear(WIDTH, WIDTH), case.loss
    return lambda y, batch: own(criterion(y), batch), "criterion.weight"


def in_a_list(case):
    weights, own = [torch.ones(WIDTH, requires_grad=True)], case.loss
    return lambda y, batch: own(y * weights[0], batch), "weights"


def of_a_dict_of_a_closure(case):
    held, own = {"a": nn.Linear(WIDTH, WIDTH)}, case.loss

    def inner(y):
        return held["a"](y)
    return lambda y, batch: own(inner(y), batch), "held.weight"


def global_one(case):
    own = case.loss
    return lambda y, batch: own(CRITERION(y), batch), "CRITERION.weight"


def partial(case):
    def loss(criterion, y, batch):
        return own(criterion(y), batch)
    own = case.loss
    return functools.partial(loss, nn.Linear(WIDTH, WIDTH)), "Linear.weight"


def keyword(case):
    def loss(y, batch, criterion):
        return own(criterion(y), batch)
    own = case.loss
    return functools.partial(loss, criterion=nn.Linear(WIDTH, WIDTH)), "criterion.weight"


def default(case):
    def loss(y, batch, criterion=nn.Linear(WIDTH, WIDTH)):
        return own(criterion(y), batch)
    own = case.loss
    return loss, "weight"


def bound(case):
    class Criterion(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(WIDTH, WIDTH)

        def forward(self, y, batch):
            return own(self.head(y), batch)
    own = case.loss
    return Criterion().forward, "weight"


def attribute(case):
    case.scale = torch.ones(WIDTH, requires_grad=True)
    own = case.loss
    return lambda y, batch: own(y * case.scale, batch), "scale"


@pytest.mark.parametrize("capture", [closure, in_a_list, of_a_dict_of_a_closure, global_one, partial, keyword, default, bound, attribute])
def test_a_captured_parameter_is_refused_by_its_name(capture):
    case = Model()
    case.loss, name = capture(case)
    with pytest.raises(Refusal, match="requires a gradient and is no parameter of the exported module") as caught:
        dry(case)
    assert name in str(caught.value) and "test_captured.py" in str(caught.value) and "requires_grad_(False)" in caught.value.hint, (str(caught.value), caught.value.hint)


def test_the_hint_works_to_the_letter(tmp_path):
    module = Model()
    criterion, own = nn.Linear(WIDTH, WIDTH), module.loss
    module.loss = lambda y, batch: own(criterion(y), batch)
    module.criterion = criterion
    export, step = write(module, tmp_path / "x.onnx")
    verify.check(export, step, {"B": 3, "T": 12}, tmp_path / "x.onnx")
    assert "criterion.weight" in dict(step.named_parameters())
    frozen = Model()
    frozen.loss, _ = closure(frozen)
    frozen.loss.__closure__[0].cell_contents.requires_grad_(False)
    dry(frozen)


class Teacher(Model):
    def forward(self, x):
        with torch.no_grad():
            target = CRITERION(x)
        return self.linear(x) - target


def test_what_runs_without_gradients_may_be_captured():
    dry(Teacher())


class InPlace(Model):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5, inplace=True)

    def forward(self, x):
        y = self.linear(x)
        self.drop(y)
        return y


class Functional(Model):
    def forward(self, x):
        y = self.linear(x)
        F.dropout(y, 0.5, self.training, inplace=True)
        return y


class Underscore(Model):
    def forward(self, x):
        y = self.linear(x)
        torch.dropout_(y, 0.5, self.training)
        return y


class Channels(Model):
    def forward(self, x):
        y = self.linear(x).mT.contiguous()
        F.dropout1d(y, 0.5, self.training, inplace=True)
        return y.mT


class Alpha(Model):
    def forward(self, x):
        y = self.linear(x)
        F.alpha_dropout(y, 0.5, self.training, inplace=True)
        return y


@pytest.mark.parametrize("case", [InPlace, Functional, Underscore, Channels, Alpha])
def test_dropout_in_place_drops(case, tmp_path):
    torch.manual_seed(0)
    module = case()
    export, step = write(module, tmp_path / "x.onnx")
    tensors = batch(export.inputs, {"B": 3, "T": 12}, np.random.default_rng(0))
    graph = verify.Graph(export, tmp_path / "x.onnx")
    losses = {seed: float(graph.run(tensors, seed=seed)["loss"]) for seed in (1, 2, 3)}
    assert len(set(losses.values())) == 3
    for seed, loss in losses.items():
        want = step.named(*tensors.values(), torch.tensor(seed))["loss"]
        assert loss == pytest.approx(want.item(), rel=1e-5)

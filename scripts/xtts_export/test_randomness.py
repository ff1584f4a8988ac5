"""Numbers that no graph has are refused by the line that draws them, however rarely they decide anything."""

import os
import random
import secrets
import time
import uuid

import numpy as np
import pytest
import torch
from torch import nn

from .refusal import Refusal
from .suite.case import WIDTH, Case
from .test_leftovers import dry

OWN = random.Random(3)


class Linear(Case):
    def __init__(self):
        super().__init__()
        self.linear, self.rng, self.calls, self.counts, self.seen = nn.Linear(WIDTH, WIDTH), np.random.default_rng(0), 0, [0], {"n": 0}


class LayerDrop(Linear):
    def forward(self, x):
        if np.random.random() > 1e-12:  # blamed
            x = x + self.linear(x)
        return x


class Pythons(Linear):
    def forward(self, x):
        return self.linear(x) if random.random() < 2 else x  # blamed


class Shuffled(Linear):
    def forward(self, x):
        random.sample(range(9), 2)  # blamed
        return self.linear(x)


class OwnGenerator(Linear):
    def forward(self, x):
        return self.linear(x) * (1 if self.rng.random() < 2 else 0)  # blamed


class GlobalGenerator(Linear):
    def forward(self, x):
        return self.linear(x) * (1 if OWN.random() < 2 else 0)  # blamed


class Seeds(Linear):
    def forward(self, x):
        torch.manual_seed(0)  # blamed
        return self.linear(x) + torch.randn(WIDTH)


class Fresh(Linear):
    def forward(self, x):
        return self.linear(x) * (1 if np.random.default_rng().random() < 2 else 0)  # blamed


class FreshPythons(Linear):
    def forward(self, x):
        return self.linear(x) * (1 if random.Random().random() < 2 else 0)  # blamed


class System(Linear):
    def forward(self, x):
        return self.linear(x) * (1 if random.SystemRandom().random() < 2 else 0)  # blamed


class Secret(Linear):
    def forward(self, x):
        return self.linear(x) * (1 if secrets.randbelow(5) < 9 else 0)  # blamed


class Urandom(Linear):
    def forward(self, x):
        return self.linear(x) * (1 if os.urandom(1)[0] < 256 else 0)  # blamed


class Name(Linear):
    def forward(self, x):
        return self.linear(x) * (1 if uuid.uuid4().int else 0)  # blamed


class Fails(Linear):
    """What it draws, it does not take."""

    def forward(self, x):
        n = random.randrange(5, 9)  # blamed
        return self.linear(x[:, :, :n % 3])


class InTheLoss(Linear):
    def forward(self, x):
        return self.linear(x)

    def loss(self, y, batch):
        if np.random.rand() < 2:  # blamed
            y = y * 2
        return super().loss(y, batch)


class Clock(Linear):
    def forward(self, x):
        return self.linear(x) * (time.time() % 7)  # blamed


class Calls(Linear):
    def forward(self, x):
        self.calls += 1  # blamed
        return self.linear(x) if self.calls % 1000 else x


class Counts(Linear):
    def forward(self, x):
        self.counts[0] += 1  # blamed
        return self.linear(x) if self.counts[0] % 1000 else x


class Seen(Linear):
    def forward(self, x):
        self.seen["n"] += 1  # blamed
        return self.linear(x) if self.seen["n"] % 1000 else x


CASES = [LayerDrop, Pythons, Shuffled, OwnGenerator, GlobalGenerator, Seeds, Fresh, FreshPythons, System, Secret, Urandom, Name, Fails, InTheLoss, Clock, Calls, Counts, Seen]


@pytest.mark.parametrize("case", CASES)
def test_refused(case):
    with pytest.raises(Refusal) as caught:
        dry(case())
    assert "# blamed" in str(caught.value), caught.value


class Measured(Linear):
    """It measures itself, and has numbers of a seed of its own."""

    def forward(self, x):
        start = time.perf_counter()
        signs = torch.from_numpy(np.random.default_rng(0).choice([-1.0, 1.0], WIDTH).astype(np.float32))
        y = self.linear(x) * signs * random.Random(4).random() + torch.randn_like(x)
        self.linear.seconds = time.perf_counter() - start
        return y


def test_passes():
    before = random.getstate(), np.random.get_state()[1].tobytes(), torch.initial_seed()
    dry(Measured())
    assert (random.getstate(), np.random.get_state()[1].tobytes()) == before[:2]

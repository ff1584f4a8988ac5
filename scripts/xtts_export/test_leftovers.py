"""What a call of forward leaves for the next one, as the exporter finds it before it traces."""

import pytest
import torch
from torch import nn

from . import writer
from .module import Step
from .refusal import Refusal
from .suite.case import WIDTH, Case, exported
from .suite.lasting import HeldTables, KeptBanks, KeptPositions, OtherKept, filtered, places

STEPS = 0


class Linear(Case):
    def __init__(self):
        super().__init__()
        self.linear, self.size, self.seen, self.scale = nn.Linear(WIDTH, WIDTH), 0, False, None


class Flag(Linear):
    def forward(self, x):
        if not self.seen:
            self.scale = x.detach().std()  # blamed
            self.seen = True
        return self.linear(x) / self.scale


class GlobalCounter(Linear):
    def forward(self, x):
        global STEPS
        STEPS += 1  # blamed
        return self.linear(x) * STEPS


class Cache(Linear):
    """What depends on sizes only, with a flag and a number."""

    def forward(self, x):
        if not self.seen or x.shape[1] > self.size:
            self.scale, self.size, self.seen = torch.arange(x.shape[1]).cos()[:, None], x.shape[1], True
        return self.linear(x) * self.scale[:x.shape[1]]


class Consumed(Linear):
    """Its second call wants what the first has taken."""

    def __init__(self):
        super().__init__()
        self.scales = [0.5]

    def forward(self, x):
        return self.linear(x) * self.scales.pop()  # blamed


class Grown(Linear):
    """A cache of keys, which the mask of a call has no place for."""

    def __init__(self):
        super().__init__()
        self.keys = None

    def forward(self, x):
        y = self.linear(x)
        self.keys = y if self.keys is None else torch.cat([self.keys, y], 1)
        return (y @ self.keys.mT + torch.ones(x.shape[1], x.shape[1]).tril()).softmax(-1) @ self.keys  # blamed


class Once(Linear):
    """What it uses up is nothing that the exporter can give back."""

    def __init__(self):
        super().__init__()
        # For the dry run, and for the first of two runs on each of two batches.
        self.linear.scales = iter([1.0] * 3)

    def forward(self, x):
        return self.linear(x) * next(self.linear.scales)  # blamed


class Unlucky(Linear):
    """Not every batch is one that it can take, whatever was left."""

    def forward(self, x):
        return self.linear(x)[:, torch.full((2,), 10**6)]


def dry(case: Case) -> None:
    torch.manual_seed(0)
    export = exported(case)
    writer.dry_run(export, Step(export))


@pytest.mark.parametrize(("case", "reason", "hint"), [
    (Flag, "forward gives scale another tensor, which outlives the step", "register_buffer('scale'"),
    (GlobalCounter, "forward changes xtts_export.test_leftovers.STEPS from 0 to 1", "schedule"),
    (Consumed, "forward fails when it is called again: IndexError: pop from empty list", "make scales anew in forward"),
    (Grown, "forward fails when it is called again: RuntimeError", "make keys anew in forward"),
    (Once, "forward fails when it is called again: StopIteration", "make what a call uses up anew in forward"),
], ids=lambda x: getattr(x, "__name__", None))
def test_refused(case, reason, hint):
    with pytest.raises(Refusal) as caught:
        dry(case())
    message = str(caught.value)
    assert reason in message and "# blamed" in message and "test_leftovers.py" in message and hint in caught.value.hint, message
    assert STEPS == 0


def test_a_batch_that_forward_cannot_take_says_nothing_of_the_next_call(capsys):
    dry(Unlucky())
    assert "does not run on a random batch (IndexError: index 1000000 is out of bounds" in capsys.readouterr().out


@pytest.mark.parametrize("case", [Cache, KeptPositions, KeptBanks, OtherKept])
def test_a_cache_passes_and_leaves_nothing(case):
    module = case()
    before = {key: x for key, x in vars(module).items() if not key.startswith("_")}
    dry(module)
    assert {key: x for key, x in vars(module).items() if not key.startswith("_")} == before


def test_what_code_holds_is_as_it_was():
    dry(HeldTables())
    assert HeldTables.windows == {} and HeldTables.ramp is None and filtered.__defaults__ == ({},) and places.cache_info().currsize == 0


def test_what_the_loss_holds_is_not_left_either(tmp_path):
    weights = {}

    def loss(y, batch):
        if "w" not in weights:
            weights["w"] = torch.linspace(0, 1, WIDTH)
        rows = (batch["lengths"] > 0).float()
        return {"loss": ((y * weights["w"]).square().mean((1, 2)) * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}

    case = Cache()
    case.loss = loss
    dry(case)
    assert not weights


class Lazy(dict):
    """A table of classes whose entries are imported when they are asked for, as transformers has: one of a package that is not installed."""

    def __getitem__(self, key):
        raise ImportError(key)

    def keys(self):
        return ["missing"]

    def __iter__(self):
        return iter(self.keys())


class ByClass(dict):
    """A table by the class of an object, as transformers has."""

    def get(self, model):
        return super().get(str(type(model)))


CLASSES, BY_CLASS = Lazy(), ByClass({"class": 1})


def test_tables_of_other_keys_and_entries_are_not_asked():
    dry(Cache())
    with pytest.raises(ImportError):
        dict(CLASSES)

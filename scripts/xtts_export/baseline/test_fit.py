"""What a module takes of a bundle, and which bundles and builders beside refuses: without the program."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from ..refusal import Refusal
from . import beside

BUILDERS = """
from xtts_export import examples


def build():
    return examples.code_model()


other = build
"""


class Tied(nn.Module):
    """Has a tied parameter and state that is not persistent."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(2, 2), nn.Linear(2, 2), nn.BatchNorm1d(2)
        self.b.weight = self.a.weight
        self.register_buffer("mean", torch.zeros(2), persistent=False)
        self.register_buffer("constant", torch.ones(2))


STATE = ["mean", "norm.running_mean"]


def saved(folder, **changes: torch.Tensor | None):
    """The weights of a Tied that are all 5, with other ones, or without those that are None."""
    module = Tied()
    weights = {name: torch.full_like(x, 5) for name, x in [*module.named_parameters(), *((name, module.get_buffer(name)) for name in STATE)]} | changes
    save_file({name: x for name, x in weights.items() if x is not None}, folder / "params.safetensors")


def test_a_module_gets_the_parameters_and_the_state_of_the_bundle(tmp_path):
    saved(tmp_path)
    beside.load(module := Tied(), tmp_path, STATE)
    assert all((x == 5).all() for x in [*module.parameters(), *map(module.get_buffer, STATE)])
    assert module.b.weight is module.a.weight and (module.constant == 1).all()


@pytest.mark.parametrize(("changes", "message"), [
    ({"a.bias": None}, "lacks a.bias"),
    ({"mean": None}, "lacks mean"),
    ({"c.bias": torch.ones(2)}, "has c.bias, which the module lacks"),
    ({"a.bias": torch.ones(1)}, r"a.bias is \[1\] in .*params.safetensors, and \[2\] in the module"),
])
def test_a_bundle_of_another_module_is_refused(tmp_path, changes, message):
    saved(tmp_path, **changes)
    with pytest.raises(Refusal, match=message):
        beside.load(Tied(), tmp_path, STATE)


def test_two_builders_of_one_name_are_refused(tmp_path):
    (tmp_path / "codes.py").write_text(BUILDERS)
    builders = [f"{tmp_path}/codes.py:{name}" for name in ("build", "other")]
    with pytest.raises(SystemExit) as refused:
        beside.main([*builders, "--work", str(tmp_path / "work")])
    assert f"{builders[0]} and {builders[1]} both return an Export of the name 'code-model'" in refused.value.code
    assert not (tmp_path / "work").exists()

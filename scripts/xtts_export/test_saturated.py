"""A refused difference names the function that takes the logarithm of what a sigmoid has rounded."""

import pytest
import torch

from . import saturated
from .refusal import Refusal


def _of_rounded(x):
    return torch.log(torch.sigmoid(x))  # small


def _of_distance(x):
    return torch.log(1 - torch.sigmoid(-x))  # distance


@pytest.mark.parametrize(("function", "line"), [(_of_rounded, "# small"), (_of_distance, "# distance")])
def test_the_logarithm_of_a_sigmoid_is_named(function, line):
    error = Refusal("they differ", "look")
    found = saturated.explained(error, lambda: function(torch.tensor([1.0, -20.0])))
    assert "they differ: log gets results of a sigmoid that are rounded to 0 and 1" in str(found)
    assert line in str(found) and found.hint == saturated.HINT


def test_other_logarithms_are_not():
    error = Refusal("they differ", "look")
    for x in (torch.tensor([1.0, -2.0]), torch.tensor([20.0])):
        assert saturated.explained(error, lambda x=x: _of_rounded(x)) is error
    assert saturated.explained(error, lambda: torch.log(torch.tensor([1e-9]))) is error

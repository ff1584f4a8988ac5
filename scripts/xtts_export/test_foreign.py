"""A run's weights in place of those of another program's file."""

import pytest
import torch

from . import foreign

TABLE, HEAD = "text.table", "mel.head"


def test_tables_may_have_got_rows():
    """No other tensor may, and none may have lost some."""
    weights = {TABLE: torch.ones(7, 3), HEAD: torch.ones(7)}
    model = {f"a.{name}": torch.zeros_like(x) for name, x in weights.items()} | {"b": torch.zeros(2)}
    made, problems = foreign.replaced(model | {f"a.{TABLE}": torch.zeros(5, 3)}, weights, [TABLE])
    assert not problems and made[f"a.{TABLE}"] is weights[TABLE] and made["b"] is model["b"]


@pytest.mark.parametrize(("name", "had", "has"), [(HEAD, [5], [7]), (HEAD, [9], [7]), (TABLE, [9, 3], [7, 3]), (TABLE, [5, 4], [7, 3]), (TABLE, [], [7, 3])])
def test_other_shapes_are_named(name, had, has):
    weights = {TABLE: torch.ones(7, 3), HEAD: torch.ones(7)}
    _, problems = foreign.replaced(weights | {name: torch.zeros(had)}, weights, [TABLE])
    assert problems == [f"shape       {name} is {had}, not {has}"]

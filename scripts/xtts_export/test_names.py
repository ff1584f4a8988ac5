"""Patterns of names and parameter groups, as the host reads them."""

import pytest

from . import names


@pytest.mark.parametrize(("pattern", "found"), [
    ("text.norm", "text.norm.bias text.norm.weight"), ("*.bias", "text.norm.bias"), ("text*weight", "text.embedding.weight text.norm.weight"),
    ("blocks.?", "blocks.1.weight"), ("blocks.[0-3]", "blocks.1.weight"), ("blocks.[^0-3]*", ""), ("head.weight", "text.embedding.weight"),
    ("odd[[]0]", "odd[0]"), ("text.nor", ""),
])
def test_patterns_are_the_hosts(pattern, found):
    """The cases are those of the Go package host/settings/selection."""
    parameters = [{"name": "text.embedding.weight", "aliases": ["head.weight"]}, {"name": "text.norm.weight"}, {"name": "text.norm.bias"},
                  {"name": "blocks.1.weight"}, {"name": "blocks.10.weight"}, {"name": "odd[0]"}]
    assert {p["name"] for p in parameters if names.match([pattern], p)} == set(found.split())


def test_groups_are_the_hosts():
    """One of the cases of the Go package host/settings/selection."""
    parameters = [{"name": name} for name in ("text.weight", "text.norm", "decoder.bias")]
    groups = [{"match": ["text.norm"], "lr_factor": 2}, {"match": ["text"], "lr_factor": 0.1, "weight_decay": 0}]
    assert names.resolved(groups, parameters) == [
        {"lr_factor": 0.1, "weight_decay": 0, "match": ["text.weight"]}, {"lr_factor": 2, "weight_decay": 0, "match": ["text.norm"]}]

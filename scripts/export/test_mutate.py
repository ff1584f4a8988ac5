"""Changed models end in a bundle or in a refusal."""

from . import mutate


def test_changed_models_are_refused_in_one_line():
    ends = mutate.run(seed=1, count=8)
    assert sum(ends.values()) == 8 and ends["refused"]

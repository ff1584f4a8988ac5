"""The draws of a key are those of Go's SDK, which wrote the file: go test ./stage -run TestDraws -update, in shared."""
import hashlib
import json
import pathlib

import numpy as np
import pytest

from xtts_plugin.draws import Draws

GO = json.loads((pathlib.Path(__file__).parents[2] / "stage/testdata/draws.json").read_text())
MANY = 100_000


def sha256(array):
    return hashlib.sha256(array.tobytes()).hexdigest()


@pytest.fixture(params=GO, ids=[d["key"][:8] for d in GO])
def go(request):
    return request.param


@pytest.fixture
def draws(go):
    return lambda: Draws(bytes.fromhex(go["key"]))


def test_words(go, draws):
    d = draws()
    assert [f"{d.bits64():016x}" for _ in go["uint64"]] == go["uint64"]
    assert sha256(draws()._words.take(MANY)) == go["uint64_sha256"]


def test_floats(go, draws):
    d = draws()
    assert [d.uniform() for _ in go["float64"]] == go["float64"]
    assert sha256(draws().uniform(size=MANY)) == go["float64_sha256"]


def test_normals(go, draws):
    d = draws()
    assert [d.normal() for _ in go["norm_float64"]] == go["norm_float64"]
    assert sha256(draws().normal(size=MANY)) == go["norm_float64_sha256"]


def test_ints(go, draws):
    d = draws()
    assert [d.ints(n) for n in go["int_n"]] == go["ints"]
    assert sha256(draws().ints(3 << 61, size=MANY)) == go["int_n_sha256"]
    assert draws().permutation(20) == go["perm_20"]
    assert draws().choice(range(100, 103)) == 100 + draws().ints(3)
    assert draws().ints(-5, 5) == draws().ints(10) - 5


def test_arrays_continue_the_sequence(draws):
    """Arrays of any size hold what single calls give, and what follows is the same."""
    one, other = draws(), draws()
    for n in (0, 1, 31, 32, 33, 91, 92, 500, 3000):
        assert one.uniform(-1, 1, n).tolist() == [other.uniform(-1, 1) for _ in range(n)]
        assert one.normal(3, 2, n).tolist() == [other.normal(3, 2) for _ in range(n)]
        assert one.ints(10, size=(n, 1)).tolist() == [[other.ints(10)] for _ in range(n)]
        assert one.chance(0.5) == (other.uniform() < 0.5)
    assert one.bits64() == other.bits64()


def test_distributions():
    """Of uniform, normal and ints: mean and deviation."""
    def draws():
        return Draws(bytes(16))

    for array, mean, std in ((draws().uniform(2, 4, MANY), 3, 2 / 12**0.5), (draws().normal(5, 3, MANY), 5, 3),
                             (draws().ints(6, size=MANY), 2.5, (35 / 12)**0.5),
                             (draws().generator().normal(size=MANY), 0, 1)):
        assert abs(array.mean() - mean) < 5 * std / MANY**0.5
        assert abs(array.std() / std - 1) < 0.02


def test_no_integer():
    with pytest.raises(ValueError, match=r"no integer in \[3, 3\)"):
        Draws(bytes(16)).ints(3, 3)

"""What rounding decides is taken as a graph decides it, and nothing else."""

import math
from collections.abc import Callable

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor

from . import reference, ties

# The least number above 1.
ABOVE = float(np.nextafter(np.float32(1), np.float32(2)))


def sides(run: Callable[[], object], *arrays: np.ndarray, dropped: tuple[int, int] | None = None) -> ties.Sides | None:
    decided = ties.Decided()
    with decided.noted():
        run()
    return decided.as_in(list(arrays), dropped)


def with_them(run: Callable[[], Tensor], *arrays: np.ndarray) -> Tensor:
    found = sides(run, *arrays)
    with found.used():
        run()
        # In every run.
        return run()


@pytest.mark.parametrize(("numbers", "tied"), [
    ([1, ABOVE], True), ([1, 1.001], False), ([1, 1], False), ([0, 1e-9], False)])
def test_the_largest_number(numbers, tied):
    x = torch.tensor(numbers, dtype=torch.float32)
    other = np.array(1 - int(x.argmax()))
    for run in (lambda: x.argmax(), lambda: x.max(0)):
        assert (sides(run, other) is not None) == tied
    if tied:
        assert with_them(lambda: x.argmax(), other) == 0
        value, index = with_them(lambda: x.max(0), other)
        assert (float(value), int(index)) == (1, 0)


def test_the_largest_numbers():
    x = torch.tensor([[3, 1, ABOVE, 0], [0, 1, 2, 3]])
    values, indices = with_them(lambda: x.topk(2, 1), np.array([[0, 1], [2, 3]]))
    # The second row is ordered by more than rounding.
    assert indices.tolist() == [[0, 1], [3, 2]] and values.tolist() == [[3, 1], [3, 2]]


def test_a_hidden_number_decides_nothing_for_the_others():
    x = torch.tensor([-1e9, 1, 2, -math.inf])
    assert sides(lambda: x.argmax(), np.array(1)) is None


@pytest.mark.parametrize(("z", "theirs", "tied"), [
    (complex(-1, 1e-7), -math.pi, True),
    (complex(-1, 0), -math.pi, False),
    (0, math.pi, False),
    (0, 1, False),
    (complex(-1, 1e-3), -math.pi, False),
    (complex(-1e6, 1e-3), -math.pi, True),
    (complex(1, 1), math.pi / 4 + 1e-7, True),
    (complex(1, 1), math.pi / 4 + 1e-4, False),
    (complex(1, 1), -math.pi / 4, False),
])
def test_a_phase(z, theirs, tied):
    # A large number beside it hides nothing.
    number = torch.tensor([z, 1e9], dtype=torch.complex64)
    theirs = np.array([theirs, 0], np.float32)
    for run in (number.angle, lambda: torch.atan2(number.imag, number.real), lambda: number.log().imag):
        assert (sides(run, theirs) is not None) == tied
        if tied:
            assert torch.equal(with_them(run, theirs), torch.tensor(theirs))


def test_a_phase_is_as_uncertain_as_its_number():
    random = torch.Generator().manual_seed(0)
    x, theirs = torch.tensor([3 * ABOVE]), np.array([-2.0], np.float32)
    # What is left is rounding.
    run = lambda: torch.complex(x + 1 - 4, 4 - x - 1).angle()
    decided = ties.Decided()
    with decided.noted():
        run()
    assert decided.as_in([theirs], None) is None
    with decided.held(random):
        run()
    assert decided.as_in([theirs], None) is not None


def test_phases_are_held_wholly():
    """They are as uncertain as their number is small, and the limits of all that follows with them."""
    x = torch.rand(100, generator=torch.Generator().manual_seed(0))
    run = lambda given: {"y": torch.complex(given["x"] / 3 * 3 - x, 1e-6 * given["x"]).angle()}
    assert reference.moved(run, (), {"x": x})["y"] == reference.moved(run, (), {"x": x}, results=True)["y"] == 0


def test_a_run_is_held():
    x = torch.tensor([1, ABOVE, 0])
    decided = ties.Decided()
    with decided.noted():
        x.argmax()
    with decided.held():
        assert x.flip(0).roll(-1).argmax() == 1
    assert float(decided.calls[0].noise.max()) > 0


def test_a_row_that_only_the_graph_has():
    x = torch.tensor([[1, ABOVE], [5, 6], [ABOVE, 1]])
    found = sides(lambda: x.argmax(1), np.array([0, 1, 1, 1]), dropped=(2, 4))
    [(_, where)] = found.taken.values()
    assert where.tolist() == [True, False, True]
    assert sides(lambda: x.argmax(1), np.array([0, 1, 1, 1])) is None


def test_a_graph_tells_what_it_chose(tmp_path):
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 20]>
        chooses (float[3] x, int64[1] two) => (int64[1] least) {
            least = ArgMin<axis = 0>(x)
            values, places = TopK(x, two)
        }""")
    onnx.save(model, tmp_path / "x.onnx")
    least, places = ties.chosen(tmp_path / "x.onnx", {"x": np.array([3, 1, 2], np.float32), "two": np.array([2])})
    assert least.tolist() == [1] and places.tolist() == [0, 2]

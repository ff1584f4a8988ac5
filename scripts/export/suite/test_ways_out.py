"""Each way out that a hint names is the hint of a module that is refused, whose own way out is exported (test_suite.py)."""

from .. import ways_out
from ..refusal import Refusal
from .case import cases, write

# Parts of the messages that have one.
OF_OPERATORS = "has no form", "as many elements", "draws random numbers", "embedding_renorm", "computes in"


def test_every_way_out_is_tried(tmp_path):
    hints = set()
    every = [case for group in cases().values() for case in group if case.refused]
    for case in (case for case in every if any(part in case.refused for part in OF_OPERATORS)):
        try:
            write(case(), tmp_path / "x.onnx")
        except Refusal as refusal:
            hints.add(refusal.hint)
    assert not ways_out.every() - hints

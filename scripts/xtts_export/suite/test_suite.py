"""Every module of the suite does what it declares: it is exported, with PyTorch's loss and gradients, or refused with a line and a way out."""

import pytest
import torch

from ..refusal import Refusal
from . import table
from .case import Case, cases, errors, place

ALL = [case for group in cases().values() for case in group]
EXPORTED = [case for case in ALL if case.refused is None]
REFUSED = [case for case in ALL if case.refused is not None]


@pytest.fixture(autouse=True)
def same_weights():
    torch.manual_seed(0)


@pytest.mark.parametrize("case", EXPORTED, ids=lambda case: case.__name__)
def test_exports(case: type[Case], tmp_path):
    assert errors(case(), tmp_path / "x.onnx") <= case.tolerance


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.__name__)
def test_refuses(case: type[Case], tmp_path):
    with pytest.raises(Refusal) as caught:
        errors(case(), tmp_path / "x.onnx")
    message = str(caught.value)
    assert case.refused in message and caught.value.hint and "\n" not in message + caught.value.hint
    assert case.whole or "# blamed" in (place(message) or ""), message
    assert case.way_out in EXPORTED


def test_page_is_current():
    text = table.PAGE.read_text(encoding="utf-8")
    assert text == table.page(text), "run: cd scripts && python -m xtts_export.suite.table"

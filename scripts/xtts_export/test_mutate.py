"""Changed models end in a bundle or in a refusal."""

import ast

import pytest

from . import mutate


def changed(old: str, new: str) -> str:
    source = mutate.MODEL.read_text(encoding="utf-8")
    assert old in source
    return ast.unparse(ast.parse(source.replace(old, new, 1)))


def test_changed_models_are_refused_in_one_line():
    ends = mutate.run(seed=1, count=5)
    assert sum(ends.values()) == 5 and ends.keys() <= {"exported", "refused"} and ends["refused"]


@pytest.mark.parametrize(("old", "new", "message", "hint"), [
    ("self.out(y) *", "self.outt(y) *", "has no attribute 'outt'", "must run in PyTorch"),
    ("nn.LayerNorm(width)", "nn.LayerNorm(wide)", "name 'wide' is not defined", "fails in Python, before anything is exported"),
    ("target, lengths = batch[\"mel\"]", "target, lengths = batch[\"mels\"]", "KeyError: 'mels'", "the batch of a loss has text, text_lengths, mel, mel_lengths"),
    ("text.shape[1])", "text.data[1])", "must be Number, not Tensor", "must run in PyTorch"),
    ("(0, 0, 1, 0))[:, :-1])", "(0, 0, 1, 0))[:-1, :-1])", "shape '[T_text, 2*B - 2, 4]' is invalid", "must run in PyTorch"),
    ("{\"loss\": l1,", "{\"loss\": mel,", "loss is float32[B, T_mel, 4], not a float32 scalar", "reduce loss"),
    ("{\"loss\": l1,", "{\"lost\": l1,", "loss function returned {'lost', 'loss_weight', 'spectrum'} without loss and loss_weight", "return {"),
    ("\"spectrum\": l1", "5: l1", "a metric has the name 5", "are strings"),
    ("kernel_size=3", "kernel_size=0", "mutant.py:26 (y = self.norm(y + self.conv(y.transpose(1, 2)).transpose(1, 2))): a convolution has the kernel [0]", "at least 1"),
    ("nn.Embedding(VOCABULARY,", "nn.Embedding(8,", "keys = self.table(text)): on a random batch, IndexError", "below of an Input is the size of the table"),
    ("torch.arange(text.shape[1])", "torch.arange()", "got ();", "must run in PyTorch before it can be exported"),
    ("kernel_size=3, padding=1", "kernel_size=3", "must match the size of tensor b (T_mel - 2) at non-singleton dimension 1;", "try it with two batches of other sizes"),
    ("return {\"loss\": l1", "{\"loss\": l1", "loss function returned None without loss and loss_weight", "return {"),
    ("features=FEATURES", "features=nn", "features is the Python module torch.nn", "docs/bundle.md"),
    ("\"T_text\", lengths", "\"T_words\", lengths", "buckets[0] has no size of T_words (a dimension of text)", "but B"),
])
def test_refusals_name_the_cause(old, new, message, hint):
    end = mutate.isolated(changed(old, new))
    assert end.startswith("refused: ") and message in end and hint in end.partition("; hint: ")[2], end


def test_changes_of_pytorch_stay_with_their_mutant():
    assert mutate.isolated(changed("self.out = nn", "nn.leaked = nn")).startswith("refused")
    assert not hasattr(mutate.command.torch.nn, "leaked")


def test_what_never_ends_is_killed(monkeypatch):
    monkeypatch.setattr(mutate, "SECONDS", 1)
    assert mutate.isolated("def build():\n    while True:\n        pass") == "endless: more than 1 s"


def test_a_process_that_dies_is_told_from_one_that_never_ends():
    assert mutate.isolated("import os\n\n\ndef build():\n    os._exit(3)") == "died: exit status 3"


def test_an_exit_of_python_is_a_traceback():
    end = mutate.isolated("import sys\n\n\ndef build():\n    sys.exit(0)")
    assert end.startswith("traceback: ") and "SystemExit" in end

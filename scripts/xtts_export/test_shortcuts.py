"""What the exporter says of PyTorch's short cuts in evaluation mode, and what PyTorch does there."""

import pytest
import torch
from torch import nn

from . import writer
from .suite.attention import NestedEncoder
from .suite.case import WIDTH, Case, exported


class Plain(Case):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=True), 1, enable_nested_tensor=False)


@pytest.mark.parametrize("case", [NestedEncoder, Plain])
def test_the_note_is_true(case):
    """Padded frames are 0 where the note says so, and only there."""
    module = case().eval()
    padded = torch.arange(5)[None, :] >= torch.tensor([5, 3])[:, None]
    with torch.no_grad():
        zeros = not module.encoder(torch.randn(2, 5, WIDTH), src_key_padding_mask=padded)[1, 3:].any()
    notes = writer.shortcuts(module)
    assert zeros == bool(notes) == (case is NestedEncoder)
    assert all("padded frames of encoder 0" in note and "enable_nested_tensor=False" in note for note in notes)


def test_an_export_says_it_first(tmp_path, capsys, monkeypatch):
    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    monkeypatch.setattr(writer, "dry_runs", stop)
    export = exported(NestedEncoder())
    export.eval_graph = True
    with pytest.raises(Stop):
        writer.write(export, tmp_path / "bundle")
    assert "note: after module.eval()" in capsys.readouterr().out.partition("dry run")[0]

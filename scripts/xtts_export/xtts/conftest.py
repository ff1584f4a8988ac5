"""What the tests beside coqui's classes share: a coder with codes of speech, and a small XTTS with it."""

import dataclasses
from pathlib import Path

import pytest
import torch

from .. import writer
from ..module import Export
from . import coqui, preset, small


@dataclasses.dataclass(frozen=True)
class Coder:
    """coqui's DVAE and spectrograms, and the files that the exporter reads."""

    dvae: torch.nn.Module
    spoken: torch.nn.Module
    conditioning: torch.nn.Module
    norms: torch.Tensor
    folder: Path

    def export(self, folder: Path) -> Export:
        """An XTTS of two layers, without dropout, and without the parts that speak: they have a test of their own."""
        config = small.config(folder, gpt_num_audio_tokens=1026, gpt_start_audio_token=1024, gpt_stop_audio_token=1025)
        export = small.shaken(preset.build(vocabulary=small.vocabulary(folder), config=config, dvae=self.folder / "dvae.pth", norms=self.folder / "mel_stats.pth"))
        del export.inference[2:]
        export.synthesis = None
        coqui.without_dropout(export.module)
        return export


@pytest.fixture(scope="session")
def clips(tmp_path_factory):
    """The folder of recorded speech, and a list of it."""
    return small.data(tmp_path_factory.mktemp("coqui") / "data")


@pytest.fixture(scope="session")
def coder(clips, tmp_path_factory):
    """With random weights in full size, and a codebook of vectors of speech itself, with noise: more than 50 codes are in use."""
    torch.manual_seed(2)
    norms, folder = torch.rand(80) * 3 + 1, tmp_path_factory.mktemp("coder")
    dvae, spoken, conditioning = coqui.codes(norms)
    with torch.no_grad():
        vectors = torch.cat([dvae.encoder(spoken(wave))[0] for wave in small.recordings(clips)[:8]], 1)
        chosen = vectors[:, torch.randint(vectors.shape[1], (1024,))]
        dvae.codebook.embed.copy_(chosen + 0.1 * vectors.std() * torch.randn(chosen.shape))
    torch.save(dvae.state_dict(), folder / "dvae.pth")
    torch.save(norms, folder / "mel_stats.pth")
    return Coder(dvae, spoken, conditioning, norms, folder)


@pytest.fixture(scope="session")
def made(coder, tmp_path_factory):
    """An Export, its bundle, and coqui's GPT with the same weights."""
    folder = tmp_path_factory.mktemp("coqui")
    export = coder.export(folder)
    writer.write(export, folder / "bundle")
    theirs = coqui.gpt(export.module.sizes)
    theirs.load_state_dict(export.module.gpt.state_dict(), strict=True)
    return export, folder / "bundle", theirs

"""Losses, gradients, inference graphs and files beside coqui's own classes, which are no part of the exporter's environment: scripts/test-coqui.sh runs this."""

import itertools
import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from .. import inferencegraph, session
from ..test_convert import host
from . import coqui, dvae, frozen, mels, small
from .conftest import Coder
from .model import XTTS, Sizes

pytestmark = pytest.mark.skipif(not coqui.available(), reason="coqui-tts is not installed: scripts/test-coqui.sh")

TOLERANCE = 1e-4
LENGTHS = {
    "one row": [(19, 23, 40)],
    "three rows": [(12, 31, 20), (5, 4, 33), (30, 17, 7)],
    "an empty row": [(9, 12, 50), (0, 0, 0), (21, 3, 11), (2, 40, 64)],
    # As coqui's loader makes batches.
    "equal spectrograms": [(12, 31, 25), (5, 4, 25), (30, 17, 25)],
}


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_losses_and_gradients_are_coquis(made, lengths):
    export, folder, theirs = made
    batch = small.batch(export, lengths)
    ours = small.graph(export, folder, batch)
    theirs.zero_grad()
    loss = coqui.batch_loss if len({mel for *_, mel in lengths}) == 1 else coqui.loss
    want = loss(theirs, batch)
    want.backward()
    assert ours["loss"] == pytest.approx(want.item(), rel=TOLERANCE)
    for name, p in theirs.named_parameters():
        assert (torch.from_numpy(ours[f"grad.gpt.{name}"]) - p.grad).norm() <= TOLERANCE * p.grad.norm(), name


def test_dropout_is_where_coqui_has_it(made):
    export, _, theirs = made
    ours = XTTS(export.module.sizes).gpt.gpt
    places = lambda gpt: sum(isinstance(part, torch.nn.Dropout) for part in gpt.modules())
    # Those of GPT-2: one of the embeddings, and of each block attention, its projection, and the feed-forward layers.
    assert places(theirs.gpt) == places(ours) + len(ours.h)
    assert theirs.gpt.config.attn_pdrop == theirs.gpt.config.resid_pdrop == theirs.gpt.config.embd_pdrop == ours.drop.p


def test_codes_and_spectrograms_are_coquis(coder, clips, tmp_path):
    """Of the graphs, on recorded speech, all clips at once."""
    waves = small.recordings(clips)[:6]
    parts = [frozen.codes(coder.norms, dvae.load(coder.dvae.state_dict())), frozen.conditioning(coder.norms)]
    for part in parts:
        inferencegraph.write(part, {}, tmp_path)
    lengths = torch.tensor([wave.shape[1] for wave in waves], dtype=torch.int32)
    batch = {"waveform": torch.nn.utils.rnn.pad_sequence([wave[0] for wave in waves], batch_first=True), "waveform_lengths": lengths}
    codes, mel = (session.run(session.load(tmp_path / part.file), load_file(tmp_path / part.weights_file) | batch) for part in parts)
    pairs = []
    with torch.no_grad():
        for i, wave in enumerate(waves):
            assert (mels.spoken(coder.norms)(wave, lengths[i:i + 1])[0].transpose(1, 2) - coder.spoken(wave)).abs().max() < 1e-4
            want, frames = coder.conditioning(wave)[0].T, mel["conditioning_lengths"][i]
            assert len(want) == frames and (torch.from_numpy(mel["conditioning_mel"][i, :frames]) - want).abs().max() < 1e-4
            pairs.append((codes["codes"][i, :codes["code_lengths"][i]].tolist(), coquis(coder, wave)))
    assert_equal(pairs)


def coquis(coder: Coder, wave: torch.Tensor) -> list[int]:
    """Its codes of a clip. Its encoder makes one more if the last one's samples are complete."""
    return coder.dvae.get_codebook_indices(coder.spoken(wave))[0, :-(-wave.shape[1] // frozen.STRIDE)].tolist()


def assert_equal(pairs: list[tuple[list[int], list[int]]]) -> None:
    assert all(len(got) == len(want) for got, want in pairs)
    got, want = (list(itertools.chain(*codes)) for codes in zip(*pairs, strict=True))
    assert len(set(want)) >= 50 and sum(map(int.__eq__, got, want)) >= 0.999 * len(want)


def test_the_stages_of_a_run_make_coquis_codes_and_spectrograms(made, coder, clips, tmp_path):
    """What a run keeps in its feature cache: the codes of every clip, and the spectrograms of the evaluation's references, which are whole clips.

    The second epoch encodes nothing, nor does the same run with a warm cache. The losses are those without a cache, bit for bit.
    """
    _, bundle, _ = made
    losses, reports = [], []
    for name, cache in (("plain", ()), ("cold", ("--feature-cache", tmp_path / "cache")), ("warm", ("--feature-cache", tmp_path / "cache"))):
        host("--graph", bundle, "--train-data", clips, "--batch-size", 8, "--epochs", 2, "--eval-every", 3, "--lr", 0.001,
             "--buffer-size", 2, "--num-workers", 1, *cache, "--run-dir", tmp_path / name)
        losses.append([json.loads(line).get("loss") for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()])
        reports.append(json.loads((tmp_path / name / "report.json").read_text()).get("feature_cache"))
    assert losses[0] == losses[1] == losses[2] and len(losses[0]) >= 6
    cold, warm = ({stage["name"]: stage for stage in report["stages"]} for report in reports[1:])
    clips_of = len(small.recordings(clips)), len(small.recordings(clips, "eval"))
    # The first epoch and the first evaluation encode each clip. The ring is shorter than an epoch, so that the second one is later.
    assert cold["codes"]["misses"] == cold["codes"]["stored"] == sum(clips_of) and cold["codes"]["hits"] >= clips_of[0]
    assert reports[2]["hit_ratio"] == 1 and warm["codes"]["hits"] == cold["codes"]["hits"] + sum(clips_of) and not warm["codes"]["misses"]
    assert "training_uncached" not in warm["codes"] and "drawn anew" in warm["conditioning"]["training_uncached"]

    kept = []
    for file in (tmp_path / "cache").glob("[0-9a-f][0-9a-f]/*"):
        # The size of the first output in bytes, its elements, the second output, and a checksum.
        size = int.from_bytes(file.read_bytes()[:4], "little")
        kept.append(file.read_bytes()[4:4 + size])
    waves = small.recordings(clips) + small.recordings(clips, "eval")
    with torch.no_grad():
        codes, references = [coquis(coder, wave) for wave in waves], [coder.conditioning(wave)[0].T for wave in waves]
    agree = lambda got, want: sum(map(int.__eq__, got, want))
    pairs, spectrograms = [], 0
    for content in kept:
        # A frame has 80 floats, a code is one integer: no clip of this length has as many.
        if len(content) % (4 * mels.MELS) == 0 and len(content) > 4 * max(map(len, codes)):
            got = torch.from_numpy(np.frombuffer(content, np.float32).copy()).view(-1, mels.MELS)
            spectrograms += min((got - want).abs().max() for want in references if want.shape == got.shape) < 1e-4
        else:
            got = np.frombuffer(content, np.int32).tolist()
            pairs.append((got, max((want for want in codes if len(want) == len(got)), key=lambda want: agree(got, want))))
    assert len(pairs) == len(waves) and len(kept) == len(pairs) + spectrograms and spectrograms
    assert_equal(pairs)


def test_speaker_and_waveform_are_coquis(tmp_path):
    """From a checkpoint of coqui's decoder, with weights as in training: normalized, and statistics of batches that are not 0 and 1."""
    theirs = coqui.decoder(width=32, channels=64)
    sizes = Sizes(width=32, heads=2)
    model = {f"hifigan_decoder.{name}": x for name, x in theirs.state_dict().items()} | {"mel_stats": torch.ones(80)}
    parts, left = frozen.build(model, sizes, None, None)
    *_, speaker, vocoder = parts
    assert not left and (speaker.name, vocoder.name) == ("speaker", "vocoder")
    for part in (speaker, vocoder):
        inferencegraph.write(part, {}, tmp_path)
    run = lambda part, **given: session.run(session.load(tmp_path / part.file), load_file(tmp_path / part.weights_file) | given)
    wave = torch.randn(2, 30001, generator=torch.Generator().manual_seed(1)) * torch.linspace(0, 0.5, 30001)
    with torch.no_grad():
        want = theirs.speaker_encoder(wave[:, None].clone(), l2_norm=True)
        got = torch.from_numpy(run(speaker, waveform=wave.numpy())["speaker"])
        assert (got - want).abs().max() < 1e-4 and (want[0] - want[1]).abs().max() > 1e-3
        for frames in (5, 33):
            latents = torch.randn(1, frames, 32)
            sound = theirs(latents, g=want[:1, :, None])[:, 0]
            made = torch.from_numpy(run(vocoder, latents=latents.numpy(), speaker=want[:1].numpy())["waveform"])
            assert made.shape == sound.shape and (made - sound).abs().max() < 1e-4 and sound.std() > 0.01

"""Losses, gradients, inference graphs and files beside coqui's own classes, which are no part of the exporter's environment: scripts/test-coqui.sh runs this."""

import zipfile

import librosa
import pytest
import torch
from safetensors.numpy import load_file

from .. import convert, inference, session, writer
from ..builtin import REPOSITORY
from ..test_convert import host
from . import coqui, dvae, frozen, mels, preset, small
from .model import Sizes

pytestmark = pytest.mark.skipif(not coqui.available(), reason="coqui-tts is not installed: scripts/test-coqui.sh")

TOLERANCE = 1e-4
LENGTHS = {
    "one row": [(19, 23, 40)],
    "three rows": [(12, 31, 20), (5, 4, 33), (30, 17, 7)],
    "an empty row": [(9, 12, 50), (0, 0, 0), (21, 3, 11), (2, 40, 64)],
    # As coqui's loader makes batches.
    "equal spectrograms": [(12, 31, 25), (5, 4, 25), (30, 17, 25)],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An Export, its bundle, and coqui's GPT with the same weights."""
    folder = tmp_path_factory.mktemp("coqui")
    export = small.shaken(preset.build(vocabulary=small.vocabulary(folder), config=small.config(folder), dvae=small.dvae(folder)))
    export.inference.clear()
    writer.write(export, folder / "bundle")
    theirs = coqui.gpt(export.module.sizes)
    theirs.load_state_dict(export.module.gpt.state_dict(), strict=True)
    return export, folder / "bundle", theirs


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
    ours = export.module.gpt.gpt
    places = lambda gpt: sum(isinstance(part, torch.nn.Dropout) for part in gpt.modules())
    # Those of GPT-2: one of the embeddings, and of each block attention, its projection, and the feed-forward layers.
    assert places(theirs.gpt) == places(ours) + len(ours.h)
    assert theirs.gpt.config.attn_pdrop == theirs.gpt.config.resid_pdrop == theirs.gpt.config.embd_pdrop == ours.drop.p


def test_coquis_loader_takes_a_trained_file(made, tmp_path):
    """A run of four steps, written into a file of coqui's whole model, loaded strictly: its loss is that of the trained weights here."""
    export, bundle, _ = made
    whole = coqui.whole(export.module.sizes)
    whole.gpt.load_state_dict({name: x for name, x in export.module.gpt.state_dict().items()})
    base, back, run = tmp_path / "model.pth", tmp_path / "back.pth", tmp_path / "run"
    torch.save({"model": whole.state_dict()}, base)
    data = small.data(tmp_path / "data")
    host("--graph", bundle, "--train-data", data, "--batch-size", 4, "--max-steps", 4, "--lr", 0.001, "--eval-every", 0, "--run-dir", run)
    convert.to_torch(run, back, bundle, base=base)
    again = coqui.whole(export.module.sizes)
    again.load_checkpoint(again.config, checkpoint_path=str(back), vocab_path=small.vocabulary(tmp_path), eval=False, strict=True)
    gpt = coqui.without_dropout(again.gpt).train()
    batch = small.batch(export, LENGTHS["three rows"])
    before = export.module.eval()(**batch)["loss"].item()
    export.module.load_state_dict({f"gpt.{name}": x for name, x in gpt.state_dict().items()})
    ours = small.graph(export, bundle, batch)["loss"]
    with torch.no_grad():
        assert coqui.loss(gpt, batch).item() == pytest.approx(ours, rel=TOLERANCE)
    assert abs(before - ours) > 0.01


def test_codes_and_spectrograms_are_coquis(tmp_path):
    """Of recorded speech, with a random codebook of the encoder's scale: more than 50 codes are in use."""
    torch.manual_seed(2)
    norms = torch.rand(80) * 3 + 1
    theirs, spoken, conditioning = coqui.codes(norms)
    with zipfile.ZipFile(REPOSITORY / "host/dataset/sample/sample.zip") as sample:
        clips = [sample.extract(name, tmp_path) for name in sorted(sample.namelist()) if name.endswith(".wav")][:6]
    waves = [torch.from_numpy(librosa.load(clip, sr=mels.RATE)[0])[None] for clip in clips]
    with torch.no_grad():
        vectors = torch.cat([theirs.encoder(spoken(wave))[0] for wave in waves], 1)
        # Vectors of the speech itself, with noise.
        chosen = vectors[:, torch.randint(vectors.shape[1], (1024,))]
        theirs.codebook.embed.copy_(chosen + 0.1 * vectors.std() * torch.randn(chosen.shape))
        parts = [frozen.codes(norms, dvae.load(theirs.state_dict())), frozen.conditioning(norms)]
        for part in parts:
            inference.write(part, {}, tmp_path)
        # The graphs, on all clips at once.
        lengths = torch.tensor([wave.shape[1] for wave in waves], dtype=torch.int32)
        batch = {"waveform": torch.nn.utils.rnn.pad_sequence([wave[0] for wave in waves], batch_first=True), "waveform_lengths": lengths}
        codes, mel = (session.run(session.load(tmp_path / part.file), load_file(tmp_path / part.weights_file) | batch) for part in parts)
        seen, equal, count = set(), 0, 0
        for i, wave in enumerate(waves):
            assert (mels.spoken(norms)(wave, lengths[i:i + 1])[0].transpose(1, 2) - spoken(wave)).abs().max() < 1e-4
            want, frames = conditioning(wave)[0].T, mel["conditioning_lengths"][i]
            assert len(want) == frames and (torch.from_numpy(mel["conditioning_mel"][i, :frames]) - want).abs().max() < 1e-4
            # coqui's encoder makes one more code if the last one's samples are complete.
            want = theirs.get_codebook_indices(spoken(wave))[0, :-(-wave.shape[1] // frozen.STRIDE)].tolist()
            assert codes["code_lengths"][i] == len(want)
            equal, count = equal + sum(map(int.__eq__, want, codes["codes"][i].tolist())), count + len(want)
            seen |= set(want)
    assert len(seen) >= 50 and equal >= 0.999 * count


def test_speaker_and_waveform_are_coquis(tmp_path):
    """From a checkpoint of coqui's decoder, with weights as in training: normalized, and statistics of batches that are not 0 and 1."""
    theirs = coqui.decoder(width=32, channels=64)
    sizes = Sizes(width=32, heads=2)
    model = {f"hifigan_decoder.{name}": x for name, x in theirs.state_dict().items()} | {"mel_stats": torch.ones(80)}
    parts, left = frozen.build(model, sizes, None, None)
    *_, speaker, vocoder = parts
    assert not left and (speaker.name, vocoder.name) == ("speaker", "vocoder")
    for part in (speaker, vocoder):
        inference.write(part, {}, tmp_path)
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

"""Speech beside coqui's own class, as test_coqui.py: its whole model with random weights, as a bundle and in PyTorch."""

import subprocess
import zipfile
from pathlib import Path

import librosa
import numpy as np
import onnxruntime as ort
import pytest
import torch
from safetensors.numpy import load_file

from .. import writer
from ..builtin import REPOSITORY
from . import coqui, mels, preset, settings, small, speaking, vocoder

pytestmark = pytest.mark.skipif(not coqui.available(), reason="coqui-tts is not installed: scripts/test-coqui.sh")

PENALTY = 2.0
LOUD = {"blocks": 15, "tables": 20}
WORDS = "the quick brown fox jumps over a lazy dog while seven old ships sail slowly home from far grey islands and nobody knows why they left".split()
TEXTS = [" ".join(WORDS[i:i + 3 + i % 5]) + ".!?,"[i % 4] for i in range(20)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """coqui's model, its bundle, and a clip of a voice."""
    folder = tmp_path_factory.mktemp("speaking")
    config, vocabulary = small.config(folder), small.vocabulary(folder)
    torch.manual_seed(0)
    whole, random = coqui.whole(settings.read(config, vocabulary)), torch.Generator().manual_seed(5)
    with torch.no_grad():
        # Noise everywhere, so that the norms do something.
        for p in whole.parameters():
            p.add_((0.05 if p.dim() > 1 else 0.1) * p.std().nan_to_num(1.0).clamp(min=0.1) * torch.randn(p.shape, generator=random))
        # Loud weights, so that codes follow from the text and the codes before them, and not from biases alone.
        gpt = whole.gpt
        for p in gpt.gpt.h.parameters():
            if p.dim() > 1:
                p.mul_(LOUD["blocks"])
        for table in (gpt.text_embedding, gpt.mel_embedding, gpt.text_pos_embedding.emb, gpt.mel_pos_embedding.emb, gpt.mel_head):
            table.weight.mul_(LOUD["tables"])
        whole.mel_stats.copy_(0.5 + torch.rand(mels.MELS, generator=random))
    torch.save({"model": whole.state_dict()}, folder / "model.pth")
    export = preset.build(folder / "model.pth", vocabulary, config, small.dvae(folder))
    # It takes half a minute, and speaks no word.
    export.eval_graph = False
    writer.write(export, folder / "bundle")
    theirs = coqui.whole(settings.read(config, vocabulary))
    theirs.load_checkpoint(theirs.config, checkpoint_path=str(folder / "model.pth"), vocab_path=vocabulary, eval=True, strict=True)
    with zipfile.ZipFile(REPOSITORY / "host/data/dataset/sample/sample.zip") as sample:
        clip = sample.extract(sorted(name for name in sample.namelist() if name.endswith(".wav"))[0], folder)
    return theirs, folder / "bundle", Path(clip)


def test_greedy_codes_are_coquis(made):
    """And so are the latents, which coqui computes anew from all codes."""
    theirs, bundle, clip = made
    voice, _ = _voice(theirs, clip)
    equal = count = 0
    for text in TEXTS:
        tokens = torch.tensor(theirs.tokenizer.encode(text, lang="en"), dtype=torch.int32)[None]
        with torch.no_grad():
            want = theirs.gpt.generate(cond_latents=voice, text_inputs=tokens, do_sample=False, num_beams=1, repetition_penalty=PENALTY)
            lengths = torch.tensor([tokens.shape[1]]), torch.tensor([want.shape[1] * coqui.STRIDE])
            whole = theirs.gpt(tokens, lengths[0], want, lengths[1], cond_latents=voice, return_latent=True)[0]
        codes, latents = _greedy(theirs, bundle, voice, tokens.numpy(), want.shape[1])
        same = int((want[0].numpy() == codes).cumprod().sum())
        equal, count = equal + same, count + want.shape[1]
        assert np.abs(whole[:same].numpy() - latents[:same]).max() < 1e-3
    assert equal >= 0.99 * count and count > 20 * len(TEXTS)


def _voice(theirs, clip: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """What its get_conditioning_latents makes, whose loader of files needs FFmpeg."""
    c, wave = theirs.config, torch.from_numpy(librosa.load(clip, sr=mels.RATE)[0])[None]
    wave = wave[:, :mels.RATE * c.max_ref_len]
    with torch.no_grad():
        return theirs.get_gpt_cond_latents(wave, mels.RATE, c.gpt_cond_len, c.gpt_cond_chunk_len), theirs.get_speaker_embedding(wave, mels.RATE)


def _greedy(theirs, bundle: Path, voice: torch.Tensor, tokens: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The codes that the bundle's graphs choose, as host/speak/synthesize does, and their latents."""
    weights = load_file(bundle / "params.safetensors")
    prefill, step = (ort.InferenceSession(str(bundle / f"{name}.onnx"), providers=["CPUExecutionProvider"]) for name in ("prefill", "step"))
    def run(session, given):
        names = [o.name for o in session.get_outputs()]
        return dict(zip(names, session.run(names, {i.name: given[i.name] if i.name in given else weights[i.name] for i in session.get_inputs()}), strict=True))
    start = theirs.args.gpt_start_audio_token
    seen, codes, latents = {1, start}, [], []
    results = run(prefill, {"voice": voice.numpy(), "tokens": tokens, "token_lengths": np.array([tokens.shape[1]], np.int32)})
    while len(codes) < count:
        logits = results["logits"][0].copy()
        at = list(seen)
        logits[at] = np.where(logits[at] < 0, logits[at] * PENALTY, logits[at] / PENALTY)
        codes.append(int(logits.argmax()))
        latents.append(results["latent"][0])
        seen.add(codes[-1])
        given = {"code": np.array(codes[-1:], np.int32), "position": np.array([len(codes)], np.int32)}
        results = run(step, given | {f"past_{name}": x for name, x in results.items()})
    return np.array(codes), np.stack(latents)


def test_the_command_speaks_as_coqui(made, tmp_path):
    """From the text and the clip to the waveform. Of 16 bits, and with a clip that both resample for the speaker by filters of their own."""
    theirs, bundle, clip = made
    voice, of = _voice(theirs, clip)
    for text in TEXTS[2:4]:
        want = theirs.inference(text, "en", voice, of, do_sample=False, repetition_penalty=PENALTY)["wav"]
        command = [REPOSITORY / "bin/xtts-host", "synthesize", "--graph", bundle, "--text", text, "--language", "en", "--speaker", clip, "--device", "cpu",
                   "--temperature", "0", "--repetition-penalty", str(PENALTY), "--out", tmp_path / "out.wav"]
        subprocess.run(command, check=True)
        got, rate = librosa.load(tmp_path / "out.wav", sr=None)
        assert rate == vocoder.RATE and len(got) == len(want)
        assert np.abs(got - want).max() < 1e-3 < 0.02 < np.abs(want).max()


def test_numbers_are_coquis(made):
    theirs, _, _ = made
    assert {name: theirs.config[name] for name in speaking.KEYS} == {name: key.default for name, key in speaking.KEYS.items()}
    assert speaking.numbers(settings.Sizes(audio_positions=theirs.gpt.mel_pos_embedding.emb.num_embeddings), None)["longest"] == theirs.gpt.max_gen_mel_tokens

"""The graphs that speak beside the module as it is trained: the same parameters, with a cache and without."""

import numpy as np
import onnxruntime as ort
import pytest
import torch

from .. import inferencegraph
from . import decode, preset, small, vocoder
from .conditioning import LATENTS
from .model import between, inside

# Rows of different lengths in one batch.
TOKENS, FRAMES, CODES = [9, 4, 6], [30, 12, 21], 11
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A small model, and a function that runs one of its graphs."""
    folder = tmp_path_factory.mktemp("decode")
    model = small.shaken(preset.build(vocabulary=small.vocabulary(folder), config=small.config(folder), dvae=small.dvae(folder))).module.eval()
    parameters = dict(model.named_parameters())
    sessions = {}
    for entry in decode.entries(model):
        document = inferencegraph.write(entry, parameters, folder)
        assert "weights" not in document, "a parameter was copied"
        sessions[entry.name] = entry, ort.InferenceSession(str(folder / entry.file), providers=["CPUExecutionProvider"])

    def run(name: str, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        entry, session = sessions[name]
        feed = {i.name: given.get(i.name, parameters[i.name].detach().numpy() if i.name in parameters else None) for i in session.get_inputs()}
        outputs = [o.name for o in entry.outputs]
        return dict(zip(outputs, session.run(outputs, feed), strict=True))

    return model, run


def test_steps_are_the_whole_sequence(made):
    """Latents and logits of every code, and of every row alone, are those of one run over all codes."""
    model, run = made
    s, random = model.sizes, np.random.default_rng(1)
    rows = len(TOKENS)
    mel = random.standard_normal((rows, max(FRAMES), 80)).astype(np.float32)
    text = random.integers(5, s.text_tokens, (rows, max(TOKENS))).astype(np.int32)
    codes = random.integers(0, s.audio_tokens - 2, (rows, CODES)).astype(np.int32)
    counts = lambda lengths: np.array(lengths, np.int32)
    voice = run("conditioning", {"conditioning_mel": mel, "conditioning_lengths": counts(FRAMES)})["voice"]
    for row, n in enumerate(TOKENS):
        text[row, n:] = s.stop_text
    results = run("prefill", {"voice": voice, "tokens": text, "token_lengths": counts(TOKENS)})
    alone = [run("prefill", {"voice": voice[i:i + 1], "tokens": text[i:i + 1, :n], "token_lengths": counts([n])}) for i, n in enumerate(TOKENS)]
    latents, logits = [results["latent"]], [results["logits"]]
    past = lambda results: {f"past_{name}": x for name, x in results.items()}
    for i in range(CODES):
        position = counts([i + 1] * rows)
        results = run("step", {"code": codes[:, i], "position": position, **past(results)})
        alone = [run("step", {"code": codes[j:j + 1, i], "position": position[:1], **past(alone[j])}) for j in range(rows)]
        for j, other in enumerate(alone):
            np.testing.assert_allclose(other["latent"][0], results["latent"][j], atol=TOLERANCE)
        latents.append(results["latent"])
        logits.append(results["logits"])
    with torch.no_grad():
        lengths = torch.tensor(TOKENS)
        spoken = between(torch.from_numpy(text), s.start_text, s.stop_text, 1)
        heard = between(torch.from_numpy(codes), s.start_audio, s.stop_audio, 1)[:, :-1]
        places = torch.cat([torch.ones(rows, LATENTS), inside(lengths + decode.TEXT_MORE, spoken.shape[1]), torch.ones(rows, CODES + 1)], 1)
        given = torch.from_numpy(mel), inside(torch.tensor(FRAMES), max(FRAMES))
        want, _ = model.gpt.hidden(model.gpt.voice(*given), spoken, heard, places)
        want = want[:, -CODES - 1:]
        np.testing.assert_allclose(np.stack(latents, 1), want, atol=TOLERANCE)
        np.testing.assert_allclose(np.stack(logits, 1), model.gpt.mel_head(want), atol=TOLERANCE)


def test_samples_depend_on_the_latents_near_them():
    """A part of the latents, and all of them: what is as far from its ends as windows() says is equal, and at the same place."""
    torch.manual_seed(3)
    decoder, w = vocoder.Vocoder(8).eval(), vocoder.windows()
    latents, voice, reach = torch.randn(1, w["latents"] + 30, 8), torch.randn(1, vocoder.SPEAKER), w["context"]
    at = lambda latent: latent * w["samples"] // w["latents"]
    with torch.no_grad():
        whole, first, last = decoder(latents, voice)[0], decoder(latents[:, :20], voice)[0], decoder(latents[:, w["latents"]:], voice)[0]
    end, start = at(20 - reach), at(reach)
    assert (whole[:end] - first[:end]).abs().max() < TOLERANCE < (whole[:at(19)] - first[:at(19)]).abs().max()
    assert (whole[w["samples"] + start:] - last[start:]).abs().max() < TOLERANCE < (whole[w["samples"]:] - last).abs().max()

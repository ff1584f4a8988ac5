"""The graphs that speak beside MyXTTS as it is trained: the same parameters, with a cache and without."""

import numpy as np
import onnxruntime as ort
import pytest
import torch

from . import inferencegraph, large, model, speaking

# Rows of different lengths in one batch.
TOKENS, HEARD, FRAMES = [9, 4, 6], [30, 12, 21], 14
TOLERANCE = 1e-5
VOCAB, MELS, POSITIONS = 40, 20, 64
SMALL = model.Sizes(VOCAB, n_mels=MELS, width=32, heads=2, feed_forward=48, text_layers=2, prosody=True)
LARGE = large.Sizes((64, 1), (128, 2), (64, 2), vocab=VOCAB, n_mels=MELS)
LEARNED = large.Sizes((64, 1), (64, 1), (64, 2), vocab=VOCAB, n_mels=MELS, positions=POSITIONS, prosody=False)


@pytest.fixture(scope="module", params=["nano", "large", "learned"])
def made(request, tmp_path_factory):
    """A model, and a function that runs one of its graphs."""
    folder = tmp_path_factory.mktemp("speaking")
    torch.manual_seed(3)
    module = model.MyXTTS(SMALL) if request.param == "nano" else large.MyXTTS(LARGE if request.param == "large" else LEARNED)
    parameters, sessions = dict(module.named_parameters()), {}
    for entry in speaking.entries(module, MELS, VOCAB, POSITIONS):
        assert "weights" not in inferencegraph.write(entry, parameters, folder), "a parameter was copied"
        sessions[entry.name] = entry, ort.InferenceSession(str(folder / entry.file), providers=["CPUExecutionProvider"])

    def run(name: str, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        entry, session = sessions[name]
        feed = {i.name: given[i.name] if i.name in given else parameters[i.name].detach().numpy() for i in session.get_inputs()}
        names = [o.name for o in entry.outputs]
        results = dict(zip(names, session.run(names, feed), strict=True))
        # As the host keeps them: fed outputs under the names of their inputs, and what the next run does not change.
        return {**given, **results, **{to: results[name] for name, to in entry.feeds.items()}}

    return module.eval(), run


def begin(run, text: np.ndarray, tokens: list[int], voice: np.ndarray) -> dict[str, np.ndarray]:
    results = run("prefill", {"voice": voice, "tokens": text, "token_lengths": np.array(tokens, np.int32)})
    return results | {f"past_{name}": x for name, x in results.items() if name.split("_")[0] in ("keys", "values")}


def test_steps_are_the_forward_of_teacher_forcing(made):
    """Frames and logits of every step, and of every row alone, are those of forward, given the same frames."""
    module, run = made
    random, rows = np.random.default_rng(1), len(TOKENS)
    text = random.integers(1, VOCAB, (rows, max(TOKENS))).astype(np.int32)
    heard, given = (random.standard_normal((rows, n, MELS)).astype(np.float32) for n in (max(HEARD), FRAMES))
    counts = lambda lengths: np.array(lengths, np.int32)
    if isinstance(module, large.MyXTTS):
        heard, lengths = given, [FRAMES] * rows
        more = (torch.tensor(lengths),)
    else:
        lengths = HEARD
        more = (torch.from_numpy(heard), torch.tensor(HEARD))
    with torch.no_grad():
        want, logits, *_ = module(torch.from_numpy(text), torch.tensor(TOKENS), torch.from_numpy(given), *more)
    voice = run("conditioning", {"conditioning_mel": heard, "conditioning_lengths": counts(lengths)})["voice"]
    results = begin(run, text, TOKENS, voice)
    alone = [begin(run, text[i:i + 1, :n], [n], voice[i:i + 1]) for i, n in enumerate(TOKENS)]
    for t in range(FRAMES):
        np.testing.assert_allclose(results["frames"][:, 0], want[:, t], atol=TOLERANCE)
        np.testing.assert_allclose(results["stop"], logits[:, t], atol=TOLERANCE)
        for row, other in enumerate(alone):
            np.testing.assert_allclose(other["frames"][0], results["frames"][row], atol=TOLERANCE)
        if t + 1 < FRAMES:
            forced = lambda kept, x: kept | {"previous": x[:, t:t + 1], "position": counts([t + 1] * len(x))}
            results = run("step", forced(results, given))
            alone = [run("step", forced(other, given[i:i + 1])) for i, other in enumerate(alone)]
    assert results["past_keys_0"].shape[2] == FRAMES


def test_the_model_is_left_as_it_was():
    module = model.MyXTTS(SMALL).train()
    speaking.entries(module, MELS, VOCAB, POSITIONS)
    assert module.training and all(p.grad_fn is None and p.requires_grad for p in module.parameters())

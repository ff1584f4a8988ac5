"""Adapters of XTTS v2: what a run trains and keeps, and the merged model and the library PEFT beside it, as test_coqui.py."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import librosa
import numpy as np
import onnx
import pytest
import torch
from safetensors.torch import load_file

from .. import checkpoint, convert, lora, session, writer
from ..builtin import REPOSITORY
from ..test_convert import host
from . import coqui, preset, settings, small

pytestmark = pytest.mark.skipif(not coqui.available(), reason="coqui-tts is not installed: scripts/test-coqui.sh")

TOLERANCE = 1e-5
RANK = 4
# Weights that are [in, out], a convolution, linear layers and an embedding.
SETTINGS = lora.Settings(RANK, 8.0, ("*.c_attn", "*.c_proj", "gpt.conditioning_encoder.attn.0.qkv", "*.to_q", "gpt.text_embedding", "gpt.mel_head"))
ROWS = [(12, 31, 25), (5, 4, 25), (30, 17, 25)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """coqui's files, the bundle with adapters, and a run of six steps."""
    folder = tmp_path_factory.mktemp("lora")
    config, vocabulary = small.config(folder), small.vocabulary(folder)
    torch.manual_seed(0)
    whole = coqui.whole(settings.read(config, vocabulary))
    torch.save({"model": whole.state_dict()}, folder / "model.pth")
    export = preset.build(folder / "model.pth", vocabulary, config, small.dvae(folder))
    coqui.without_dropout(export.module)
    export = lora.adapt(export, SETTINGS)
    export.eval_graph = False
    writer.write(export, folder / "bundle")
    host("--graph", folder / "bundle", "--train-data", small.data(folder / "data"), "--batch-size", 4, "--max-steps", 6, "--checkpoint-every", 3, "--lr", 0.01,
         "--eval-every", 0, "--run-dir", folder / "run")
    convert.to_torch(folder / "run", folder / "merged.pth", base=folder / "model.pth", merge=True, peft=folder / "peft")
    return export, folder


def loaded(folder, file: str) -> torch.nn.Module:
    """coqui's model with the weights of a file, as its own loader reads it."""
    model = coqui.whole(settings.read(folder / "config.json", folder / "vocab.json"))
    model.load_checkpoint(model.config, checkpoint_path=str(folder / file), vocab_path=str(folder / "vocab.json"), eval=False, strict=True)
    coqui.without_dropout(model.gpt).train()
    return model


def test_only_adapters_are_trained_and_kept(made):
    export, folder = made
    names = {adapter[key]: export.module.get_parameter(adapter[key]).numel() for adapter in export.adapters for key in ("a", "b")}
    document = json.loads((folder / "bundle/bundle.json").read_text())
    assert {p["name"] for p in document["parameters"] if not p.get("frozen")} == names.keys()
    outputs = {o.name for o in onnx.load(folder / "bundle/training_model.onnx").graph.output}
    assert {name.removeprefix("grad.") for name in outputs if name.startswith("grad.")} == names.keys()
    steps = sorted((folder / "run/checkpoints").glob("step-*"))
    assert len(steps) == 2
    for step in steps:
        kept, moments = load_file(step / checkpoint.PARAMS), load_file(step / checkpoint.MOMENTS)
        assert kept.keys() == names.keys() and all(x.numel() == names[name] for name, x in kept.items())
        assert moments.keys() == {f"{kind}.{name}" for kind in ("exp_avg", "exp_avg_sq") for name in names}
        # Three numbers of four bytes for each number that is trained, and the names.
        files = [step / checkpoint.PARAMS, step / checkpoint.MOMENTS]
        assert 12 * sum(names.values()) < sum(file.stat().st_size for file in files) < 12 * sum(names.values()) + 200 * 3 * len(names)
    # What is frozen is there once, for both checkpoints, as it was.
    [frozen] = (folder / "run/checkpoints").glob("frozen-*.safetensors")
    before, after = load_file(folder / "bundle/params.safetensors"), load_file(frozen)
    assert after.keys() == before.keys() - names.keys() and all(torch.equal(x, before[name]) for name, x in after.items())
    assert sum(names.values()) < 0.2 * sum(x.numel() for x in after.values())


def test_the_merged_model_computes_what_the_adapters_do(made):
    """In coqui's class: the loss of the graph with adapters is that of the merged weights, and of PEFT's adapters of the weights before."""
    peft = pytest.importorskip("peft")
    export, folder = made
    trained = load_file(sorted((folder / "run/checkpoints").glob("step-*"))[-1] / checkpoint.PARAMS)
    batch = small.batch(export, ROWS)
    weights = load_file(folder / "bundle/params.safetensors") | trained
    feed = {name: x.numpy() for name, x in weights.items()} | session.batch_feed(export.inputs, [batch[i.name] for i in export.inputs], -1)
    ours = session.run(session.load(folder / "bundle/training_model.onnx"), feed)["loss"]
    base, merged = loaded(folder, "model.pth"), loaded(folder, "merged.pth")
    with torch.no_grad():
        before, want = coqui.batch_loss(base.gpt, batch).item(), coqui.batch_loss(merged.gpt, batch).item()
        logits = _logits(merged.gpt, batch)
        adapted = peft.PeftModel.from_pretrained(base, folder / "peft")
        got = _logits(adapted.base_model.model.gpt, batch)
    layers = {type(part).__module__ + "." + type(part).__name__ for part in adapted.modules() if isinstance(part, peft.tuners.lora.LoraLayer)}
    assert layers == {f"peft.tuners.lora.layer.{name}" for name in ("Linear", "Conv1d", "Embedding")}
    assert abs(before - want) > 0.01
    assert ours == pytest.approx(want, rel=TOLERANCE)
    assert (got - logits).norm() <= TOLERANCE * logits.norm()


def _logits(gpt: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    return gpt(batch["text_sequences"].long(), batch["text_lengths"].long(), batch["audio_codes"].long(), batch["code_lengths"].long() * coqui.STRIDE,
               cond_mels=batch["conditioning_mel"].transpose(1, 2))[2]


def test_every_adapter_of_the_files_is_taken(made):
    peft = pytest.importorskip("peft")
    export, folder = made
    adapted = peft.PeftModel.from_pretrained(loaded(folder, "model.pth"), folder / "peft")
    theirs, files = peft.get_peft_model_state_dict(adapted), load_file(folder / "peft/adapter_model.safetensors")
    assert theirs.keys() == files.keys() and len(files) == 2 * len(export.adapters)
    assert all(torch.equal(x, theirs[name]) for name, x in files.items())


def test_a_run_with_adapters_speaks_as_the_merged_model(made, tmp_path):
    """The host merges them for the graphs that speak."""
    export, folder = made
    clip = next((folder / "data").rglob("*.wav"))
    def speak(*weights) -> np.ndarray:
        command = [REPOSITORY / "bin/xtts-host", "synthesize", *weights, "--text", "the lazy dog", "--language", "en", "--speaker", clip, "--device", "cpu",
                   "--temperature", "0", "--out", tmp_path / "out.wav"]
        subprocess.run(command, check=True, cwd=REPOSITORY)
        return librosa.load(tmp_path / "out.wav", sr=None)[0]
    adapted, plain = speak("--run", folder / "run"), speak("--graph", folder / "bundle")
    merged = speak("--graph", _merged(export, folder, tmp_path / "bundle"))
    assert len(adapted) == len(merged) and np.abs(adapted - merged).max() < 1e-3
    assert len(plain) != len(adapted) or np.abs(plain - adapted).max() > 0.01


def _merged(export, folder: Path, out: Path) -> Path:
    """The bundle with the merged weights of the run as its own, and adapters that add nothing."""
    shutil.copytree(folder / "bundle", out)
    weights, merged = load_file(out / "params.safetensors"), torch.load(folder / "merged.pth", weights_only=True)["model"]
    checkpoint.write_tensors(out / "params.safetensors", {name: torch.zeros_like(x) if ".lora_" in name else merged[name] for name, x in weights.items()})
    document = json.loads((out / "bundle.json").read_text())
    document["files"]["params.safetensors"] = hashlib.sha256((out / "params.safetensors").read_bytes()).hexdigest()
    (out / "bundle.json").write_text(json.dumps(document))
    return out

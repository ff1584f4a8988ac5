"""XTTS v2 as a bundle, in a run, and as a .pth again. bin/xtts-host must be built. test_coqui.py compares it with coqui's own classes."""

import json
import sys
import types
from unittest import mock

import pytest
import torch
from safetensors.torch import load_file

from .. import checkpoint, convert
from ..builtin import REPOSITORY
from ..checkpoint import Refused
from ..command import main
from ..refusal import Refusal
from ..test_convert import host
from . import preset, settings, small, speaking, weights
from .model import Sizes


class Settings:
    """As coqui's checkpoints have one: an object of a class that the reader does not have."""

    __module__ = "another_program"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A checkpoint of coqui's trainer, its vocab.json and config.json, and a dvae.pth."""
    folder = tmp_path_factory.mktemp("coqui")
    config = small.config(folder)
    model = {f"xtts.{name}": x for name, x in small.shaken(preset.build(config=config)).module.state_dict().items()}
    # Prepared for inference, the GPT has its code table under another name, too.
    model |= {"xtts.gpt.gpt.wte.weight": model["xtts.gpt.mel_embedding.weight"], "xtts.hifigan_decoder.bias": torch.ones(3), "dvae.codebook": torch.ones(2)}
    model["xtts.mel_stats"] = torch.linspace(0.5, 3, 80)
    torch.save({"model": model, "step": 5}, folder / "model.pth")
    return folder / "model.pth", small.vocabulary(folder), config, small.dvae(folder)


@pytest.fixture(scope="module")
def bundle(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("xtts") / "bundle"
    model, vocabulary, config, dvae = files
    assert main(["xtts-v2", "--checkpoint", str(model), "--vocab", str(vocabulary), "--config", str(config), "--dvae", str(dvae), "--precision", "f32,bf16", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return small.data(tmp_path_factory.mktemp("xtts") / "data")


def test_the_bundle_has_the_weights_of_the_checkpoint(files, bundle):
    model = torch.load(files[0], weights_only=True)["model"]
    kept = load_file(bundle / "params.safetensors")
    assert all(torch.equal(x, model["xtts." + name]) for name, x in kept.items())
    assert model.keys() - {"xtts." + name for name in kept} == {"xtts.gpt.gpt.wte.weight", "xtts.hifigan_decoder.bias", "xtts.mel_stats", "dvae.codebook"}
    document = json.loads((bundle / "bundle.json").read_text())
    assert document["scalars"] == [{"name": "text_count", "origin": "window", "lengths": "text_lengths", "per_row": 1},
                                   {"name": "code_count", "origin": "window", "lengths": "code_lengths", "per_row": 4}]
    assert {i["name"]: i.get("pad") for i in document["inputs"] if "lengths" in i} == {"text_sequences": 0, "audio_codes": small.CODES + 1, "conditioning_mel": 0}
    assert not any(p.get("frozen") for p in document["parameters"])
    assert document["tokenizer"]["prefix"] == "[{language}]"
    # coqui decays no embedding.
    [group] = document["optimizer"]["groups"]
    assert group == {"match": ["gpt.*_embedding"], "weight_decay": 0}


def test_a_run_goes_back_into_the_file_it_came_from(files, bundle, data, tmp_path):
    """Trained in parts as in one: the same losses and weights. And the .pth has them in place of its own."""
    one, parts, back = tmp_path / "one", tmp_path / "parts", tmp_path / "back.pth"
    common = ("--graph", bundle, "--train-data", data, "--max-steps", 4, "--lr", 0.001, "--seed", 3, "--eval-every", 0, "--buckets", "bundle")
    host(*common, "--batch-size", 18, "--run-dir", one)
    host(*common, "--batch-size", 5, "--accumulate", 4, "--run-dir", parts)
    losses = [[json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()] for run in (one, parts)]
    # Dropout is drawn by the place in the batch: only the first loss of equal weights is compared, within what it changes.
    assert losses[1][0]["loss"] == pytest.approx(losses[0][0]["loss"], rel=0.02) and losses[0][-1]["loss"] < losses[0][0]["loss"]
    assert losses[0][0]["loss"] == pytest.approx(0.01 * losses[0][0]["text_loss"] + losses[0][0]["code_loss"], rel=1e-5)

    main(["to-torch", str(one), "--bundle", str(bundle), "--base", str(files[0]), "--out", str(back)])
    before, after = (torch.load(file, weights_only=True)["model"] for file in (files[0], back))
    trained = load_file(one / "checkpoints/step-000004" / checkpoint.PARAMS)
    assert after.keys() == before.keys() and all(torch.equal(after["xtts." + name], x) for name, x in trained.items())
    assert not torch.equal(after["xtts.gpt.mel_embedding.weight"], before["xtts.gpt.mel_embedding.weight"])
    assert torch.equal(after["xtts.gpt.gpt.wte.weight"], after["xtts.gpt.mel_embedding.weight"])
    assert torch.equal(after["dvae.codebook"], before["dvae.codebook"])

    other = tmp_path / "other.pth"
    torch.save({name: x for name, x in before.items() if "text_head" not in name} | {"xtts.gpt.mel_head.bias": torch.ones(2, 2)}, other)
    with pytest.raises(Refused, match=r"(?s)missing     xtts.gpt.text_head.weight.*shape       xtts.gpt.mel_head.bias is \[2, 2\], not \[130\]"):
        convert.to_torch(one, tmp_path / "no.pth", bundle, base=other)
    with pytest.raises(Refused, match="cannot be read"):
        convert.to_torch(one, tmp_path / "no.pth", bundle, base=bundle / "bundle.json")


def test_settings_in_the_file_are_not_needed(files, tmp_path):
    """Released checkpoints hold an object of a class of coqui's."""
    model = torch.load(files[0], weights_only=True)["model"]
    program, own = types.ModuleType("another_program"), Settings()
    program.Settings, own.audio = Settings, {"sample_rate": 22050}
    with mock.patch.dict(sys.modules, another_program=program):
        torch.save({"config": own, "model": model}, tmp_path / "released.pth")
    read = weights.read(tmp_path / "released.pth")
    assert torch.equal(read["gpt.text_head.weight"], model["xtts.gpt.text_head.weight"])


def test_a_longer_vocabulary_gets_rows(files, tmp_path):
    model, _, config, dvae = files
    grown = preset.build(model, small.vocabulary(tmp_path, 530), config, dvae).module.state_dict()
    old = torch.load(model, weights_only=True)["model"]
    for name in ("gpt.text_embedding.weight", "gpt.text_head.weight", "gpt.text_head.bias"):
        assert len(grown[name]) == 530 and torch.equal(grown[name][:520], old["xtts." + name])
    new = grown["gpt.text_embedding.weight"][520:]
    assert 0.5 < new.std() / old["xtts.gpt.text_embedding.weight"].std() < 2


def test_the_sizes_of_the_released_model():
    assert settings.read(None, None) == Sizes()
    with torch.device("meta"):
        from .model import XTTS
        assert sum(p.numel() for p in XTTS(Sizes()).parameters()) == 441_018_563


@pytest.mark.parametrize(("arguments", "vocabulary", "message"), [
    ({"gpt_layers": "30"}, None, "gpt_layers is '30', not a number from 0"),
    ({"gpt_use_perceiver_resampler": False}, None, "as in XTTS v1"),
    ({"gpt_n_heads": 3}, None, "is 64, with 3 heads"),
    ({"gpt_stop_audio_token": 7}, None, "not the last two of 130"),
    ({"gpt_start_text_token": 600}, None, "the start text token is 600, of 520 tokens"),
    ({}, {"model": {"vocab": {"[STOP]": 0}}}, r"vocab.json has no \[START\]"),
    ({}, {"model": []}, "vocab.json is no tokenizer"),
    ({"gpt_layers": 3}, small.tokenizer(), "gpt.gpt.h.2.ln_1.weight is missing"),
])
def test_refusals(files, tmp_path, arguments, vocabulary, message):
    model, own, _, dvae = files
    config = small.config(tmp_path, **arguments)
    file = tmp_path / "vocab.json" if vocabulary else own
    if vocabulary:
        file.write_text(json.dumps(vocabulary), encoding="utf-8")
    with pytest.raises(Refusal, match=message):
        # Without the vocabulary, the configuration has the tokens.
        preset.build(*((None, None) if "token" in str(arguments) else (model, file)), config, dvae)


@pytest.mark.parametrize(("changed", "message"), [
    ({"temperature": -1}, "config.json: temperature is -1, not a number from 0 to 100"),
    ({"temperature": float("nan")}, "temperature is nan, not a number"),
    ({"top_k": 2.5}, "top_k is 2.5, not a whole number from 0 to"),
    ({"top_k": True}, "top_k is True, not a whole number"),
    ({"top_p": 1.5}, "top_p is 1.5, not a number above 0 to 1"),
    ({"top_p": None}, "top_p is None, not"),
    ({"repetition_penalty": 0}, "repetition_penalty is 0, not a number above 0"),
    ({"gpt_cond_chunk_len": 0.1}, "gpt_cond_chunk_len is 0.1, not a number from 0.33 to 600"),
    ({"max_ref_len": "10"}, "max_ref_len is '10', not"),
])
def test_settings_of_speaking_are_refused_first(tmp_path, changed, message):
    file = small.config(tmp_path)
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))
    with mock.patch.object(preset, "XTTS", side_effect=AssertionError("later")), pytest.raises(Refusal, match=message):
        preset.build(config=file)


def test_settings_of_speaking(tmp_path):
    file = small.config(tmp_path)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"temperature": 0, "top_k": 0.0, "gpt_cond_len": 6}))
    told = speaking.numbers(settings.read(file, None), file)
    assert told["codes"]["sampling"] == {"temperature": 0, "top_k": 0, "top_p": 0.85, "repetition_penalty": 2.0}
    assert told["reference"] == {"speaker": 10, "voice": 6, "chunk": 4, "least": 0.33}
    schema = json.loads((REPOSITORY / "shared/manifest/bundle.schema.json").read_text())
    entries = schema["properties"]["synthesis"]["properties"]
    for key in speaking.KEYS.values():
        allowed = {**entries, **entries["codes"]["properties"]}[key.place[0]]["properties"][key.place[1]]
        allowed = schema["$defs"]["seconds"] if "$ref" in allowed else allowed
        assert key.most == allowed["maximum"]
        assert key.least >= allowed.get("minimum", allowed.get("exclusiveMinimum"))
        assert key.above or key.least > allowed.get("exclusiveMinimum", -1)


def test_files_that_are_none(files, tmp_path):
    broken = tmp_path / "broken"
    broken.write_bytes(b"{")
    with pytest.raises(Refusal, match="without --vocab"):
        preset.build(files[0])
    with pytest.raises(Refusal, match="without --dvae"):
        preset.build(*files[:3])
    with pytest.raises(Refusal, match="broken cannot be read"):
        preset.build(broken, *files[1:])
    with pytest.raises(Refusal, match="broken cannot be read"):
        preset.build(*files[:3], broken)
    with pytest.raises(Refusal, match=r"broken (cannot be read|holds no)"):
        preset.build(*files, broken)
    with pytest.raises(Refusal, match=r"dvae.pth has no norms of 80 bands"):
        preset.build(*files, files[3])
    with pytest.raises(Refusal, match=r"model.pth is no DVAE of XTTS"):
        preset.build(*files[:3], files[0])
    with pytest.raises(Refusal, match=r"dvae.pth makes 64 codes, and the GPT has 128"):
        preset.build(*files[:3], small.dvae(tmp_path, 64))
    torch.save({name: x for name, x in torch.load(files[0], weights_only=True)["model"].items() if "mel_stats" not in name}, tmp_path / "plain.pth")
    with pytest.raises(Refusal, match="the checkpoint has no mel_stats"):
        preset.build(tmp_path / "plain.pth", *files[1:])
    with pytest.raises(Refusal, match="broken cannot be read"):
        preset.build(config=broken)
    torch.save([1], tmp_path / "list.pth")
    with pytest.raises(Refusal, match="holds no state_dict"):
        weights.read(tmp_path / "list.pth")

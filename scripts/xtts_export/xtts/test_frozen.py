"""Frozen parts of a checkpoint: exactly their tensors are taken, and what does not fit is named."""

import pytest
import torch

from .. import foreign
from ..refusal import Refusal
from . import dvae, frozen, speaker, vocoder
from .model import Sizes

WIDTH, SPEAKER = 16, 8


def parts() -> dict[str, tuple]:
    """Small ones with their loaders."""
    torch.manual_seed(0)
    return {
        "vocoder": (vocoder.load, vocoder.Vocoder(WIDTH, 32, SPEAKER).state_dict()),
        "speaker": (speaker.load, {name: x for name, x in speaker.SpeakerEncoder((8, 8, 8, 8), SPEAKER).state_dict().items() if not name.startswith(("power.", "bank"))}),
        "dvae": (dvae.load, dvae.Encoder(8, 4, 4).state_dict() | {"decoder.0.weight": torch.ones(2)}),
    }


@pytest.mark.parametrize("part", parts())
def test_its_own_tensors_are_taken(part):
    load, weights = parts()[part]
    made = load(weights | ({"torch_spec.0.filter": torch.ones(2)} if part == "speaker" else {})).state_dict()
    assert all(torch.equal(made[name], x) for name, x in weights.items() if not name.startswith("decoder.") and not name.endswith("num_batches_tracked"))


def test_norms_and_directions_are_multiplied_out():
    load, weights = parts()["vocoder"]
    weight = weights.pop("conv_post.weight")
    normed = weights | {"conv_post.parametrizations.weight.original0": weight.norm(dim=(1, 2), keepdim=True), "conv_post.parametrizations.weight.original1": 3 * weight}
    assert torch.allclose(load(normed).conv_post.weight, weight)
    with pytest.raises(foreign.Unfit, match="conv_post.parametrizations.weight.original0 is missing"):
        load({name: x for name, x in normed.items() if not name.endswith("original0")})
    with pytest.raises(foreign.Unfit, match=r"original0 is \[2, 1, 1\], for a direction of"):
        load(normed | {"conv_post.parametrizations.weight.original0": torch.ones(2, 1, 1)})


@pytest.mark.parametrize(("part", "name", "has", "reason"), [
    ("vocoder", "ups.0.bias", None, "ups.0.bias is missing"),
    ("vocoder", "conv_pre.weight", None, "conv_pre.weight is missing"),
    ("vocoder", "conv_pre.weight", [4], r"conv_pre.weight is \[4\], not of 3 axes"),
    ("vocoder", "conv_pre.weight", [], r"conv_pre.weight is \[\], not of 3 axes"),
    ("vocoder", "conv_pre.weight", [8, 16, 7], "conv_pre.weight has 8 channels, which 4 layers cannot halve"),
    ("vocoder", "cond_layer.weight", [32], r"cond_layer.weight is \[32\], not of 3 axes"),
    ("vocoder", "ups.1.bias", [3], r"ups.1.bias is \[3\], not \[8\]"),
    ("vocoder", "ups.9.bias", [3], "ups.9.bias is unknown"),
    ("speaker", "attention.9.weight", [3], "attention.9.weight is unknown"),
    ("speaker", "layer2.0.conv1.weight", None, "layer2.0.conv1.weight is missing"),
    ("speaker", "layer2.0.conv1.weight", [8], r"layer2.0.conv1.weight is \[8\], not of 4 axes"),
    ("speaker", "layer2.0.conv1.weight", [4, 8, 3, 3], "layer2.0.conv1.weight has fewer than 8 channels"),
    ("speaker", "fc.weight", [], r"fc.weight is \[\], not of 2 axes"),
    ("speaker", "bn1.bias", None, "bn1.bias is missing"),
    ("dvae", "codebook.embed", [4], r"codebook.embed is \[4\], not of 2 axes"),
    ("dvae", "encoder.0.0.weight", [0, 80, 3], r"encoder.0.0.weight is \[0, 80, 3\], not of 3 axes"),
    ("dvae", "encoder.0.0.bias", None, "encoder.0.0.bias is missing"),
])
def test_what_does_not_fit_is_named(part, name, has, reason):
    load, weights = parts()[part]
    weights = {key: x for key, x in weights.items() if key != name} | ({} if has is None else {name: torch.ones(has)})
    with pytest.raises(foreign.Unfit, match=reason):
        load(weights)


def test_a_checkpoint_of_another_decoder_is_refused():
    decoders = {f"hifigan_decoder.{prefix}.{name}": x for part, prefix in (("vocoder", "waveform_decoder"), ("speaker", "speaker_encoder")) for name, x in parts()[part][1].items()}
    model = {"mel_stats": torch.ones(80)} | decoders | {"hifigan_decoder.waveform_decoder.conv_pre.weight": torch.ones(5)}
    with pytest.raises(Refusal, match=r"the hifigan_decoder of the checkpoint is not that of XTTS v2: conv_pre.weight is \[5\], not of 3 axes"):
        frozen.build(model, Sizes(), None, None)

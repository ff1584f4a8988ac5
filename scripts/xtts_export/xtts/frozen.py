"""What XTTS v2 has beside its GPT, as inference graphs: waveforms to codes, to the conditioning spectrogram and to the speaker's vector, and what
the GPT makes to a waveform."""

from pathlib import Path

import torch
from torch import Tensor, nn

from .. import foreign
from ..inference import Inference
from ..inputs import Input
from ..refusal import Refusal
from . import dvae, mels
from . import speaker as speakers
from . import vocoder as vocoders
from .model import Sizes

# Samples of a code.
STRIDE = 1024
_DVAE_HINT, _NORMS_HINT = "name XTTS' dvae.pth: --dvae", "name XTTS' mel_stats.pth, or its model.pth: --mel-norms"
_STATS, _VOCODER, _SPEAKER = "mel_stats", "hifigan_decoder.waveform_decoder.", "hifigan_decoder.speaker_encoder."
_WAVEFORM = [Input("waveform", "f32", ("B", "T_wav"), lengths="waveform_lengths"), Input("waveform_lengths", "i32", ("B",))]


# The codes of a clip, and the spectrogram of another clip of its speaker (docs/data-plan.md, reference clips).
PIPELINE = [
    {"name": "codes", "stage": "codes", "config": {"graph": "codes.onnx", "weights": "codes.safetensors"},
     "inputs": {"waveform": "waveform", "waveform_lengths": "waveform_lengths"}, "outputs": {"codes": "audio_codes", "code_lengths": "code_lengths"}},
    {"name": "conditioning", "stage": "conditioning", "config": {"graph": "conditioning_mel.onnx", "weights": "conditioning_mel.safetensors"},
     "inputs": {"waveform": "reference_waveform", "waveform_lengths": "reference_lengths"},
     "outputs": {"conditioning_mel": "conditioning_mel", "conditioning_lengths": "conditioning_lengths"}},
]


class Codes(nn.Module):
    """One for every STRIDE samples that have begun. The encoder makes one more if the last is complete."""

    def __init__(self, norms: Tensor, encoder: dvae.Encoder):
        super().__init__()
        self.spectrogram, self.dvae = mels.spoken(norms), encoder

    def forward(self, waveform: Tensor, waveform_lengths: Tensor) -> tuple[Tensor, Tensor]:
        codes = self.dvae(*self.spectrogram(waveform, waveform_lengths))
        return codes[:, :(waveform.shape[1] + STRIDE - 1) // STRIDE].int(), (waveform_lengths + STRIDE - 1) // STRIDE


def build(model: dict[str, Tensor], sizes: Sizes, encoder: Path | None, norms: Path | None) -> tuple[list[Inference], list[str]]:
    """With the files, or what the checkpoint `model` has of them, or random weights if it is empty. Also returns lines that say what is left out.

    Raises Refusal.
    """
    if norms is not None:
        bands = read_norms(norms)
    elif _STATS in model or not model:
        bands = _norms(model[_STATS], "the checkpoint") if model else torch.ones(mels.MELS)
    else:
        raise Refusal(f"the checkpoint has no {_STATS}", _NORMS_HINT)
    count = sizes.audio_tokens - 2
    made = dvae.Encoder(count).eval() if encoder is None else read_encoder(encoder)
    if made.codes != count:
        raise Refusal(f"{encoder} makes {made.codes} codes, and the GPT has {count}", "give the dvae.pth and the config.json of one model: --dvae, --config")
    parts = [conditioning(bands), codes(bands, made)]
    if not model:
        return [*parts, speaker(speakers.SpeakerEncoder().eval()), vocoder(vocoders.Vocoder(sizes.width).eval())], []
    found = {prefix: {name.removeprefix(prefix): x for name, x in model.items() if name.startswith(prefix)} for prefix in (_SPEAKER, _VOCODER)}
    if missing := [prefix.rstrip(".") for prefix, own in found.items() if not own]:
        return parts, [f"the checkpoint has no {' and no '.join(missing)}: the bundle is for training alone"]
    try:
        parts += [speaker(speakers.load(found[_SPEAKER])), vocoder(vocoders.load(found[_VOCODER]))]
    except foreign.Unfit as error:
        raise Refusal(f"the hifigan_decoder of the checkpoint is not that of XTTS v2: {error}", "name a model.pth of XTTS v2") from error
    if parts[-1].inputs[0].shape[-1] != sizes.width:
        raise Refusal(f"the hifigan_decoder of the checkpoint takes {parts[-1].inputs[0].shape[-1]} channels, and the GPT has {sizes.width}",
                      "give the config.json of this checkpoint: --config")
    return parts, []


def codes(norms: Tensor, encoder: dvae.Encoder) -> Inference:
    return Inference(
        "codes", "stage", Codes(norms, encoder), _WAVEFORM,
        [Input("codes", "i32", ("B", "T_code"), lengths="code_lengths"), Input("code_lengths", "i32", ("B",))],
        {"B": 3, "T_wav": 5000}, sample_rate=mels.RATE)


def conditioning(norms: Tensor) -> Inference:
    return Inference(
        "conditioning_mel", "stage", mels.conditioning(norms), _WAVEFORM,
        [Input("conditioning_mel", "f32", ("B", "T_cond", mels.MELS), lengths="conditioning_lengths"), Input("conditioning_lengths", "i32", ("B",))],
        {"B": 3, "T_wav": 5000}, sample_rate=mels.RATE)


def speaker(encoder: speakers.SpeakerEncoder) -> Inference:
    return Inference("speaker", "stage", encoder, [Input("waveform", "f32", ("B", "T_wav"))], [Input("speaker", "f32", ("B", encoder.fc.out_features))],
                     {"B": 2, "T_wav": 4000}, sample_rate=speakers.RATE)


def vocoder(generator: vocoders.Vocoder) -> Inference:
    inputs = [Input("latents", "f32", ("B", "T_latent", generator.conv_pre.in_channels)), Input("speaker", "f32", ("B", generator.cond_layer.in_channels))]
    return Inference("vocoder", "vocoder", generator, inputs, [Input("waveform", "f32", ("B", "T_wav"))], {"B": 2, "T_latent": 7}, sample_rate=vocoders.RATE)


def read_encoder(file: Path) -> dvae.Encoder:
    """The encoder of dvae.pth. Raises Refusal."""
    try:
        return dvae.load(foreign.read(file))
    except foreign.Unreadable as error:
        raise Refusal(str(error), _DVAE_HINT) from error
    except foreign.Unfit as error:
        raise Refusal(f"{file} is no DVAE of XTTS: {error}", _DVAE_HINT) from error


def read_norms(file: Path) -> Tensor:
    """mel_stats.pth is one tensor; model.pth has it as mel_stats. Raises Refusal."""
    try:
        saved = torch.load(file, map_location="cpu", weights_only=True)
    except Exception:  # of many classes, and another attempt says why
        saved = None
    try:
        found = saved if torch.is_tensor(saved) else foreign.read(file).get(_STATS)
    except foreign.Unreadable as error:
        raise Refusal(str(error), _NORMS_HINT) from error
    return _norms(found, file)


def _norms(found: Tensor | None, where: object) -> Tensor:
    if found is None or tuple(found.shape) != (mels.MELS,) or not bool((found != 0).all()):
        raise Refusal(f"{where} has no norms of {mels.MELS} bands", _NORMS_HINT)
    return found.float()

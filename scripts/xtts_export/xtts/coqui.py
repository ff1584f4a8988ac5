"""coqui's own classes, for the tests that compare with them: scripts/test-coqui.sh has the environment."""

import contextlib
import logging

import torch
from torch import Tensor, nn

from .model import CODE_WEIGHT, CODES_MORE, TEXT_MORE, TEXT_WEIGHT, Sizes

# Samples of a code.
STRIDE = 1024


def available() -> bool:
    """Whether they can be imported."""
    # torchaudio compares the CUDA version that it was built with, of which no test runs anything.
    version, torch.version.cuda = torch.version.cuda, "13.0"
    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        with contextlib.suppress(ModuleNotFoundError):
            import TTS.tts.layers.xtts.gpt  # noqa: F401, PLC0415
            return True
        return False
    finally:
        torch.version.cuda = version


def gpt(s: Sizes) -> nn.Module:
    """In training mode, without dropout."""
    from TTS.tts.layers.xtts.gpt import GPT  # noqa: PLC0415
    made = GPT(
        layers=s.layers, model_dim=s.width, heads=s.heads, max_text_tokens=s.text_positions - 2, max_mel_tokens=s.audio_positions - 3,
        number_text_tokens=s.text_tokens, num_audio_tokens=s.audio_tokens, start_text_token=s.start_text, stop_text_token=s.stop_text,
        start_audio_token=s.start_audio, stop_audio_token=s.stop_audio, use_perceiver_resampler=True, code_stride_len=STRIDE)
    return without_dropout(made).train()


def without_dropout(gpt: nn.Module) -> nn.Module:
    for part in gpt.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    return gpt


def whole(s: Sizes) -> nn.Module:
    """Its Xtts: the GPT, the decoder to waveforms and the speaker encoder, with random weights."""
    from TTS.tts.configs.xtts_config import XttsConfig  # noqa: PLC0415
    from TTS.tts.models.xtts import Xtts  # noqa: PLC0415
    config = XttsConfig()
    config.model_args.update(arguments(s) | {"decoder_input_dim": s.width})
    return Xtts(config)


def arguments(s: Sizes) -> dict[str, object]:
    """Those of model_args in its config.json that say how large the GPT is."""
    return {
        "gpt_layers": s.layers, "gpt_n_model_channels": s.width, "gpt_n_heads": s.heads, "gpt_max_text_tokens": s.text_positions - 2,
        "gpt_max_audio_tokens": s.audio_positions - 3, "gpt_number_text_tokens": s.text_tokens, "gpt_num_audio_tokens": s.audio_tokens,
        "gpt_start_text_token": s.start_text, "gpt_stop_text_token": s.stop_text, "gpt_start_audio_token": s.start_audio,
        "gpt_stop_audio_token": s.stop_audio, "gpt_use_perceiver_resampler": True}


def decoder(width: int, channels: int) -> nn.Module:
    """Its decoder from what the GPT makes to a waveform, with its speaker encoder, with weights that are loud, and statistics of batches."""
    from TTS.tts.layers.xtts.hifigan_decoder import HifiDecoder  # noqa: PLC0415
    torch.manual_seed(6)
    made = HifiDecoder(decoder_input_dim=width, upsample_initial_channel_decoder=channels)
    with torch.no_grad():
        for name, x in made.named_parameters():
            if "waveform_decoder" in name and not name.endswith("bias"):
                x.mul_(2)
        for part in made.modules():
            if isinstance(part, nn.modules.batchnorm._BatchNorm):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 2)
    return made.eval()


def codes(norms: Tensor) -> tuple[nn.Module, nn.Module, nn.Module]:
    """Its DVAE as its trainer makes it, the spectrogram of what is spoken and that of the conditioning."""
    from TTS.tts.layers.tortoise.arch_utils import TorchMelSpectrogram  # noqa: PLC0415
    from TTS.tts.layers.xtts.dvae import DiscreteVAE  # noqa: PLC0415
    encoder = DiscreteVAE(channels=80, normalization=None, positional_dims=1, num_tokens=1024, codebook_dim=512, hidden_dim=512, num_resnet_blocks=3,
                          kernel_size=3, num_layers=2, use_transposed_convs=False)
    spoken = TorchMelSpectrogram(mel_norm_file=None, sampling_rate=22050)
    conditioning = TorchMelSpectrogram(mel_norm_file=None, filter_length=2048, hop_length=256, win_length=1024, normalize=False, sampling_rate=22050,
                                       mel_fmin=0, mel_fmax=8000, n_mel_channels=80)
    spoken.mel_norms = conditioning.mel_norms = norms
    return encoder.eval(), spoken, conditioning


def batch_loss(gpt: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Its forward and its trainer's sum of both losses, on rows whose spectrograms are equally long."""
    text, code, _ = gpt(
        batch["text_sequences"].long(), batch["text_lengths"].long(), batch["audio_codes"].long(), batch["code_lengths"].long() * STRIDE,
        cond_mels=batch["conditioning_mel"].transpose(1, 2))
    return TEXT_WEIGHT * text + CODE_WEIGHT * code


def loss(gpt: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """The loss of a batch whose rows it has seen one by one, without padding. Both denominators are the batch's."""
    texts, codes = [], []
    for i in range(len(batch["text_lengths"])):
        t, c, m = (int(batch[name][i]) for name in ("text_lengths", "code_lengths", "conditioning_lengths"))
        if t == 0:
            continue
        text, code, _ = gpt(
            batch["text_sequences"][i:i + 1, :t].long(), torch.tensor([t]), batch["audio_codes"][i:i + 1, :c].long(), torch.tensor([c * STRIDE]),
            cond_mels=batch["conditioning_mel"][i:i + 1, :m].transpose(1, 2))
        texts.append((text, t + TEXT_MORE))
        codes.append((code, c + CODES_MORE))
    mean = lambda terms: sum(x * n for x, n in terms) / sum(n for _, n in terms)
    return TEXT_WEIGHT * mean(texts) + CODE_WEIGHT * mean(codes)

"""coqui's GPTTrainer with the settings of its recipe for fine-tuning (TTS/demos/xtts_ft_demo/utils/gpt_train.py), and a loop as that of its Trainer."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from . import coqui
from .model import CODES_MORE, TEXT_MORE, Sizes


def trainer(s: Sizes, vocabulary: Path, coder: Path, rate: float, dropout: bool = False) -> nn.Module:
    """With a GPT of these sizes, without dropout unless asked for. The folder coder has dvae.pth and mel_stats.pth."""
    from TTS.tts.layers.xtts.trainer.gpt_trainer import GPTArgs, GPTTrainer, GPTTrainerConfig  # noqa: PLC0415
    arguments = GPTArgs(mel_norm_file=str(coder / "mel_stats.pth"), dvae_checkpoint=str(coder / "dvae.pth"), tokenizer_file=str(vocabulary),
                        gpt_use_masking_gt_prompt_approach=False, **coqui.arguments(s))
    made = GPTTrainer(GPTTrainerConfig(
        model_args=arguments, optimizer="AdamW", optimizer_wd_only_on_weights=True, lr=rate,
        optimizer_params={"betas": [0.9, 0.96], "eps": 1e-8, "weight_decay": 1e-2},
        lr_scheduler="MultiStepLR", lr_scheduler_params={"milestones": [50000 * 18, 150000 * 18, 300000 * 18], "gamma": 0.5, "last_epoch": -1}))
    if not dropout:
        coqui.without_dropout(made.xtts.gpt)
    made.on_train_epoch_start(SimpleNamespace(model=made))
    return made


def train(made: nn.Module, steps: Iterable[list[dict[str, Tensor]]], weighted: bool) -> Iterator[float]:
    """The loss of each step before its update, and the update. As in coqui's Trainer, the loss is the mean of the micro-batches' losses, unless weighted:
    then both of its terms are divided by their targets in the whole step."""
    optimizer = made.get_optimizer()
    schedule = made.get_scheduler([optimizer])
    for batches in steps:
        total = 0.0
        for batch, shares in zip(batches, _shares(batches, weighted), strict=True):
            _, losses = made.train_step(_batch(batch), None)
            loss = sum(share * losses[name] for name, share in shares.items())
            loss.backward()
            total += loss.item()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        yield total


def _shares(batches: list[dict[str, Tensor]], weighted: bool) -> list[dict[str, float]]:
    """What each micro-batch's losses count in its step."""
    if not weighted:
        return [{"loss": 1 / len(batches)}] * len(batches)
    counts = {"loss_text_ce": ("text_lengths", TEXT_MORE), "loss_mel_ce": ("code_lengths", CODES_MORE)}
    targets = [{term: int((batch[name] + more * (batch[name] > 0)).sum()) for term, (name, more) in counts.items()} for batch in batches]
    return [{term: n / sum(other[term] for other in targets) for term, n in own.items()} for own in targets]


def _batch(batch: dict[str, Tensor]) -> dict[str, Tensor | None]:
    """What its loader and its format_batch_on_device make, without the empty rows of the program's batch."""
    rows = batch["text_lengths"] > 0
    of = {name: x[rows] for name, x in batch.items() if x.dim()}
    return {
        "text_inputs": of["text_sequences"].long(), "text_lengths": of["text_lengths"].long(), "audio_codes": of["audio_codes"].long(),
        "wav_lengths": of["code_lengths"].long() * coqui.STRIDE, "cond_mels": of["conditioning_mel"].transpose(1, 2)[:, None], "cond_idxs": None,
        "cond_lens": of["conditioning_lengths"].long() * 256}

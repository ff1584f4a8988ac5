"""A GAN whose discriminator has a gradient penalty on real signals, R1 (arXiv:1801.04406): the vocoder of gan_vocoder.py.

The penalty is the square of the norm of the gradient of the scores by the signal. Its own gradient is of second order.

    xtts-export module scripts/examples/penalized_gan.py:build --out runs/penalized-gan
"""

from dataclasses import replace

import torch

import gan_vocoder
from xtts_export import Export, Player
from gan_vocoder import ADAMW, judged

GAMMA = 10.0


def build() -> Export:
    export = gan_vocoder.build()
    model = export.module

    def judge(fake, batch):
        hops = batch["mel_spectrograms"].shape[1] - 1
        real = batch["waveform"].detach().requires_grad_(True)
        right, wrong = model.discriminator(real, hops), model.discriminator(fake.detach(), hops)
        scores = sum(critic[-1].sum() for critic in right)
        [slope] = torch.autograd.grad(scores, real, create_graph=True)
        terms = judged(right, wrong)
        terms["penalty"] = slope.square().sum(1)
        terms["loss"] = terms["loss"] + GAMMA / 2 * terms["penalty"]
        rows = (batch["waveform_lengths"] > 0).float()
        return {name: (x * rows).sum() / rows.sum().clamp(min=1) for name, x in terms.items()} | {"loss_weight": rows.sum()}

    return replace(export, name="penalized-gan", description="gan_vocoder.py with a gradient penalty",
                   players={"discriminator": Player("discriminator", judge, ADAMW), "generator": export.players["generator"]})

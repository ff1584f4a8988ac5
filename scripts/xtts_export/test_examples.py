"""Parts of scripts/examples that are no sums of common ones."""

import math

import torch

from . import builtin


def test_the_penalty_is_the_square_of_the_scores_slope(monkeypatch):
    monkeypatch.syspath_prepend(str(builtin.REPOSITORY / "scripts/examples"))
    import penalized_gan

    export = penalized_gan.build()
    critics, player = export.module.discriminator, export.players["discriminator"]
    real, fake = (torch.sin(f * torch.arange(8 * 256.0)).expand(2, -1) for f in (0.1, 0.3))
    # The second row is empty.
    batch = {"waveform": real, "waveform_lengths": torch.tensor([2048, 0]), "mel_spectrograms": torch.zeros(2, 9, 80)}
    terms = player.loss(fake, batch)
    x = real[:1].clone().requires_grad_(True)
    score = lambda x: sum(critic[-1].sum() for critic in critics(x, 8))
    [slope] = torch.autograd.grad(score(x), x)
    assert torch.allclose(terms["penalty"], slope.square().sum(), rtol=1e-4)
    # The critics are linear but for where a leaky ReLU bends.
    step = 1e-3 / float(slope.norm())
    with torch.no_grad():
        along = (score(x + step * slope) - score(x - step * slope)) / (2 * step)
    assert torch.allclose(along, terms["penalty"], rtol=0.05)
    plain = terms["real_loss"] + terms["fake_loss"]
    assert torch.allclose(terms["loss"], plain + 5 * terms["penalty"])
    trained = list(critics.parameters())
    slopes = torch.autograd.grad(terms["penalty"], trained, allow_unused=True)
    assert max(g.norm() for g in slopes if g is not None) > 0


def test_the_source_has_the_pitch_and_the_decoder_the_length(monkeypatch):
    monkeypatch.syspath_prepend(str(builtin.REPOSITORY / "scripts/examples"))
    import style_decoder

    export = style_decoder.build(style_decoder.Sizes(8, 4, (8, 8), (3,), (1,), harmonics=2, frames=(9,)))
    source = export.module.generator.source
    # Of the three sines, only that of the pitch.
    source.linear.weight.data, source.linear.bias.data = torch.tensor([[1.0, 0, 0]]), torch.zeros(1)
    pitch = 200.0 * torch.ones(1, 4000, 1)
    pitch[:, 3000:] = 0
    wave = source(pitch)[0, :, 0]
    sine = 0.1 * torch.sin(2 * math.pi * 200 / 22050 * torch.arange(1, 3001))
    assert (wave[:3000] - sine.tanh()).abs().max() < 0.02 and wave[3000:].std() > 0.02
    batch = {"waveform": torch.randn(2, 2048), "waveform_lengths": torch.tensor([2048, 0])}
    fake = export.module(torch.randn(2, 9, 80), torch.tensor([9, 0]), torch.randn(2, 9), torch.randn(2, 9))
    assert fake.shape == (2, 2048)
    # The second row is empty.
    rows = [export.loss(fake * torch.tensor(row)[:, None], batch) for row in ([1, 1], [1, 0])]
    assert rows[0]["loss"] == rows[1]["loss"] and rows[0]["loss_weight"] == 1

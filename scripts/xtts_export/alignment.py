"""Monotonic alignment search (Kim et al. 2020, Glow-TTS, algorithm 1), as two recurrences over frames."""

import torch
from torch import Tensor

from .recurrence import scan

_NEVER = -1e30


def monotonic_path(scores: Tensor, text_lengths: Tensor, mel_lengths: Tensor) -> Tensor:
    """f32[B, T_text, T_mel]: 1 where the path with the highest sum of scores[B, T_text, T_mel] goes.

    A path begins at the first symbol and the first frame, ends at a row's last ones, and moves on by none or one symbol from frame to frame.
    A row with fewer frames than symbols has no such path: it begins at a later symbol. It has no gradient.
    """
    with torch.no_grad():
        by_frame = scores.detach().float().permute(2, 0, 1)
        frames = torch.arange(by_frame.shape[0])
        enter = torch.where(frames == 0, 0.0, _NEVER)[:, None, None].expand(-1, by_frame.shape[1], 1)
        inside = (frames[:, None] < mel_lengths[None, :]).float()[:, :, None]
        _, (moves,) = scan(_best, (torch.full_like(by_frame[0], _NEVER),), (by_frame, enter))
        last = (torch.arange(by_frame.shape[2])[None, :] == (text_lengths - 1)[:, None]).float()
        _, (path,) = scan(_back, (last,), (moves, inside), reverse=True)
        return path.permute(1, 2, 0)


def _best(carry, items, constants):
    [now], [scores, enter] = carry, items
    moved = torch.cat([enter, now[:, :-1]], 1)
    # Sums of what cannot be stay what cannot be.
    after = torch.maximum(torch.maximum(now, moved) + scores, torch.full_like(now, _NEVER))
    return (after,), ((moved > now).float(),)


def _back(carry, items, constants):
    [place], [moves, inside] = carry, items
    moved = torch.cat([place[:, 1:], torch.zeros_like(place[:, :1])], 1)
    moves = (place * moves).sum(1, keepdim=True) * inside
    # The first symbol has none before it.
    moves = moves * (1 - place[:, :1])
    return (moves * moved + (1 - moves) * place,), (place * inside,)

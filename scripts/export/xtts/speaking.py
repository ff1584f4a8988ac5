"""`synthesis` of an XTTS v2 bundle (docs/synthesize.md): the numbers of coqui's inference that are in no graph."""

import json
from pathlib import Path

from ..refusal import Refusal
from . import vocoder
from .model import Sizes

# Codes that coqui's table of positions has more than it lets the model choose.
_UNCHOSEN = 6
# A code that coqui's prompt has at every place before the start code; the repetition penalty finds it there.
_FILLING = 1
# coqui's XttsConfig, and what is taken of the config.json of a checkpoint. A chunk below a third of a second is left out.
DEFAULTS = {"temperature": 0.85, "top_k": 50, "top_p": 0.85, "repetition_penalty": 2.0, "gpt_cond_len": 12, "gpt_cond_chunk_len": 4, "max_ref_len": 10}
_LEAST = 0.33


def numbers(s: Sizes, config: Path | None) -> dict:
    """Raises Refusal."""
    c = _settings(config)
    return {
        "stop": s.stop_audio, "longest": s.audio_positions - _UNCHOSEN, "prompt": [_FILLING, s.start_audio], "vocoder": vocoder.windows(),
        "reference": {"speaker": c["max_ref_len"], "voice": c["gpt_cond_len"], "chunk": c["gpt_cond_chunk_len"], "least": _LEAST},
        "sampling": {name: c[name] for name in ("temperature", "top_k", "top_p", "repetition_penalty")}}


def _settings(config: Path | None) -> dict:
    """What the config.json has of DEFAULTS, or else those; settings.read has read it before."""
    given = {} if config is None else json.loads(config.read_text(encoding="utf-8"))
    chosen = {name: given.get(name, default) for name, default in DEFAULTS.items()}
    for name, x in chosen.items():
        if isinstance(x, bool) or not isinstance(x, int | float) or not x > 0:
            raise Refusal(f"{config} has {name} {x!r}, which is no number above 0", "name the config.json that belongs to the checkpoint of XTTS v2")
    return chosen

"""`synthesis` of an XTTS v2 bundle (docs/synthesize.md): the numbers of coqui's inference that are in no graph."""

import dataclasses
import json
import math
from pathlib import Path

from ..refusal import Refusal
from . import vocoder
from .model import Sizes

# Codes that coqui's table of positions has more than it lets the model choose.
_UNCHOSEN = 6
# A code that coqui's prompt has at every place before the start code; the repetition penalty finds it there.
_FILLING = 1
# Seconds. A chunk, or a clip, below a third of a second is left out.
_LEAST = 0.33


@dataclasses.dataclass(frozen=True)
class Key:
    """Of coqui's config.json: its value in XttsConfig, where bundle.json has it, and what the schema of bundle.json allows there."""

    default: float
    place: tuple[str, str]
    least: float
    most: float
    above: bool = False
    """least itself is not allowed."""
    kind: type = float


# A temperature of 0 is the most probable code each time, and a top_k of 0 means all codes.
KEYS = {
    "temperature": Key(0.85, ("sampling", "temperature"), 0, 100),
    "top_k": Key(50, ("sampling", "top_k"), 0, 1048576, kind=int),
    "top_p": Key(0.85, ("sampling", "top_p"), 0, 1, above=True),
    "repetition_penalty": Key(2.0, ("sampling", "repetition_penalty"), 0, 1000, above=True),
    "max_ref_len": Key(10, ("reference", "speaker"), _LEAST, 600),
    "gpt_cond_len": Key(12, ("reference", "voice"), _LEAST, 600),
    "gpt_cond_chunk_len": Key(4, ("reference", "chunk"), _LEAST, 600),
}


def numbers(s: Sizes, config: Path | None) -> dict:
    """What config.json lacks is as in coqui's class. settings.read has read the file before. Raises Refusal."""
    given = {} if config is None else json.loads(config.read_text(encoding="utf-8"))
    entries: dict[str, dict] = {"reference": {"least": _LEAST}, "sampling": {}}
    for name, key in KEYS.items():
        part, entry = key.place
        entries[part][entry] = _checked(config, name, key, given.get(name, key.default))
    codes = {"stop": s.stop_audio, "prompt": [_FILLING, s.start_audio], "vocoder": vocoder.windows(), "sampling": entries["sampling"]}
    return {"longest": s.audio_positions - _UNCHOSEN, "reference": entries["reference"], "codes": codes}


def _checked(config: Path | None, name: str, key: Key, x: object) -> float:
    number = isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)
    if number and (key.kind is float or x == int(x)) and key.least <= x <= key.most and not (key.above and x == key.least):
        return key.kind(x) if key.kind is int else x
    what, least = "a whole number" if key.kind is int else "a number", "above" if key.above else "from"
    raise Refusal(f"{config}: {name} is {x!r}, not {what} {least} {key.least:g} to {key.most:g}", "correct the config.json that belongs to the checkpoint of XTTS v2")

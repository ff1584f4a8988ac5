"""The sizes of a model from coqui's files: config.json and vocab.json."""

import dataclasses
import json
from pathlib import Path

from ..refusal import Refusal
from .model import Sizes

START, STOP = "[START]", "[STOP]"
# A position table has more rows than coqui's limit: two for a text, for its start and stop tokens; for codes one more, of the conditioning.
_TEXT_MORE, _AUDIO_MORE = 2, 3
# Keys of model_args in config.json, the fields that they are, and what is added.
_KEYS = {
    "gpt_layers": ("layers", 0), "gpt_n_model_channels": ("width", 0), "gpt_n_heads": ("heads", 0),
    "gpt_number_text_tokens": ("text_tokens", 0), "gpt_num_audio_tokens": ("audio_tokens", 0),
    "gpt_max_text_tokens": ("text_positions", _TEXT_MORE), "gpt_max_audio_tokens": ("audio_positions", _AUDIO_MORE),
    "gpt_start_text_token": ("start_text", 0), "gpt_stop_text_token": ("stop_text", 0),
    "gpt_start_audio_token": ("start_audio", 0), "gpt_stop_audio_token": ("stop_audio", 0),
}
_HINT = "name the config.json that belongs to the checkpoint of XTTS v2"


def read(config: Path | None, vocabulary: Path | None, words: str | None = None) -> Sizes:
    """Those of XTTS v2 as it was released, with what the files say. words is the text of the vocabulary. Raises Refusal."""
    sizes = dataclasses.replace(Sizes(), **({} if config is None else _configured(config)))
    if vocabulary is not None:
        sizes = dataclasses.replace(sizes, **_counted(vocabulary, words or text_of(vocabulary)))
    of = f" of {config}" if config else ""
    _refuse(sizes.width % sizes.heads or sizes.width % 8, f"gpt_n_model_channels{of} is {sizes.width}, with {sizes.heads} heads", "the width is a multiple of 8 and of the heads")
    for name, count in (("text", sizes.text_tokens), ("audio", sizes.audio_tokens)):
        for token in (f"start_{name}", f"stop_{name}"):
            _refuse(not 0 <= getattr(sizes, token) < count, f"the {token.replace('_', ' ')} token is {getattr(sizes, token)}, of {count} tokens", _HINT)
    _refuse(min(sizes.start_audio, sizes.stop_audio) != sizes.audio_tokens - 2, f"start and stop code{of} are {sizes.start_audio} and {sizes.stop_audio}, not the last two of {sizes.audio_tokens}", _HINT)
    return sizes


def _configured(file: Path) -> dict[str, int]:
    document = _parsed(file, text_of(file))
    arguments = document.get("model_args")
    _refuse(not isinstance(arguments, dict), f"{file} has no model_args", _HINT)
    _refuse(arguments.get("gpt_use_perceiver_resampler", True) is not True, f"{file}: gpt_use_perceiver_resampler is not true, as in XTTS v1", _HINT)
    found = {}
    for key, (field, more) in _KEYS.items():
        # coqui takes what is null from the vocabulary.
        if (value := arguments.get(key)) is not None:
            _refuse(type(value) is not int or value < 0, f"{file}: {key} is {value!r}, not a number from 0", _HINT)
            found[field] = value + more
    return found


def _counted(file: Path, text: str) -> dict[str, int]:
    """As coqui's tokenizer counts: one more than the highest id, of the model's or an added token."""
    document = _parsed(file, text)
    try:
        ids = {**document["model"]["vocab"], **{token["content"]: token["id"] for token in document.get("added_tokens", ())}}
        return {"text_tokens": max(ids.values()) + 1, "start_text": ids[START], "stop_text": ids[STOP]}
    except KeyError as error:
        raise Refusal(f"{file} has no {error.args[0]}", f"name XTTS' vocab.json, which has the tokens {START} and {STOP}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise Refusal(f"{file} is no tokenizer: {error}", "name XTTS' vocab.json, a tokenizer in the format of Hugging Face") from error


def text_of(file: Path) -> str:
    """Raises Refusal."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise Refusal(f"{file} cannot be read: {error}", "name a JSON file") from error


def _parsed(file: Path, text: str) -> dict:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise Refusal(f"{file} cannot be read: {error}", "name a JSON file") from error
    _refuse(not isinstance(document, dict), f"{file} is no JSON object", _HINT)
    return document


def _refuse(wrong: object, reason: str, hint: str) -> None:
    if wrong:
        raise Refusal(reason, hint)

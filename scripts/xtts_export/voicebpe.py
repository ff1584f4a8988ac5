"""The tokenizer of XTTS, coqui's vocab.json, as a tokenizer.json that xtts-host reads (docs/xtts-text.md)."""

import json
import unicodedata

from .refusal import Refusal

SPACE = "[SPACE]"
# The tag of a row's language, which coqui puts before each text.
PREFIX = "[{language}]"
_METASPACE = "▁"
# Characters that are no letters, and alphabetic all the same: circled and squared letters (Unicode, PropList.txt, Other_Alphabetic).
_ALPHABETIC = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))


def convert(text: str) -> str:
    """The text of tokenizer.json for the text of vocab.json. It gives a text the ids that coqui's class gives it, without the tag of
    the language. Raises Refusal.

    coqui writes each space as [SPACE], which is a token of its own between words. Here it is the visible space of the Metaspace
    pre-tokenizer, under the same id. The pre-tokenizer Whitespace also divides words from punctuation. Metaspace does not, but no
    merge joins them: those of the file that would have never applied.
    """
    try:
        document = json.loads(text)
        model, added = document["model"], document.get("added_tokens") or []
        kind, words, merges = model["type"], dict(model["vocab"]), [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model["merges"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _refuse(f"it is no tokenizer file: {error!r}") from error
    splits = (document.get("pre_tokenizer") or {}).get("type")
    if (kind, splits) != ("BPE", "Whitespace"):
        raise _refuse(f"its model is {kind} with the pre-tokenizer {splits}, not BPE with Whitespace")
    if (normalizer := document.get("normalizer")) not in (None, {"type": "Lowercase"}):
        raise _refuse(f"its normalizer is {normalizer.get('type')}")
    ids = words | {token["content"]: token["id"] for token in added}
    if SPACE not in ids:
        raise _refuse(f"it has no token {SPACE}")
    if _METASPACE in ids:
        raise _refuse(f"{_METASPACE} is a token of its own")
    words.pop(SPACE, None)
    words[_METASPACE] = ids[SPACE]
    joins = lambda pair: len({_of_a_word(c) for c in "".join(pair)}) > 1
    spaces = {"type": "Metaspace", "replacement": _METASPACE, "prepend_scheme": "never", "split": True}
    return json.dumps({
        "version": "1.0", "truncation": None, "padding": None,
        # Cleaned texts are lower case but for some words that numbers became, and those have capital letters for coqui, too.
        "added_tokens": [{**token, "normalized": False} for token in added if token["content"] != SPACE],
        "normalizer": normalizer, "pre_tokenizer": spaces, "post_processor": None, "decoder": spaces,
        "model": {**model, "vocab": dict(sorted(words.items(), key=lambda item: item[1])), "merges": [" ".join(m) for m in merges if not joins(m)]},
    }, ensure_ascii=False, indent=0) + "\n"


def _refuse(reason: str) -> Refusal:
    return Refusal(f"the vocabulary cannot be read: {reason}", "name XTTS' vocab.json, which belongs to the checkpoint")


def _of_a_word(c: str) -> bool:
    r"""The class \w of Unicode regular expressions (Unicode Technical Standard 18, annex C)."""
    category = unicodedata.category(c)
    return category[0] in "LM" or category in ("Nd", "Nl", "Pc") or c in "\u200c\u200d" or any(a <= ord(c) <= b for a, b in _ALPHABETIC)

"""More tokens for XTTS' vocab.json: the characters and language tags of a list of texts (docs/xtts-text.md)."""

import json
import unicodedata
from pathlib import Path

from .. import voicebpe
from ..refusal import Refusal

_LIST = "name a list of JSON Lines (docs/data.md), or a .txt file with a text in each line"


def extend(vocabulary: str, texts: list[tuple[str, str | None]]) -> tuple[str, list[str]]:
    """The text of vocab.json with a token for each character that the texts have and it lacks, and a tag for each language; and the new
    tokens. The others keep their ids. texts are pairs of a text and its language, if known. Raises Refusal.

    The host composes characters (NFC), so composed ones are added. A new character is in no merge: it is a token by itself.
    """
    voicebpe.convert(vocabulary)  # refuses what is no vocabulary of XTTS
    document = json.loads(vocabulary)
    words, added = document["model"]["vocab"], document.setdefault("added_tokens", [])
    ids = words | {token["content"]: token["id"] for token in added}
    lower = document.get("normalizer") is not None
    found = {c for text, _ in texts for c in unicodedata.normalize("NFC", text.lower() if lower else text) if not c.isspace() and unicodedata.category(c) != "Cc"}
    tags = [tag for language in sorted({language for _, language in texts if language}) if (tag := voicebpe.PREFIX.format(language=language)) not in ids]
    letters = sorted(found - ids.keys())
    free = max(ids.values()) + 1
    for i, token in enumerate([*tags, *letters], free):
        words[token] = i
    added += [{"id": words[tag], "content": tag, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for tag in tags]
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n", [*tags, *letters]


def read(file: Path) -> list[tuple[str, str | None]]:
    """The texts of a list of JSON Lines with their languages, or the lines of a .txt file. Raises Refusal."""
    try:
        lines = [line for line in file.read_text(encoding="utf-8-sig").split("\n") if line.strip()]
        texts = [(line, None) for line in lines] if file.suffix == ".txt" else [(row["text"], row.get("language")) for row in map(json.loads, lines)]
    except (OSError, UnicodeError) as error:
        raise Refusal(f"{file} cannot be read: {error}", _LIST) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refusal(f"{file} is no list of JSON Lines with texts: {error!r}", _LIST) from error
    if not texts:
        raise Refusal(f"{file} has no texts", _LIST)
    if wrong := [n for n, (text, language) in enumerate(texts, 1) if not isinstance(text, str) or not isinstance(language, str | None)]:
        raise Refusal(f"{file}, text {wrong[0]}: the text or the language is no string", _LIST)
    return texts

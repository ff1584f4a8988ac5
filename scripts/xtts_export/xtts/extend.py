"""More tokens for XTTS' vocab.json: the characters and language tags of a list of texts (docs/xtts-text.md)."""

import json
import unicodedata
from pathlib import Path

from .. import listing, voicebpe
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
    if file.suffix == ".txt":
        texts = [(line, None) for _, line in listing.lines(file)]
    else:
        texts = [(row["text"], row.get("language")) for _, row in listing.rows(file)]
    if not texts:
        raise Refusal(f"{file} has no texts", _LIST)
    return texts

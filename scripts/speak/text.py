"""Text to ids as the host makes them (docs/data.md), for tokenizers of single characters and bytes such as that of myxtts-nano."""

import json
import unicodedata
from pathlib import Path

from .files import Refused

# These are between words; other control characters are removed.
SPACES = "\t\n\v\f\r\u0085"


class Tokenizer:
    def __init__(self, path: Path):
        document = json.loads(path.read_text(encoding="utf-8"))
        model = document["model"]
        if model["type"] != "BPE" or model["merges"] or document["pre_tokenizer"]["type"] != "Metaspace":
            raise Refused(f"{path} is not a tokenizer of single characters", "use a run of builtin:myxtts-nano")
        self.lower = "Lowercase" in json.dumps(document["normalizer"])
        self.space = document["pre_tokenizer"]["replacement"]
        self.ids, self.unknown, self.bytes = model["vocab"], model["unk_token"], model["byte_fallback"]

    def encode(self, text: str) -> list[int]:
        text = prepared(text)
        if self.lower:
            # Not text.lower(): it makes a final sigma of the last one of a word.
            text = "".join(character.lower() for character in text)
        return [i for character in text.replace(" ", self.space) for i in self._character(character)]

    def _character(self, character: str) -> list[int]:
        if character in self.ids:
            return [self.ids[character]]
        if self.bytes:
            return [self.ids[f"<0x{b:02X}>"] for b in character.encode()]
        return [self.ids[self.unknown]]


def prepared(text: str) -> str:
    """The text without control characters, composed."""
    text = "".join(" " if c in SPACES else c for c in text if c in SPACES or unicodedata.category(c) != "Cc" and c != "\ufeff")
    return unicodedata.normalize("NFC", text).strip()

"""Text to ids, for tokenizers of single characters such as that of myxtts-nano."""

import json
import unicodedata
from pathlib import Path

from .files import Refused


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
        text = unicodedata.normalize("NFC", text).strip()
        text = (text.lower() if self.lower else text).replace(" ", self.space)
        return [i for character in text for i in self._character(character)]

    def _character(self, character: str) -> list[int]:
        if character in self.ids:
            return [self.ids[character]]
        if self.bytes:
            return [self.ids[f"<0x{b:02X}>"] for b in character.encode()]
        return [self.ids[self.unknown]]

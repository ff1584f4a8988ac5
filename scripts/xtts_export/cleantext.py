"""xtts-export clean-text: the texts of a list as coqui's code cleans them (docs/xtts-text.md)."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from . import listing
from .refusal import Refusal

_CLEANER = Path(__file__).with_name("coqui_text.py")
_INSTALL = "name a Python with --python in which `pip install coqui-tts==0.28.0` was done, with pypinyin for Chinese, and cutlet and unidic-lite for Japanese"
_SHOWN = 5  # lines that an error names


def clean(source: Path, target: Path, language: str = "en", python: str | None = None) -> int:
    """Writes the list with cleaned texts, and returns the number of texts. language is that of lines without one. Raises Refusal."""
    if source.parent.resolve() != target.parent.resolve():
        raise Refusal(f"--out {target} is in another folder than {source}", "write it beside the list: paths of recordings are relative to its folder")
    if target.exists():
        raise Refusal(f"--out {target} exists", "name a new file, or remove that one")
    rows = listing.rows(source)
    texts = [[row.get("language") or language, row["text"]] for _, row in rows]
    cleaned = _run(texts, python or sys.executable)
    failed = [f"{place}: {pair[0]}: {made}" for (place, _), pair, made in zip(rows, texts, cleaned, strict=True) if isinstance(made, str)]
    if failed:
        more = f"\nand {len(failed) - _SHOWN} more such lines" if len(failed) > _SHOWN else ""
        raise Refusal("coqui's code cannot clean\n" + "\n".join(failed[:_SHOWN]) + more, "write such texts in words, or as the tokenizer has them, and leave their lines out here")
    made = [json.dumps({**row, "language": tag, "text": text}, ensure_ascii=False) for (_, row), (tag, text) in zip(rows, cleaned, strict=True)]
    with listing.replacing(target) as file:
        file.write("".join(line + "\n" for line in made).encode())
    return len(rows)


def _run(texts: list, python: str) -> list:
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "texts.json"), Path(folder, "cleaned.json")
        given.write_text(json.dumps(texts), encoding="utf-8")
        try:
            done = subprocess.run([python, _CLEANER, "clean", given, made], capture_output=True, text=True)
        except OSError as error:
            raise Refusal(f"--python {python} cannot be run: {error}", _INSTALL) from error
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise Refusal(f"{python} cannot run coqui's code: {last}", _INSTALL)
        return json.loads(made.read_text(encoding="utf-8"))

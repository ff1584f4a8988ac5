"""clean-text with a package of coqui's name that stands for coqui-tts. What coqui's own code makes is in testdata/voicebpe of the host."""

import json
import sys

import pytest

from .cleantext import clean
from .command import main
from .refusal import Refusal

FAKE = """
print("a banner of some library")
class VoiceBpeTokenizer:
    def preprocess_text(self, text, language):
        if language == "fa":
            raise NotImplementedError("Language 'fa' is not supported.")
        return f"{language} {text.lower()}"
"""


@pytest.fixture
def coqui(tmp_path, monkeypatch):
    package = tmp_path / "lib/TTS/tts/layers/xtts"
    package.mkdir(parents=True)
    (package / "tokenizer.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))


def listed(folder, *rows) -> object:
    file = folder / "train.jsonl"
    file.write_text("\ufeff" + "\n\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return file


def test_clean(tmp_path, coqui):
    file = listed(tmp_path, {"audio_filepath": "1.wav", "text": "One É.", "id": 7}, {"audio_filepath": "2.wav", "text": "二", "language": "zh"},
                  {"audio_filepath": "3.wav", "text": "Um", "language": "pt-br"}, {"audio_filepath": "4.wav", "text": "X", "language": None})
    out = tmp_path / "clean.jsonl"
    assert main(["clean-text", str(file), "--out", str(out), "--language", "fr"]) == 0
    assert [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] == [
        {"audio_filepath": "1.wav", "text": "fr one é.", "id": 7, "language": "fr"}, {"audio_filepath": "2.wav", "text": "zh 二", "language": "zh-cn"},
        {"audio_filepath": "3.wav", "text": "pt um", "language": "pt"}, {"audio_filepath": "4.wav", "text": "fr x", "language": "fr"}]


def test_only_a_newline_ends_a_line(tmp_path, coqui):
    file, out = tmp_path / "train.jsonl", tmp_path / "clean.jsonl"
    file.write_bytes('{"text": "One\u2028two\u0085three"}\r\n{"text": "Four"}'.encode())
    assert clean(file, out) == 2
    assert [json.loads(line)["text"] for line in out.read_text(encoding="utf-8").split("\n")[:-1]] == ["en one\u2028two\u0085three", "en four"]


def test_refused(tmp_path, coqui, monkeypatch):
    good = {"audio_filepath": "1.wav", "text": "One"}
    out = tmp_path / "clean.jsonl"

    def refused(reason, file, target=out, **more):
        with pytest.raises(Refusal) as error:
            clean(file, target, **more)
        assert reason in str(error.value) and error.value.hint, str(error.value)
        assert not out.exists()

    file = listed(tmp_path, good, {**good, "language": "fa"})
    refused(f"{file}:3: fa: NotImplementedError: Language 'fa' is not supported.", file)
    refused("and 1 more such lines", listed(tmp_path, *[{**good, "language": "fa"}] * 6))
    refused(f"{file}:1 has no text", listed(tmp_path, {"audio_filepath": "1.wav"}))
    refused("no string", listed(tmp_path, {**good, "text": 5}))
    refused("cannot be read", tmp_path / "none.jsonl")
    file = listed(tmp_path, good)
    refused("is in another folder", file, tmp_path / "lib/clean.jsonl")
    refused("exists", file, file)
    refused("cannot be run", file, python=str(tmp_path / "nothing"))
    monkeypatch.setenv("PYTHONPATH", "")
    refused("No module named 'TTS'", file, python=sys.executable)

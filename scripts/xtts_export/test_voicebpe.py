"""voicebpe.py against what coqui-tts 0.28.0 made of the texts in testdata/voicebpe (coqui_text.py), with the libraries of its extras zh and ja."""

import json
from pathlib import Path

import pytest

from . import voicebpe
from .builtin import REPOSITORY
from .refusal import Refusal

DATA = REPOSITORY / "host/data/dataset/testdata/voicebpe"
TEXTS = json.loads((DATA / "texts.json").read_text(encoding="utf-8"))
VOCABULARY = (Path(__file__).parent / "testdata/vocab.json").read_text(encoding="utf-8")


def test_same_ids():
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(voicebpe.convert(VOCABULARY))
    assert len({t["language"] for t in TEXTS}) == 17
    for t in TEXTS:
        assert tokenizer.encode(voicebpe.PREFIX.format(language=t["language"])).ids + tokenizer.encode(t["cleaned"]).ids == t["ids"], t["text"]


def test_file_of_the_host():
    """The host's test of the same texts reads what convert() makes."""
    assert (DATA / "tokenizer.json").read_text(encoding="utf-8") == voicebpe.convert(VOCABULARY)


def test_merges_that_never_apply():
    """Whitespace divides "a!" before any merge, so a merge of both would only apply after the conversion."""
    document = json.loads(VOCABULARY)
    document["model"]["vocab"]["a!"] = 5000
    document["model"]["merges"].insert(0, ["a", "!"])
    assert voicebpe.convert(json.dumps(document)).count('"a !"') == 0
    assert json.loads(voicebpe.convert(VOCABULARY))["model"]["merges"] == [" ".join(m) for m in json.loads(VOCABULARY)["model"]["merges"]]


@pytest.mark.parametrize("change, reason", [
    (lambda d: d.pop("model"), "it is no tokenizer file"),
    (lambda d: d["model"].update(type="Unigram"), "its model is Unigram"),
    (lambda d: d.update(pre_tokenizer={"type": "ByteLevel"}), "with the pre-tokenizer ByteLevel"),
    (lambda d: d.update(normalizer={"type": "NFD"}), "its normalizer is NFD"),
    (lambda d: d["model"]["vocab"].update({"▁": 9000}), "▁ is a token of its own"),
    (lambda d: (d["model"]["vocab"].pop("[SPACE]"), d.update(added_tokens=[])), "it has no token [SPACE]"),
])
def test_refused(change, reason):
    document = json.loads(VOCABULARY)
    change(document)
    with pytest.raises(Refusal, match=reason.replace("[", r"\[")):
        voicebpe.convert(json.dumps(document))

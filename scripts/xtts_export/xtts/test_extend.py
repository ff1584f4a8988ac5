"""--extend-tokenizer: Persian for a vocabulary and a checkpoint that have none."""

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from .. import voicebpe
from ..builtin import REPOSITORY
from ..refusal import Refusal
from . import extend, preset, small

VOCABULARY = (Path(__file__).parents[1] / "testdata/vocab.json").read_text(encoding="utf-8")
TEXTS = json.loads((REPOSITORY / "host/data/dataset/testdata/voicebpe/texts.json").read_text(encoding="utf-8"))
PERSIAN = "می‌خواهم گچ پژ بخرم، آیا ۱۲ تا هست؟"


def test_old_ids_stay_and_new_letters_get_some():
    text, new = extend.extend(VOCABULARY, [(PERSIAN, "fa"), ("a cat", "en")])
    before, after = (Tokenizer.from_str(voicebpe.convert(x)) for x in (VOCABULARY, text))
    for t in TEXTS:
        assert after.encode(t["cleaned"]).ids == before.encode(t["cleaned"]).ids
    ids = after.encode("[fa]" + PERSIAN).ids
    assert after.token_to_id("[UNK]") not in ids and after.token_to_id("[UNK]") in before.encode(PERSIAN).ids
    assert new[0] == "[fa]" and "[en]" not in new and "چ" in new and " " not in new and "a" not in new
    first = max(json.loads(VOCABULARY)["model"]["vocab"].values()) + 1
    assert [after.token_to_id(token) for token in new] == list(range(first, first + len(new)))
    assert after.decode(after.encode(PERSIAN).ids) == PERSIAN
    # Twice is once.
    assert extend.extend(text, [(PERSIAN, "fa")]) == (text, [])


def test_rows_of_the_checkpoint(tmp_path):
    config, vocabulary, dvae = small.config(tmp_path), small.vocabulary(tmp_path), small.dvae(tmp_path)
    model = small.shaken(preset.build(config=config)).module.state_dict() | {"mel_stats": torch.linspace(0.5, 3, 80)}
    torch.save({"model": model}, tmp_path / "model.pth")
    texts = tmp_path / "texts.txt"
    texts.write_text(f"\ufeff{PERSIAN}\n\n", encoding="utf-8")
    export = preset.build(tmp_path / "model.pth", vocabulary, config, dvae, more=texts)
    new = extend.extend(vocabulary.read_text(), extend.read(texts))[1]
    grown = export.module.state_dict()
    for name in ("gpt.text_embedding.weight", "gpt.text_head.weight", "gpt.text_head.bias"):
        assert len(grown[name]) == 520 + len(new) and torch.equal(grown[name][:520], model[name])
    assert voicebpe.convert(export.files["vocab.json"]) == export.tokenizer


def test_refusals(tmp_path):
    wrong = tmp_path / "wrong.jsonl"
    with pytest.raises(Refusal, match="wrong.jsonl cannot be read: No such file or directory"):
        extend.read(wrong)
    for text, reason in (("\n", "wrong.jsonl has no texts"), ('{"text": "a"}\n\n{"language": "fa"}\n', "wrong.jsonl:3 has no text"), ("[1]", "wrong.jsonl:1 is no JSON object"),
                         ('{"text": "a"}\n{"text": "a", "language": 3}\n', "wrong.jsonl:2: language is 3, which is no string"), ('{"text": null}', "wrong.jsonl:1: text is null"),
                         ('{"text": "a\u2028b"}\n{"text": "a}\n', "wrong.jsonl:2 is no JSON: Unterminated string"), ('{"text": "a"}\n\udcff', "wrong.jsonl:2 is no UTF-8: byte 0xff")):
        wrong.write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(Refusal, match=reason):
            extend.read(wrong)
    with pytest.raises(Refusal, match="--extend-tokenizer without --vocab"):
        preset.build(more=wrong)
    with pytest.raises(Refusal, match="it is no tokenizer file"):
        extend.extend("{}", [])

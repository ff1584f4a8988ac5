"""Writes the tokenizers of the parity test and the ids that the Hugging Face library gives for them.

pip install tokenizers==0.23.3 && python host/dataset/testdata/make_tokenizers.py
"""

import json
import random
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

FOLDER = Path(__file__).parent

CORPUS = [
    "the quick brown fox jumps over the lazy dog", "a small fox crossed the garden", "they were there, weren't they?",
    "well-known words: one, two; three!", "café naïve été", "[en] nothing",
] * 20

SENTENCES = [
    "The quick brown fox jumps over the lazy dog.", "[en] hello world, how are you today?", "[STOP] end of line",
    "Numbers: 1,234.56 and 7%!", "naïve café Zoë – dash…", "Привет, мир!", "日本語のテスト", "emoji 🙂 test",
    "  leading and   multiple   spaces ", "tabs\tand\nnewlines", "[SPACE][UNK] side by side[STOP]",
    "don't can't won't I'm you've", "UPPER lower MiXeD", "a", "", "e\u0301 combining vs é", "x[en]y [zh-cn] z",
    "“quotes” and ‘apostrophes’", "[EN] [Stop] [SPACE", "[[en]] [ENG]lish [eng]", "İstanbul I\u0307 ı",
    "a▁b ▁▁ there▁they", "ΣΑΣ ß ẞ ﬁ ǅ", "a\u00a0b\u2003c\u200bd", "weren't_they well-known", "½ ² Ⅷ ①", "한국어",
    "\u0301x", "I\u0323\u0307",
]

# Random texts are made of these: added tokens and parts of them, letters that normalization changes, kinds of space.
PIECES = [
    "[SPACE]", "[en]", "[STOP]", "[UNK]", "[EN]", "[ENG]", "hello", "they", "the", "é", "e\u0301", "日本", "ß", "İ", "I\u0307",
    "ﬁ", "ǅ", "1", "23", "_", "-", "'", "’", "…", "\u200b", "\u00a0", "\t", " ", " ", " ", "  ", "🙂", "Ω", "ы", "x", "fox",
    "a", "Q", "ع", "ก", "\u0301", "½", "²", "▁", "[", "]", "[e", "n]", ".",
]


def characters() -> Tokenizer:
    vocab = {"[PAD]": 0, "[UNK]": 1, "▁": 28}
    vocab |= {c: 2 + i for i, c in enumerate("abcdefghijklmnopqrstuvwxyz")}
    vocab |= {c: 29 + i for i, c in enumerate(".,!?'-")}
    t = Tokenizer(models.BPE(vocab=vocab, merges=[], unk_token="[UNK]"))
    t.normalizer = normalizers.Lowercase()
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    return t


def trained(pre_tokenizer, normalizer, special: list[str]) -> Tokenizer:
    t = Tokenizer(models.BPE(unk_token="[UNK]"))
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizer
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=160, special_tokens=special, show_progress=False))
    return t


def main() -> None:
    random.seed(1)
    texts = SENTENCES + ["".join(random.choice(PIECES) for _ in range(random.randint(1, 14))) for _ in range(300)]
    tokenizers = {
        "characters": characters(),
        "whitespace": trained(
            pre_tokenizers.Whitespace(), normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]),
            ["[STOP]", "[UNK]", "[SPACE]", "[en]", "[zh-cn]", "[ENG]"]),
        "metaspace": trained(
            pre_tokenizers.Metaspace(prepend_scheme="never"), normalizers.Sequence([normalizers.Lowercase(), normalizers.NFD()]),
            ["[PAD]", "[UNK]"]),
    }
    tables = []
    for name, tokenizer in tokenizers.items():
        file = FOLDER / f"{name}.json"
        tokenizer.save(str(file))
        tokenizer = Tokenizer.from_file(str(file))
        cases = [json.dumps({"text": s, "ids": tokenizer.encode(s).ids}, separators=(",", ":")) for s in texts]
        tables.append(json.dumps(name) + ": [\n" + ",\n".join(cases) + "\n]")
    (FOLDER / "tokenizer_parity.json").write_text("{\n" + ",\n".join(tables) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

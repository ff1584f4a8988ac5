"""Writes the tokenizers of the parity test and the ids that the Hugging Face library gives for them.

pip install tokenizers==0.23.3 && python host/data/dataset/testdata/make_tokenizers.py
"""

import json
import random
import unicodedata
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

FOLDER = Path(__file__).parent
EMBEDDED = FOLDER.parents[2] / "ortgraphs/builtin/myxtts-nano/tokenizer.json"

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

PERSIAN = [
    "سلام، حال شما چطور است؟", "من هر روز صبح به کتاب\u200cخانه می\u200cروم.", "او می\u200cگوید که باران می\u200cبارد.",
    "این کتاب را برای شما آورده\u200cام.", "آیا فردا به خانه می\u200cآیید؟", "زبان فارسی شیرین است.", "پنج گربه در حیاط نشسته\u200cاند.",
]

# Forms that keyboards mix up, digits of three kinds, marks, and what no Persian vocabulary has.
PERSIAN_PIECES = [
    *" ".join(PERSIAN).split(), " ", " ", "\u200c", "ي", "ى", "ك", "ی", "ک", "۱۲", "١٢", "12", "آ", "ا\u0653", "ه\u0654", "\u064e", "\u0640",
    "؟", "«", "»", "café", "e\u0301", "日", "🙂", "<0xD9>", "<0x20>", "[UNK]", "\u200d", "\u200f", "ﻻ", "\u00a0",
]

# One text in each of many scripts, with marks, joiners and characters beyond the first plane.
SCRIPTS = [
    "Съешь ещё этих мягких французских булок", "Ґанок, їжак, Європа", "Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία ΣΑΣ", "נוסח עם נִקּוּד",
    "أَهْلًا وَسَهْلًا ١٢٣", "یہ اردو ہے، ٹھیک؟", "هەولێر", "हिन्दी में क्षमा", "ภาษาไทย", "中文，日本語", "한국어", "Tiếng Việt", "Zażółć gęślą jaźń", "İstanbul ığdır",
    "ქართული", "ᲥᲐᲠᲗᲣᲚᲘ", "አማርኛ", "ꮳꮃꭹ", "𞤀𞤣𞤤𞤢𞤥", "👨\u200d👩\u200d👧🏽", "a\u0301\u0323\u0308", "\u0301", "½ ² Ⅷ ﬁ ẞ ǅ", "<0x41> [UNK] [PAD]", "▁a ▁ b",
    "\U0010ffff\ufffd\u2028\u00a0x",
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


def trained(pre_tokenizer, normalizer, special: list[str], corpus: list[str] = CORPUS) -> Tokenizer:
    t = Tokenizer(models.BPE(unk_token="[UNK]"))
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizer
    t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=160, special_tokens=special, show_progress=False))
    return t


def persian() -> Tokenizer:
    """Returns a vocabulary learned from PERSIAN, after the byte tokens, in the order of SentencePiece."""
    t = trained(pre_tokenizers.Metaspace(prepend_scheme="never"), normalizers.NFC(), ["[UNK]"], PERSIAN * 20)
    model = json.loads(t.to_str())["model"]
    tokens = ["[UNK]", *(f"<0x{b:02X}>" for b in range(256)), *sorted(model["vocab"], key=model["vocab"].get)[1:]]
    t.model = models.BPE(
        vocab={token: i for i, token in enumerate(tokens)}, merges=[tuple(m) for m in model["merges"]], unk_token="[UNK]", byte_fallback=True)
    return t


def random_texts(pieces: list[str], n: int) -> list[str]:
    return ["".join(random.choice(pieces) for _ in range(random.randint(1, 14))) for _ in range(n)]


def prepared(text: str) -> str:
    """What the host makes of a text before it is tokenized (docs/data.md): scripts/speak/text.py is tested with these, too."""
    return unicodedata.normalize("NFC", "".join(c for c in text if unicodedata.category(c) != "Cc")).strip()


def any_texts(n: int) -> list[str]:
    """Texts of random characters of Unicode 14: newer ones have no lower case in some programs."""
    assigned = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) not in ("Cc", "Cs", "Cn") and c != "\ufeff"]
    return random_texts([*PERSIAN_PIECES, *random.choices(assigned, k=500)], n)


def main() -> None:
    random.seed(1)
    texts = SENTENCES + random_texts(PIECES, 300)
    persian_texts = PERSIAN + SENTENCES + random_texts(PERSIAN_PIECES, 200)
    tokenizers = {
        "characters": characters(),
        "whitespace": trained(
            pre_tokenizers.Whitespace(), normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]),
            ["[STOP]", "[UNK]", "[SPACE]", "[en]", "[zh-cn]", "[ENG]"]),
        "metaspace": trained(
            pre_tokenizers.Metaspace(prepend_scheme="never"), normalizers.Sequence([normalizers.Lowercase(), normalizers.NFD()]),
            ["[PAD]", "[UNK]"]),
        "persian": persian(),
    }
    tables = []

    def table(name: str, file: Path, texts: list[str]) -> None:
        tokenizer = Tokenizer.from_file(str(file))
        cases = [json.dumps({"text": s, "ids": tokenizer.encode(s).ids}, separators=(",", ":")) for s in texts]
        tables.append(json.dumps(name) + ": [\n" + ",\n".join(cases) + "\n]")

    for name, tokenizer in tokenizers.items():
        file = FOLDER / f"{name}.json"
        tokenizer.save(str(file))
        table(name, file, persian_texts if name == "persian" else texts)
    table("embedded", EMBEDDED, [prepared(s) for s in SCRIPTS + SENTENCES + PERSIAN + any_texts(150)])
    (FOLDER / "tokenizer_parity.json").write_text("{\n" + ",\n".join(tables) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

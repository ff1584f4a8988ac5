"""The tokenizer of the built-in bundles: one token per lower-case character, the space included, and bytes for all other characters."""

import json

# Metaspace's replacement of the space.
SPACE = "\u2581"

CHARACTERS = SPACE + "abcdefghijklmnopqrstuvwxyz0123456789.,!?'\"-:;()/&%$" + "\u2019\u2014éèçñäöüß"
# By UTF-8 byte, as SentencePiece names them.
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
# Letters that would take two or three bytes each: a text in their script has about as many tokens as characters.
ARABIC = (
    "ابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهی" "آأإؤئءةيكى" "ٹڈڑںےھہ" "۰۱۲۳۴۵۶۷۸۹" "٠١٢٣٤٥٦٧٨٩" "،؛؟"
    "\u064b\u064c\u064d\u064e\u064f\u0650\u0651\u0652\u0654\u0670"  # vowel signs, shadda, sukun, hamza
    "\u200c"  # ZWNJ
)
CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюя" "ёіїєґў" "ђјљњћџ"
GREEK = "αβγδεζηθικλμνξοπρσςτυφχψω" "άέήίόύώϊϋΐΰ"
LATIN = "àáâãåæêëìíîïòóôõøùúûý" "“”«»–…¿¡"

# Ids do not change when tokens are added at the end.
ENGLISH = ["[PAD]", "[UNK]", *CHARACTERS]
VOCABULARY = [*ENGLISH, *BYTES, *ARABIC, *CYRILLIC, *GREEK, *LATIN]


def build(vocabulary: list[str] = VOCABULARY) -> str:
    """tokenizer.json. BPE without merges splits into characters; Metaspace keeps spaces, where other pre-tokenizers drop them.

    A character that the vocabulary lacks becomes its bytes, or [UNK] if the vocabulary has no bytes.
    """
    fallback = set(BYTES) <= set(vocabulary)
    spaces = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "never", "split": True}
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": spaces,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, spaces]} if fallback else spaces,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": "[UNK]", "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": fallback, "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(vocabulary)}, "merges": [],
        },
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def encode(text: str) -> list[int]:
    # Only here: a machine that trains and compares (baseline/rerun.py) need not have it.
    from tokenizers import Tokenizer

    return Tokenizer.from_str(build()).encode(text).ids

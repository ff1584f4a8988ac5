"""The tokenizer of the built-in bundles: one token per lower-case character, the space included."""

import json

# Metaspace's stand-in for the space.
SPACE = "\u2581"

CHARACTERS = SPACE + "abcdefghijklmnopqrstuvwxyz0123456789.,!?'\"-:;()/&%$" + "\u2019\u2014éèçñäöüß"
VOCABULARY = ["[PAD]", "[UNK]", *CHARACTERS]


def build() -> str:
    """tokenizer.json. BPE without merges splits into characters; Metaspace keeps spaces, where other pre-tokenizers drop them."""
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "never", "split": True},
        "post_processor": None,
        "decoder": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "never", "split": True},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": "[UNK]", "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(VOCABULARY)}, "merges": [],
        },
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def encode(text: str) -> list[int]:
    # Only here: a machine that trains and compares (baseline/autocast.py) need not have it.
    from tokenizers import Tokenizer

    return Tokenizer.from_str(build()).encode(text).ids

"""What coqui's own code makes of texts. Run by a Python that has coqui-tts; it needs nothing of this package.

    python coqui_text.py clean TEXTS OUT        a JSON list of [language, text] to one of [language, cleaned text], or of the reason why there is none
    python coqui_text.py encode VOCAB TEXTS OUT the same to the ids of coqui's class
    python coqui_text.py train TEXTS OUT        a small vocab.json of the form of XTTS', for tests
"""

import json
import sys
from pathlib import Path


def _cleaned(tokenizer, language: str, text: str) -> list[str] | str:
    language = language.split("-")[0]  # as encode does
    try:
        text = tokenizer.preprocess_text(text, language)
    except Exception as error:  # of a library for one language: num2words has no Hindi
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    return ["zh-cn" if language == "zh" else language, text]


def _train(texts: list) -> str:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer

    cleaned = [_cleaned(VoiceBpeTokenizer(), language, text) for language, text in texts]
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tags = sorted({f"[{language}]" for language, _ in cleaned})
    tokenizer.train_from_iterator([text for _, text in cleaned], trainers.BpeTrainer(vocab_size=700, special_tokens=["[STOP]", "[UNK]", "[SPACE]", *tags]))
    return json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, indent=0) + "\n"


def main(command: str, *files: str) -> None:
    *rest, texts, out = map(Path, files)
    texts = json.loads(texts.read_text(encoding="utf-8"))
    if command == "train":
        out.write_text(_train(texts), encoding="utf-8")
        return
    from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer

    tokenizer = VoiceBpeTokenizer(*rest)
    made = [tokenizer.encode(text, language) if command == "encode" else _cleaned(tokenizer, language, text) for language, text in texts]
    out.write_text(json.dumps(made, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

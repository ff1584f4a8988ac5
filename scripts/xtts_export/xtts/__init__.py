"""XTTS v2 in coqui's sizes and under the names of its checkpoints (docs/xtts-v2.md)."""

# Tables with a row for each token of the text, which get more rows than a checkpoint has if the vocabulary has more tokens.
TEXT_TABLES = ("gpt.text_embedding.weight", "gpt.text_head.weight", "gpt.text_head.bias")

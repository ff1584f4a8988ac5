"""MyXTTS (scripts/xtts_export/model.py) in NumPy, forward only, for one clip. test_speak.py compares it with the host's evaluation."""

import numpy as np

# Sizes.heads and Sizes.frames_per_token of the embedded model: they are not in the shapes of the weights.
HEADS = 2
FRAMES_PER_TOKEN = 5.5

Weights = dict[str, np.ndarray]
Past = dict[str, tuple[np.ndarray, np.ndarray]]  # keys and values of earlier frames, by attention


class Model:
    def __init__(self, weights: Weights):
        self.weights = weights
        self.n_mels, self.width = weights["mel_head.weight"].shape

    def text(self, ids: list[int]) -> np.ndarray:
        """f32[T_text, width]: the memory that the decoder attends to."""
        position = _sinusoids(len(ids), self.width, FRAMES_PER_TOKEN)
        x = self.weights["text_encoder.embedding.weight"][ids] + position
        for i in range(self._count("text_encoder")):
            x = self._block(f"text_encoder.blocks.{i}", x, 0.0)
        return self._norm("text_encoder.norm", x) + position

    def voice(self, mel: np.ndarray) -> np.ndarray:
        """f32[width]: the speaker of a reference."""
        frames = _silu(self._linear("speaker_encoder.frame_out", _silu(self._linear("speaker_encoder.frame_in", mel))))
        return self._linear("speaker_encoder.out", frames.mean(0))

    def decode(self, previous: np.ndarray, voice: np.ndarray, memory: np.ndarray, past: Past | None = None) -> tuple[np.ndarray, np.ndarray]:
        """From f32[T, n_mels], where frame t is the one before it: the predicted frames, and f32[T] logits of the last frame.

        past, empty at first, keeps what later calls need, so that they get only the frames that follow.
        """
        past = {} if past is None else past
        start = past["decoder.blocks.0.attention"][0].shape[1] if past else 0
        time = start + len(previous)
        x = self._linear("decoder.prenet_out", _silu(self._linear("decoder.prenet_in", previous)))
        x = x + _sinusoids(time, self.width, 1.0)[start:] + voice
        causal = np.where(np.tri(len(previous), time, start, dtype=bool), 0.0, -1e9).astype(np.float32)
        for i in range(self._count("decoder")):
            x = self._block(f"decoder.blocks.{i}", x, causal, memory, past)
        x = self._norm("decoder.norm", x)
        return self._linear("mel_head", x), self._linear("stop_head", x)[:, 0]

    def _count(self, part: str) -> int:
        return len({name.split(".")[2] for name in self.weights if name.startswith(f"{part}.blocks.")})

    def _linear(self, name: str, x: np.ndarray) -> np.ndarray:
        y = x @ self.weights[f"{name}.weight"].T
        return y + self.weights[f"{name}.bias"] if f"{name}.bias" in self.weights else y

    def _norm(self, name: str, x: np.ndarray) -> np.ndarray:
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def _attention(self, name: str, x: np.ndarray, memory: np.ndarray, mask: np.ndarray | float, past: Past | None = None) -> np.ndarray:
        split = lambda part, m: self._linear(f"{name}.{part}", m).reshape(len(m), HEADS, -1).transpose(1, 0, 2)
        query, key, value = split("query", x), split("key", memory), split("value", memory)
        if past is not None:
            if name in past:
                key, value = (np.concatenate(pair, 1) for pair in zip(past[name], (key, value)))
            past[name] = key, value
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[2]).astype(np.float32) + mask
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return self._linear(f"{name}.out", (shares @ value).transpose(1, 0, 2).reshape(x.shape))

    def _block(self, name: str, x: np.ndarray, mask: np.ndarray | float, memory: np.ndarray | None = None,
               past: Past | None = None) -> np.ndarray:
        y = self._norm(f"{name}.attention_norm", x)
        x = x + self._attention(f"{name}.attention", y, y, mask, past)
        if memory is not None:
            x = x + self._attention(f"{name}.cross", self._norm(f"{name}.cross_norm", x), memory, 0.0)
        return x + self._linear(f"{name}.feed_out", _silu(self._linear(f"{name}.feed_in", self._norm(f"{name}.feed_norm", x))))


def _silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def _sinusoids(size: int, width: int, rate: float) -> np.ndarray:
    at = np.arange(size)[:, None] * rate
    angle = at * np.exp(np.arange(width // 2) * (-np.log(10000.0) / (width // 2)))
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1).astype(np.float32)

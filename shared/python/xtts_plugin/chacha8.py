"""The generator of a row: ChaCha8 as in c2sp.org/chacha8rand, with the bits of Go's math/rand/v2.ChaCha8.

A chunk of the generator is four blocks of ChaCha, which differ in the counter: 32 words of 64 bits. Four chunks have the
counters 0, 4, 8 and 12; the last four words of the fourth are the seed of the next four.

The blocks of many chunks are computed at once, within four large integers: one for each row of ChaCha's 4 x 4 state. It
holds the columns, one after the other, and in a column a lane of 64 bits for each block, whose low half is the word.
NumPy takes longer for each of some 300 operations than Python for integers of this size.
"""
from functools import lru_cache

import numpy as np

CHUNK = 32  # words of 64 bits
_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_LOW = 0xFFFFFFFF


@lru_cache(maxsize=64)
def _frame(lanes):
    """The mask of the words of a row, the bits of a column, their mask, and the row of constants, for so many lanes."""
    ones = int.from_bytes(b"\1\0\0\0\0\0\0\0" * lanes, "little")  # in each lane
    bits = 64 * lanes
    mask = sum((ones * _LOW) << (bits * k) for k in range(4))
    return mask, bits, (1 << bits) - 1, sum((ones * c) << (bits * k) for k, c in enumerate(_CONSTANTS))


def _rounds(key0, key1, counters, lanes):
    """The four rows after eight rounds, with the key added to the second and the third."""
    mask, w, column, a = _frame(lanes)
    b, c, d, w2, w3 = key0, key1, counters, 2 * w, 3 * w
    two, three = (1 << w2) - 1, (1 << w3) - 1
    for _ in range(4):
        for turned in (False, True):  # columns, then diagonals
            if turned:
                b = b >> w | (b & column) << w3
                c = c >> w2 | (c & two) << w2
                d = d >> w3 | (d & three) << w
            a = a + b & mask
            d ^= a
            d = (d << 16 | d >> 16) & mask
            c = c + d & mask
            b ^= c
            b = (b << 12 | b >> 20) & mask
            a = a + b & mask
            d ^= a
            d = (d << 8 | d >> 24) & mask
            c = c + d & mask
            b ^= c
            b = (b << 7 | b >> 25) & mask
        b = b >> w3 | (b & three) << w
        c = c >> w2 | (c & two) << w2
        d = d >> w | (d & column) << w3
    return a, b + key0 & mask, c + key1 & mask, d


def chunks(seeds, counters):
    """The chunks of n seeds: u32[n, 8] and u64[n] give u64[n, 32]."""
    n = len(seeds)
    lanes = 4 * n
    words = np.repeat(seeds.T.astype("<u8"), 4, axis=1)
    first = (counters.astype("<u8")[:, None] + np.arange(4, dtype="<u8")).tobytes()
    rows = _rounds(int.from_bytes(words[:4].tobytes(), "little"), int.from_bytes(words[4:].tobytes(), "little"),
                   int.from_bytes(first, "little"), lanes)
    state = np.frombuffer(b"".join(row.to_bytes(32 * lanes, "little") for row in rows), "<u8")
    return state.reshape(16, n, 4).transpose(1, 0, 2).astype("<u4").reshape(n, 64).view("<u8")


def _next_seeds(seed, n):
    """The seeds of the n groups of four chunks after the group of this seed: u32[n, 8]."""
    repeat, out = 1 | 1 << 64 | 1 << 128 | 1 << 192, np.empty((n, 8), "<u4")
    words = seed.tolist()
    for i in range(n):
        key0, key1 = (sum(words[at + k] * repeat << 256 * k for k in range(4)) for at in (0, 4))
        last = _rounds(key0, key1, 12 | 13 << 64 | 14 << 128 | 15 << 192, 4)[3] >> 512
        words = [last >> 64 * k & _LOW for k in range(8)]
        out[i] = words
    return out


def seeds_of(keys):
    """The seeds of row keys of 16 bytes each, one after the other: the key and 16 zero bytes."""
    key = np.frombuffer(keys, "<u4").reshape(-1, 4)
    return np.concatenate([key, np.zeros_like(key)], axis=1)


class Words:
    """The words of one seed, in order."""

    def __init__(self, seed, first=None):
        self._seed, self._counter, self._end = seed, 0, CHUNK
        self._chunk = chunks(seed[None], np.zeros(1, "<u8"))[0] if first is None else first
        self._list, self._at = None, 0

    def next(self):
        """One word, an int."""
        if self._at == self._end:
            self._refill()
        if self._list is None:
            self._list = self._chunk.tolist()
        self._at += 1
        return self._list[self._at - 1]

    def take(self, n):
        """The next n words: u64[n]."""
        parts, missing = [], n
        while missing > 0:
            if self._at == self._end:
                groups = min(missing // 124, 512)
                if self._counter == 12 and groups > 1:
                    parts.append(self._groups(groups))
                    missing -= 124 * groups
                    continue
                self._refill()
            part = self._chunk[self._at:min(self._end, self._at + missing)]
            self._at += len(part)
            missing -= len(part)
            parts.append(part)
        return np.concatenate(parts) if parts else np.empty(0, "<u8")

    def _refill(self):
        self._counter += 4
        if self._counter == 16:
            self._seed, self._counter = self._chunk[-4:].view("<u4"), 0
        self._chunk = chunks(self._seed[None], np.array([self._counter], "<u8"))[0]
        self._list, self._at, self._end = None, 0, CHUNK - 4 if self._counter == 12 else CHUNK

    def _groups(self, n):
        """All words of the next n groups of four chunks, where a group begins."""
        seeds = _next_seeds(self._seed, n)
        all_chunks = chunks(np.repeat(seeds, 4, axis=0), np.tile(np.arange(0, 16, 4, dtype="<u8"), n))
        self._seed, self._chunk, self._list = seeds[-1], all_chunks[-1], None
        self._at = self._end = CHUNK - 4
        return all_chunks.reshape(n, 4 * CHUNK)[:, :-4].reshape(-1)

"""The random numbers of a row, with the bits that Go's SDK gives for the same key on amd64.

Elsewhere, and for GOAMD64=v3, Go's compiler joins a product and a sum into one operation, which rounds once: words,
integers, chances and permutations are the same there, and other floats may differ.

    Python                  Go, of r := b.Rand(row)
    bits64()                r.Uint64()
    uniform(low, high)      low + (high-low)*r.Float64()
    chance(p)               r.Float64() < p
    normal(mean, std)       mean + std*r.NormFloat64()
    ints(n)                 r.IntN(n)
    ints(low, high)         low + r.IntN(high-low)
    choice(x)               x[r.IntN(len(x))]
    permutation(n)          r.Perm(n)

An array holds the numbers that as many calls give, in order.
"""
import math
import operator

import numpy as np

from .chacha8 import Words, seeds_of

_R = 3.442619855899  # where the tail begins


def _ziggurat():
    """The tables of Marsaglia and Tsang, "The Ziggurat Method for Generating Random Variables" (2000), for 128 strips."""
    area, m = 9.91256303526217e-3, 2.0**31
    inside, width, height = [0] * 128, [0.0] * 128, [0.0] * 128
    x = before = _R
    base = area / math.exp(-0.5 * x * x)
    inside[0], width[0], height[0] = int(x / base * m), base / m, 1.0
    width[127], height[127] = x / m, math.exp(-0.5 * x * x)
    for i in range(126, 0, -1):
        x = math.sqrt(-2 * math.log(area / x + math.exp(-0.5 * x * x)))
        inside[i + 1], before = int(x / before * m), x
        width[i], height[i] = x / m, math.exp(-0.5 * x * x)
    return np.array(inside, "u4"), np.array(width, "f4"), np.array(height, "f4")


_INSIDE, _WIDTH, _HEIGHT = _ziggurat()
_INSIDE_LIST, _WIDTH64 = _INSIDE.tolist(), _WIDTH.astype("f8")
_WIDTH_LIST = _WIDTH64.tolist()


def _log(x):
    """Go's math.Log for 0 < x < 1: the C library may differ from it in the last bit. log(0) is -inf."""
    if x == 0:
        return -math.inf
    f, k = math.frexp(x)
    if f < math.sqrt(2) / 2:
        f, k = 2 * f, k - 1
    f -= 1
    s = f / (2 + f)
    s2 = s * s
    s4 = s2 * s2
    t1 = s2 * (6.666666666666735130e-01 + s4 * (2.857142874366239149e-01 + s4 * (
        1.818357216161805012e-01 + s4 * 1.479819860511658591e-01)))
    t2 = s4 * (3.999999999940941908e-01 + s4 * (2.222219843214978396e-01 + s4 * 1.531383769920937332e-01))
    half = 0.5 * f * f
    low = s * (half + (t1 + t2)) + k * 1.90821492927058770002e-10
    return k * 6.93147180369123816490e-01 - ((half - low) - f)


class Draws:
    """The generator of one row. All draws of a row in one call of process continue one sequence."""

    def __init__(self, key, words=None):
        """key: the row's key. words: the generator, if the caller has it already."""
        self._words = words or Words(seeds_of(key)[0])

    def bits64(self):
        """A word of 64 random bits."""
        return self._words.next()

    def uniform(self, low=0.0, high=1.0, size=None):
        """A float in [low, high), or an f64 array of this size."""
        if size is None:
            return low + (high - low) * self._float()
        words = self._words.take(_count(size)) & np.uint64((1 << 53) - 1)
        return (low + (high - low) * (words.astype("f8") * 2.0**-53)).reshape(size)

    def chance(self, p):
        """True with probability p."""
        return self._float() < p

    def normal(self, mean=0.0, std=1.0, size=None):
        """A float of the normal distribution, or an f64 array of this size."""
        if size is None:
            return mean + std * self._normal()
        return (mean + std * self._normals(_count(size))).reshape(size)

    def ints(self, low, high=None, size=None):
        """An int in [0, low) or [low, high), or an i64 array of this size."""
        low, n = (0, low) if high is None else (low, high - low)
        if n <= 0:
            raise ValueError(f"there is no integer in [{low}, {low + n})")
        if size is None:
            return low + self._below(n)
        return np.array([low + self._below(n) for _ in range(_count(size))], "i8").reshape(size)

    def choice(self, options):
        """One of the options, each with the same probability."""
        return options[self.ints(len(options))]

    def permutation(self, n):
        """The integers below n in random order, a list."""
        order = list(range(n))
        for i in range(n - 1, 0, -1):
            j = self._below(i + 1)
            order[i], order[j] = order[j], order[i]
        return order

    def generator(self):
        """A NumPy generator, seeded with the next two words: faster for large arrays. Go's SDK has no such numbers."""
        return np.random.Generator(np.random.Philox(key=self.bits64() | self.bits64() << 64))

    def _float(self):
        return (self._words.next() & (1 << 53) - 1) * 2.0**-53

    def _below(self, n):
        if n & (n - 1) == 0:
            return self._words.next() & (n - 1)
        product = self._words.next() * n
        if product & (1 << 64) - 1 < n:
            threshold = (1 << 64) % n
            while product & (1 << 64) - 1 < threshold:
                product = self._words.next() * n
        return product >> 64

    def _normal(self):
        while True:
            word = self._words.next()
            x = self._from(word, self._words.next)
            if x is not None:
                return x

    @staticmethod
    def _from(word, more):
        """The normal number that a word gives, or None where it is refused. more gives further words."""
        j, i = word & 0xFFFFFFFF, word >> 32 & 0x7F
        if j >= 1 << 31:
            j -= 1 << 32
        x = j * _WIDTH_LIST[i]
        if abs(j) < _INSIDE_LIST[i]:
            return x
        if i == 0:
            while True:
                x = -_log((more() & (1 << 53) - 1) * 2.0**-53) * (1.0 / _R)
                y = -_log((more() & (1 << 53) - 1) * 2.0**-53)
                if y + y >= x * x:
                    return _R + x if j > 0 else -_R - x
        # Go's Exp and that of the C library may differ in the last bit of an f64. That is safe: it changes the f32 only
        # next to the middle of two of them, for one in 2^28, and the comparison only if the left side is one of the two,
        # for one in about 2^16. Of the normal numbers one in 80 comes here: fewer than one in 10^14 could differ.
        u = np.float32((more() & (1 << 53) - 1) * 2.0**-53)
        if _HEIGHT[i] + u * (_HEIGHT[i - 1] - _HEIGHT[i]) < np.float32(math.exp(-0.5 * x * x)):
            return x
        return None

    def _normals(self, n):
        """n normal numbers. Most words give one at once; only the others are looked at one by one."""
        out, filled = np.empty(n), 0
        while filled < n:
            words = self._words.take(n - filled)
            j, i = words.astype("u4").view("i4"), (words >> np.uint64(32) & np.uint64(0x7F)).astype("i8")
            x = j * _WIDTH64[i]
            refused = np.flatnonzero(np.abs(j.astype("i8")) >= _INSIDE[i])
            at, source = 0, _Source(words, self._words)
            for place in refused.tolist():
                if place < at:
                    continue  # it was one of the further words of another
                out[filled:filled + place - at] = x[at:place]
                filled += place - at
                source.at = place + 1
                number = self._from(int(words[place]), source.next)
                at = source.at
                if number is not None:
                    out[filled] = number
                    filled += 1
            rest = x[at:]
            out[filled:filled + len(rest)] = rest
            filled += len(rest)
        return out


class _Source:
    """Words that were taken, and after them those of the generator."""

    def __init__(self, taken, after):
        self._taken, self._after, self.at = taken, after, 0

    def next(self):
        self.at += 1
        return int(self._taken[self.at - 1]) if self.at <= len(self._taken) else self._after.next()


def _count(size):
    if isinstance(size, tuple):
        return math.prod(map(operator.index, size))
    return operator.index(size)

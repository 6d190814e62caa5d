"""The trainer's random numbers (nn/random/philox.h) and what it draws by them:
the order of an epoch, generated samples, begins of windows, dropped elements.

    philox.epoch_order(size=100, seed=1, epoch=0)      # a list of numbers
    philox.dropped(seed=1, step=3, position=7, path="4", elements=12, p=0.5)

A draw is keyed by (seed, purpose) and numbered by (step, position, path), so
that both sides get the same ones (docs/determinism.md).
"""

import math

import numpy as np

SHUFFLE, DATA, DROPOUT = 2, 3, 5  # purposes, nn/random/philox.h
MASK32 = 0xffffffff


def words(block, step, position, path, key):
    """Philox4x32-10 (Salmon et al. 2011) of an array of block numbers: u32 in
    rows of four."""
    x = [np.asarray(c, np.uint64) for c in np.broadcast_arrays(
        block, step, position, path)]
    low, shift = np.uint64(MASK32), np.uint64(32)
    k0, k1 = key
    for _ in range(10):
        a = x[0] * np.uint64(0xD2511F53)
        b = x[2] * np.uint64(0xCD9E8D57)
        x = [(b >> shift) ^ x[1] ^ np.uint64(k0), b & low,
             (a >> shift) ^ x[3] ^ np.uint64(k1), a & low]
        k0, k1 = (k0 + 0x9E3779B9) & MASK32, (k1 + 0xBB67AE85) & MASK32
    return np.stack(x, -1)


def key_of(seed, purpose):
    """The key of all draws of a seed for one purpose."""
    x = words(np.array([seed & MASK32]), seed >> 32, purpose, 0x54726f75,
              (0x7065, 0x6b657973))
    return int(x[0][0]), int(x[0][1])


def hash_of(name):
    """FNV-1a of a name, the `path` of its draws."""
    value = 2166136261
    for byte in name.encode():
        value = ((value ^ byte) * 16777619) & MASK32
    return value


class Stream:
    """Integers drawn one after another, as nn::RandomStream draws them."""

    BLOCKS = 64  # blocks that are computed at once

    def __init__(self, key, step=0, position=0, path=0):
        self._at = (step, position, path, key)
        self._block, self._rest = 0, []

    def _bits32(self):
        if not self._rest:
            block = np.arange(self._block, self._block + self.BLOCKS)
            self._rest = words(block, *self._at).reshape(-1)[::-1].tolist()
            self._block += self.BLOCKS
        return self._rest.pop()

    def below(self, bound):
        """A number in [0, bound)."""
        limit = 2 ** 64 - 1 - 2 ** 64 % bound
        while True:
            high = self._bits32()
            draw = (high << 32) | self._bits32()
            if draw <= limit:
                return draw % bound

    def unit(self):
        """A number in [0, 1), f64."""
        high = self._bits32()
        return (((high << 32) | self._bits32()) >> 11) * 2.0 ** -53


def shuffle(order, stream):
    """Fisher-Yates, in place."""
    for n in range(len(order), 1, -1):
        j = stream.below(n)
        order[n - 1], order[j] = order[j], order[n - 1]


def epoch_order(size, seed, epoch):
    """The order of the samples of an epoch."""
    stream = Stream(key_of(seed, SHUFFLE), step=epoch,
                    path=hash_of("data.epoch_order"))
    order = list(range(size))
    shuffle(order, stream)
    return order


def window_begin(tokens, context, seed, epoch, sample):
    """The first token of a random window."""
    stream = Stream(key_of(seed, DATA), step=epoch, position=sample,
                    path=hash_of("data.token_windows"))
    return stream.below(tokens - context)


def normals(count, seed, position, name):
    """Normal numbers of generated data, f64 [count]."""
    x = words(np.arange(count), 0, position, hash_of(name),
              key_of(seed, DATA)).tolist()

    def unit(high, low):
        return (((high << 32) | low) >> 11) * 2.0 ** -53

    return np.array([
        math.sqrt(-2.0 * math.log(1.0 - unit(a, b))) *
        math.cos(6.283185307179586 * unit(c, d)) for a, b, c, d in x])


def dropped(seed, step, position, path, elements, p):
    """Which elements of a sample a dropout layer drops, bool [elements]."""
    x = words(np.arange((elements + 3) // 4), step, position, hash_of(path),
              key_of(seed, DROPOUT))
    return x.reshape(-1)[:elements] < int(math.ldexp(p, 32))

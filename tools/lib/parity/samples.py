"""The samples of a case, for both sides: files or keys of the configuration for
the trainer, tensors for PyTorch.

    samples = Samples(case, folder)     # writes the files of "tokens"
    samples.part                        # what is trained on
    samples.train(epoch=0, sample=3)    # (x, y) of the fourth of these
    samples.test(sample=0), samples.test_count

There are two kinds of data: "synthetic", vectors or images with classes or
numbers as targets, and "tokens". tests/data tests the readers of other formats.
"""

import math
import os

import numpy as np
import torch

from parity import philox
from parity.batches import balanced, training_part
from parity.losses import PADDING


def is_classification(data):
    """Whether the targets of the section [data] are classes, or tokens."""
    return data["kind"] == "tokens" or data["num_classes"] > 0


class Samples:

    def __init__(self, case, folder):
        data = dict(case["config"]["data"])
        self._data, self.part = data, training_part(case)
        self._windows = data.get("window") == "random"
        if data["kind"] == "tokens":
            path = os.path.join(folder, "data")
            self._write_tokens(path)
            data["path"] = path
        else:
            self._train = synthetic(data, data["train_count"], "train")
            self._test = (synthetic(data, data["test_count"], "test")
                          if "test_count" in data else tuple(
                              part[self.part.held] for part in self._train))
        self.test_count = len(self._test[0])
        if data.get("balance_classes"):
            self.part.weights = balanced(
                self._train[1][self.part.left].tolist())
        if "sample_weights" in data:
            path = os.path.join(folder, "weights.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.writelines("%r\n" % w for w in data["sample_weights"])
            data["sample_weights"] = path
        self.config = {key: data[key] for key in data
                       if data["kind"] == "synthetic"
                       or key not in ("train_count", "test_count")}

    def _write_tokens(self, path):
        """Writes as many tokens as make train_count and test_count windows; the
        last window of the test is cut short."""
        data, context = self._data, self._data["context"]
        rng = np.random.default_rng(data["seed"])

        def tokens(targets):
            return rng.integers(0, data["vocab_size"], targets + 1)

        self._tokens = tokens(data["train_count"] * context
                              + int(rng.integers(0, context)))
        test = tokens((data["test_count"] - 1) * context
                      + int(rng.integers(1, context + 1)))
        os.makedirs(path)
        for name, values in (("train", self._tokens), ("val", test)):
            values.astype("<u2").tofile(os.path.join(path, name + ".bin"))
        self._train = windows(self._tokens, data["train_count"], context)
        self._test = windows(test, data["test_count"], context)

    def train(self, epoch, sample):
        sample = self.part.left[sample]
        if not self._windows:
            return self._train[0][sample], self._train[1][sample]
        context = self._data["context"]
        begin = philox.window_begin(len(self._tokens), context,
                                    self._data["seed"], epoch, sample)
        window = torch.from_numpy(self._tokens[begin:begin + context + 1])
        return window[:-1], window[1:]

    def test(self, sample):
        return self._test[0][sample], self._test[1][sample]


def windows(tokens, count, context):
    """Windows one behind the other: x and y i64 [count, context]."""
    x = np.zeros((count, context), np.int64)
    y = np.full((count, context), PADDING, np.int64)
    for i in range(count):
        window = tokens[i * context:(i + 1) * context + 1]
        x[i, :len(window) - 1], y[i, :len(window) - 1] = window[:-1], window[1:]
    return torch.from_numpy(x), torch.from_numpy(y)


def synthetic(data, count, part):
    """What data/synthetic/synthetic.cc generates: x f32 [count, *input_shape]; y i64
    [count], or f32 [count, target_dim], from a random linear map."""
    shape, classes = data["input_shape"], data["num_classes"]
    width, seed = math.prod(shape), data["seed"]
    x = np.stack([philox.normals(width, seed, i, "data.synthetic." + part)
                  for i in range(count)]).astype(np.float32)
    inputs, outputs = min(width, 64), classes or data["target_dim"]
    teacher = philox.normals(inputs * outputs, seed, 0,
                             "data.synthetic.teacher")
    teacher = (1.0 / math.sqrt(inputs) * teacher).astype(np.float32)
    teacher = teacher.reshape(outputs, inputs).astype(np.float64)
    score = np.zeros((count, outputs))
    for i in range(inputs):  # in this order
        score = score + teacher[:, i] * x[:, i:i + 1].astype(np.float64)
    score = score.astype(np.float32)
    y = score.argmax(1).astype(np.int64) if classes else score
    return torch.from_numpy(x.reshape(count, *shape)), torch.from_numpy(y)

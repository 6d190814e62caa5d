"""Draws networks of model.layers.

    layers = draw_layers(rng, sample_shape=[9, 9, 3], outputs=4)
    # ["conv 6 3 stride=2", "batchnorm", "relu", "flatten", "linear 4"]

They may not fit together: Network() tells, and the next draw is taken.
"""

IMAGE_ELEMENTS_MAX = 150  # features of the first linear layer behind a flatten


class LayerDraw:
    """The layers drawn so far, and the features and axes behind them."""

    def __init__(self, rng, shape, tokens):
        self._rng, self._skips = rng, 0
        self.layers, self.width = [], shape[-1]
        self.rank = 3 if tokens else len(shape) + 1
        self._normed = rng.random() < 0.6
        self._dropped = rng.random() < 0.3

    def add(self, text, *options):
        self.layers.append(" ".join([text, *options]))

    def bias(self):
        return self._rng.choice([[], [], ["bias=0"], ["bias=1"]])

    def linear(self, width):
        self.width = width
        self.add("linear %d" % width, *self.bias())

    def activation(self):
        self.add(self._rng.choice([
            "relu", "relu", "leakyrelu", "leakyrelu slope=0",
            "leakyrelu slope=0.2", "gelu", "gelu tanh=1", "silu", "sigmoid",
            "tanh"]))

    def maybe_norm(self, share):
        """Norms over few features leave little of them: none of these."""
        if not self._normed or self._rng.random() >= share:
            return
        kinds = ["batchnorm", "batchnorm"]
        kinds += ["layernorm"] * (self.width > 2)
        kinds += ["rmsnorm"] * (self.width > 1)
        kinds += ["groupnorm %d" % n for n in range(1, self.width + 1)
                  if self.width % n == 0
                  and (self.rank > 2 or self.width // n > 2)][-2:]
        self.add(self._rng.choice(kinds))

    def maybe_dropout(self):
        if self._dropped and self._rng.random() < 0.5:
            self.add("dropout %g" % self._rng.choice([0.1, 0.25, 0.5]))

    def skip(self, layer, adds):
        """Adds the output of `layer`, which must keep the width if `adds`, to
        its input, or puts it behind that."""
        number, before = self._skips, self.width
        self._skips += 1
        self.add("stash %d" % number)
        layer()
        self.maybe_norm(0.4)
        self.activation()
        if adds:
            self.add("popadd %d" % number)
        else:
            self.add("popconcat %d" % number)
            self.width += before

    def conv(self):
        rng = self._rng
        groups = rng.choice([n for n in range(1, self.width + 1)
                             if self.width % n == 0])
        self.width = groups * rng.randint(1, max(1, 6 // groups))
        options = {"stride": rng.randint(1, 2), "pad": rng.randint(0, 1),
                   "dilation": rng.choice([1, 1, 1, 2]), "groups": groups}
        self.add("conv %d %d" % (self.width, rng.randint(1, 3)),
                 *("%s=%d" % option for option in options.items()),
                 *self.bias())

    def same_conv(self, width):
        self.width = width
        self.add("conv %d 3 pad=1" % width, *self.bias())

    def conv_transpose(self):
        rng = self._rng
        self.width = rng.randint(1, 4)
        self.add("convtranspose %d %d stride=%d pad=%d" % (
            self.width, rng.randint(1, 3), rng.randint(1, 2),
            rng.randint(0, 1)), *self.bias())

    def pool(self):
        rng, size = self._rng, self._rng.randint(2, 3)
        self.add("%s %d stride=%d pad=%d" % (
            rng.choice(["maxpool", "avgpool"]), size, rng.randint(1, 3),
            rng.randint(0, size // 2)))

    def image_block(self):
        rng = self._rng
        kind = rng.choice(["conv", "conv", "conv", "convtranspose", "pool",
                           "add", "concat", "linear"])
        if kind in ("add", "concat"):
            width = self.width if kind == "add" else rng.randint(1, 4)
            self.skip(lambda: self.same_conv(width), kind == "add")
        else:
            {"conv": self.conv, "convtranspose": self.conv_transpose,
             "pool": self.pool,
             "linear": lambda: self.linear(rng.randint(2, 5))}[kind]()
        self.maybe_norm(0.7)
        if rng.random() < 0.8:
            self.activation()
        self.maybe_dropout()

    def vector_block(self, widths):
        rng = self._rng
        if rng.random() < 0.3:
            self.skip(lambda: self.linear(self.width), rng.random() < 0.5)
        else:
            self.linear(rng.choice(widths))
            self.maybe_norm(0.6)
            self.activation()
        self.maybe_dropout()

    def flatten(self, features_of):
        """`features_of`: layers -> features behind a flatten."""
        size = self._rng.randint(1, 3)
        if (self._rng.random() < 0.4
                or features_of(self.layers) > IMAGE_ELEMENTS_MAX):
            self.add("adaptiveavgpool %d" % size)
        self.add("flatten")
        self.width, self.rank = features_of(self.layers[:-1]), 2


def draw_layers(rng, shape, outputs, vocabulary, features_of):
    """The texts of layers from samples of `shape` to `outputs`. `vocabulary` is 0
    unless samples are tokens."""
    draw = LayerDraw(rng, shape, bool(vocabulary))
    if vocabulary:
        draw.width = rng.choice([3, 4, 6, 8])
        draw.add("embedding %d %d" % (vocabulary, draw.width))
        for _ in range(rng.randint(0, 3)):
            draw.vector_block([3, 5, 8])
    else:
        if len(shape) == 3:
            for _ in range(rng.randint(1, 3)):
                draw.image_block()
            draw.flatten(features_of)
        for _ in range(rng.randint(0, 2)):
            draw.vector_block([4, 7, 12])
    draw.linear(outputs)
    return draw.layers

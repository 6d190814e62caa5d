"""Draws an expression by its seed, step by step, evaluated by PyTorch as it is
drawn.

    program = draw_program(17)
    program.text()          # what tools/golden/expression.h reads
    program.inputs          # {"x0": (tensor, whether it gets a gradient)}
    program.values          # {"v1": tensor}, of all steps
    program.gradients       # {"x0": tensor}

A step is taken only if its values are finite and not large, and far from kinks
and ties (expression_drawers.py): otherwise a rounding could change the result.
For the same reason a draw whose gradients are large is drawn again.
"""

import random

import torch

# The last two fill DRAWERS.
from expression_drawers import DRAWERS, Unfit, broadcasts, fit
import expression_layouts  # pylint: disable=unused-import
import expression_numbers  # pylint: disable=unused-import
from expression_torch import apply

STEPS = (15, 25)  # number of steps that are drawn, before those of the sum
EXTENTS = (1, 2, 2, 3, 3, 5)
# The extents of some draws, with which vector loops have whole vectors and tails,
# and their share.
WIDE_EXTENTS = (1, 4, 7, 16, 17, 33)
WIDE_SHARE = 0.1
# Ops that are drawn more often than others, so that values mix.
OFTEN = ["+", "-", "*", "*", "/", "Exp", "MatMul", "Einsum", "Softmax", "Tanh"]
NUMEL_MAX = 256  # elements of a value
WIDE_NUMEL_MAX = 4096
RANK_MAX = 6  # axes of a tensor (nn/tensor/shape.h)
VALUE_MAX = 300.0
GRADIENT_MAX = 3000.0


class Step:
    def __init__(self, outputs, op, operands, attributes):
        self.outputs, self.op = outputs, op
        self.operands, self.attributes = operands, attributes

    def __str__(self):
        words = [each if isinstance(each, str) else repr(each)
                 for each in self.operands]
        words += ["%s=%s" % (name, as_text(value))
                  for name, value in self.attributes.items()]
        return " ".join([*self.outputs, "=", self.op, *words])


def as_text(value):
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (tuple, list)):
        return ",".join(as_text(each) for each in value)
    return str(value)


class Program:
    """A draw: what both sides compute, and PyTorch's results in f64."""

    def __init__(self, seed):
        self.seed = seed
        self.steps, self.inputs = [], {}
        self.values, self.gradients, self.root = {}, {}, ""

    def text(self):
        lines = ["expression %d" % self.seed]
        lines += ["%s = %s" % (name, "input" if trained else "constant")
                  for name, (_, trained) in self.inputs.items()]
        lines += [str(step) for step in self.steps]
        return "\n".join(lines + ["backward " + self.root, ""])


class Draw:
    """A program in the making. Values are named x (inputs with a gradient), c
    (constants) and v (results of steps)."""

    def __init__(self, seed, attempt):
        # A text is hashed, so seeds beside each other have nothing in common.
        self.random = random.Random("%d/%d" % (seed, attempt))
        self.program = Program(seed)
        self.values = {}
        self.losses, self.masks, self._used = set(), set(), set()
        wide = self.chance(WIDE_SHARE)
        self._numel_max = WIDE_NUMEL_MAX if wide else NUMEL_MAX
        self._extents = [self.random.choice(WIDE_EXTENTS if wide else EXTENTS)
                         for _ in range(3)]
        if self.chance(0.1):
            self._extents.append(0)

    # --- chance --------------------------------------------------------------

    def chance(self, probability):
        return self.random.random() < probability

    def choice(self, options):
        if not options:
            raise Unfit
        return self.random.choice(options)

    def integer(self, low, high):
        """From low to high, both included."""
        if low > high:
            raise Unfit
        return self.random.randint(low, high)

    def number(self, low=-2.0, high=2.0):
        """A multiple of 1/64."""
        return round(self.random.uniform(low, high) * 64) / 64

    def extent(self):
        return self.choice(self._extents)

    def shape(self, low=0, high=4):
        return tuple(self.extent() for _ in range(self.integer(low, high)))

    def axis(self, x):
        """An axis of x, counted from either end."""
        return self.integer(-x.dim(), x.dim() - 1)

    def axes(self, x, least=0):
        """Some axes of x, in any order, counted from either end."""
        chosen = self.random.sample(range(x.dim()),
                                    self.integer(least, x.dim()))
        return tuple(axis - x.dim() if self.chance(0.5) else axis
                     for axis in chosen)

    # --- values --------------------------------------------------------------

    def __getitem__(self, name):
        return self.values[name]

    def add_input(self, shape, kind="normal", bound=1, trained=True):
        """Draws an input, and returns its name. `kind`: "normal", "positive",
        "probability", "mask", or "index", from 0 to below `bound`."""
        draw = {
            "normal": lambda: self.random.gauss(0, 1),
            "positive": lambda: self.random.uniform(0.3, 2),
            "probability": lambda: self.random.uniform(0.05, 0.95),
            "mask": lambda: float(self.random.getrandbits(1)),
            "index": lambda: self.random.randrange(bound),
        }[kind]
        count = 1
        for extent in shape:
            count *= extent
        if count > self._numel_max or len(shape) > RANK_MAX or (
                kind == "index" and count and bound < 1):
            raise Unfit
        numbers = [draw() for _ in range(count)]
        if kind == "index":
            tensor = torch.tensor(numbers, dtype=torch.int64)
        else:
            # Numbers of f32, so that the devices have the same.
            tensor = torch.tensor(numbers, dtype=torch.float32).double()
        trained = trained and kind in ("normal", "positive")
        name = "%s%d" % ("x" if trained else "c", len(self.program.inputs))
        tensor = tensor.reshape(shape)
        self.program.inputs[name] = (tensor, trained)
        self.values[name] = tensor.clone().requires_grad_(trained)
        if kind == "mask":
            self.masks.add(name)
        return name

    def add_partner(self, shape, kind="normal"):
        """An input beside others: now and then without a gradient."""
        return self.add_input(shape, kind, trained=self.chance(0.7))

    def pick(self, fits=lambda x: True, kind="float", losses=False):
        """The name of a value that fits: of kind "float", "index" or "any".
        Values that no step has used are more likely, and those with a
        gradient."""
        dtypes = {"float": (torch.float64,), "index": (torch.int64,),
                  "any": (torch.float64, torch.int64)}[kind]
        names = [name for name, x in self.values.items()
                 if (losses or name not in self.losses) and x.dtype in dtypes]
        self.random.shuffle(names)
        if self.chance(0.6):  # so that expressions become deep
            names.sort(key=lambda name: name in self._used)
        if self.chance(0.8):
            names.sort(key=lambda name: not self.values[name].requires_grad)
        for name in names:
            if fits(self.values[name]):
                return name
        raise Unfit

    def broadcast_shape(self, shape):
        """Another shape that broadcasts with this one."""
        other = [self.extent() if extent == 1 and self.chance(0.3)
                 else 1 if self.chance(0.2) else extent for extent in shape]
        if self.chance(0.3):
            other = other[self.integer(0, len(other)):]
        elif self.chance(0.1):
            other.insert(0, self.extent())
        return tuple(other)

    def partner(self, name, fits=lambda x: True, kind="normal"):
        """A value that broadcasts with that one: another, or a new input."""
        return self.partner_of_shape(self[name].shape, fits, kind)

    def partner_of_shape(self, shape, fits=lambda x: True, kind="normal"):
        """The same beside a value of this shape."""
        if self.chance(0.5):
            try:
                return self.pick(
                    lambda y: broadcasts(shape, y.shape) and fits(y))
            except Unfit:
                pass
        made = self.add_partner(self.broadcast_shape(shape), kind)
        fit(fits(self[made]))
        return made

    def mask(self, shape, fits):
        """A mask whose shape fits: another one, or a new one like `shape`."""
        if self.chance(0.6):
            old = [name for name in self.values
                   if name in self.masks and fits(self[name].shape)]
            if old:
                return self.choice(old)
        made = self.add_input(self.broadcast_shape(shape), "mask")
        fit(fits(self[made].shape))
        return made

    def index(self, shape, bound):
        """Indices of this shape below `bound`: others, or new ones."""
        if self.chance(0.4):
            try:
                return self.pick(lambda x: x.shape == shape and (
                    x.numel() == 0 or 0 <= x.min() and x.max() < bound),
                                 kind="index")
            except Unfit:
                pass
        return self.add_input(shape, "index", bound)

    def like(self, shape, dtype=torch.float64):
        """A value of this shape: another, or a new input."""
        if self.chance(0.5):
            try:
                return self.pick(
                    lambda x: x.shape == shape and x.dtype == dtype,
                    kind="any")
            except Unfit:
                pass
        if dtype == torch.int64:
            return self.add_input(shape, "index", 3)
        return self.add_partner(shape)

    # --- steps ---------------------------------------------------------------

    def step(self, op, *operands, **attributes):
        """Takes a step; returns the names of its outputs."""
        outputs = apply(op, [self[each] if isinstance(each, str) else each
                             for each in operands], attributes)
        for y in outputs:
            if y.numel() > self._numel_max or y.dim() > RANK_MAX:
                raise Unfit
            if y.is_floating_point() and y.numel() and not (
                    y.detach().abs().max() <= VALUE_MAX):
                raise Unfit
        first = sum(len(step.outputs) for step in self.program.steps)
        names = ["v%d" % (first + i) for i in range(len(outputs))]
        for name, y in zip(names, outputs):
            if y.requires_grad and not y.is_leaf:
                y.retain_grad()
            self.values[name] = y
            self.program.values[name] = y
        self._used.update(each for each in operands if isinstance(each, str))
        self.program.steps.append(Step(names, op, operands, attributes))
        return names

    def try_step(self, drawer, op):
        """Returns whether the drawer could take a step."""
        inputs = list(self.program.inputs)
        try:
            drawer(self, op)
            return True
        except Unfit:
            for name in list(self.program.inputs)[len(inputs):]:
                del self.program.inputs[name], self.values[name]
                self.masks.discard(name)
            return False

    def finish(self):
        """Adds the sum of all values that no step has used, times constants, and
        computes the gradients. Returns whether they are good ones."""
        terms = []
        for name in [name for name, x in self.values.items()
                     if name not in self._used and x.requires_grad]:
            weights = self.add_input(self[name].shape, trained=False)
            terms += self.step("Sum", *self.step("*", name, weights))
        if not terms:
            return False
        root = terms[0]
        for term in terms[1:]:
            root = self.step("+", root, term)[0]
        self.program.root = root
        self[root].backward()
        for name, x in self.values.items():
            if x.grad is not None and x.grad.numel() and not (
                    x.grad.abs().max() <= GRADIENT_MAX):
                return False
        for name, (tensor, trained) in self.program.inputs.items():
            if trained:
                gradient = self[name].grad
                self.program.gradients[name] = (
                    torch.zeros_like(tensor) if gradient is None else gradient)
        self.program.values = {
            name: y.detach() for name, y in self.program.values.items()}
        return True


def draw_program(seed):
    torch.set_default_dtype(torch.float64)
    try:
        attempt = 0
        while True:
            program = draw_attempt(seed, attempt)
            if program is not None:
                return program
            attempt += 1
    finally:
        torch.set_default_dtype(torch.float32)


def add_first(draw, _):
    draw.add_input(draw.shape(), draw.choice(["normal", "positive"]))


def draw_attempt(seed, attempt):
    """Returns None if the gradients are large, or there are none."""
    draw = Draw(seed, attempt)
    names = list(DRAWERS) + OFTEN
    for _ in range(draw.integer(1, 3)):
        draw.try_step(add_first, "")
    left = draw.integer(*STEPS)
    for _ in range(10 * left):
        if left == 0:
            break
        op = draw.choice(names)
        left -= draw.try_step(DRAWERS[op], op)
    try:
        return draw.program if draw.finish() else None
    except Unfit:
        return None

"""How steps are drawn that choose and move elements, or make tensors."""

from expression_drawers import drawer


# --- indices ---------------------------------------------------------------------


def with_extent(shape, axis, extent):
    shape = list(shape)
    shape[axis] = extent
    return tuple(shape)


def some_count(d, extent):
    """A number of indices into an axis of that extent."""
    return d.integer(1, 4) if extent else 0


@drawer("Gather")
def gather(d, op):
    x = d.pick(lambda x: x.dim() > 0, kind="any")
    axis, shape = d.axis(d[x]), d[x].shape
    wanted = tuple(d.integer(1, extent) if extent and d.chance(0.3) else extent
                   for extent in shape)
    wanted = with_extent(wanted, axis, some_count(d, shape[axis]))
    d.step(op, x, d.index(wanted, shape[axis]), axis=axis)


@drawer("IndexSelect")
def index_select(d, op):
    x = d.pick(lambda x: x.dim() > 0, kind="any")
    axis, shape = d.axis(d[x]), d[x].shape
    count = some_count(d, shape[axis])
    d.step(op, x, d.index((count,), shape[axis]), axis=axis)


@drawer("ScatterAdd", "IndexAdd")
def add_at(d, op):
    x = d.pick(lambda x: x.dim() > 0)
    axis, shape = d.axis(d[x]), d[x].shape
    count = some_count(d, shape[axis])
    source = d.like(with_extent(shape, axis, count))
    wanted = (count,) if op == "IndexAdd" else tuple(d[source].shape)
    d.step(op, x, d.index(wanted, shape[axis]), source, axis=axis)


@drawer("Cumsum")
def cumsum(d, op):
    x = d.pick(lambda x: x.dim() > 0)
    d.step(op, x, axis=d.axis(d[x]))


# --- shapes ----------------------------------------------------------------------


@drawer("Cat")
def cat(d, op):
    x = d.pick(lambda x: x.dim() > 0, kind="any")
    axis, parts = d.axis(d[x]), [x]
    for _ in range(d.integer(0, 2)):
        parts.append(d.like(with_extent(d[x].shape, axis, d.extent()),
                            d[x].dtype))
    d.random.shuffle(parts)
    d.step(op, *parts, axis=axis)


@drawer("Stack")
def stack(d, op):
    x = d.pick(kind="any")
    parts = [x] + [d.like(d[x].shape, d[x].dtype)
                   for _ in range(d.integer(0, 2))]
    d.random.shuffle(parts)
    d.step(op, *parts, axis=d.integer(-d[x].dim() - 1, d[x].dim()))


@drawer("Expand")
def expand(d, op):
    x = d.pick(kind="any")
    shape = [d.extent() if extent == 1 and d.chance(0.7) else extent
             for extent in d[x].shape]
    front = d.integer(0, 2)
    d.step(op, x, shape=tuple(d.extent() for _ in range(front)) + tuple(shape))


@drawer("Repeat")
def repeat(d, op):
    x = d.pick(kind="any")
    least = 0 if d.chance(0.05) else 1
    rank = max(d[x].dim() + d.integer(0, 1), 1)
    d.step(op, x, counts=tuple(d.integer(least, 2) for _ in range(rank)))


@drawer("Meshgrid")
def meshgrid(d, op):
    vectors = [d.pick(lambda x: x.dim() == 1) if d.chance(0.7)
               else d.add_partner((d.extent(),))
               for _ in range(d.integer(1, 3))]
    d.step(op, *vectors, xy=d.chance(0.5))


@drawer("Flip")
def flip(d, op):
    x = d.pick(lambda x: x.dim() > 0, kind="any")
    d.step(op, x, axes=d.axes(d[x], least=1))


@drawer("Roll")
def roll(d, op):
    x = d.pick(lambda x: x.dim() > 0, kind="any")
    d.step(op, x, shift=d.integer(-7, 7), axis=d.axis(d[x]))


@drawer("Tril", "Triu")
def triangle(d, op):
    d.step(op, d.pick(lambda x: x.dim() >= 2), diagonal=d.integer(-2, 2))


@drawer("View")
def view(d, op):
    x = d.pick(kind="any")
    extents = list(d[x].shape)
    if len(extents) > 1 and d.chance(0.6):  # two axes become one
        at = d.integer(0, len(extents) - 2)
        extents[at:at + 2] = [extents[at] * extents[at + 1]]
    if extents and d.chance(0.5):  # an axis becomes two
        at = d.integer(0, len(extents) - 1)
        factors = [n for n in (1, 2, 3, 5) if extents[at] % n == 0]
        first = d.choice(factors)
        extents[at:at + 1] = [first, extents[at] // first]
    if extents and d[x].numel() and d.chance(0.5):
        extents[d.integer(0, len(extents) - 1)] = -1
    d.step(op, x, extents=tuple(extents))


@drawer("Flatten")
def flatten(d, op):
    d.step(op, d.pick(lambda x: x.dim() > 0))


@drawer("Unsqueeze")
def unsqueeze(d, op):
    x = d.pick(kind="any")
    d.step(op, x, axis=d.integer(-d[x].dim() - 1, d[x].dim()))


@drawer("Squeeze")
def squeeze(d, op):
    x = d.pick(lambda x: x.dim() > 0 and 1 in x.shape, kind="any")
    d.step(op, x, **({"axis": d.axis(d[x])} if d.chance(0.7) else {}))


@drawer("Transpose")
def transpose(d, op):
    x = d.pick(lambda x: x.dim() > 0, kind="any")
    d.step(op, x, first=d.axis(d[x]), second=d.axis(d[x]))


@drawer("Permute")
def permute(d, op):
    x = d.pick(lambda x: x.dim() > 0, kind="any")
    axes = list(range(d[x].dim()))
    d.random.shuffle(axes)
    d.step(op, x, axes=tuple(axis - len(axes) if d.chance(0.3) else axis
                             for axis in axes))


@drawer("[]")
def subscript(d, op):
    x = d.pick(lambda x: x.dim() > 0, kind="any")
    d.step(op, x, index=d.integer(-d[x].shape[0], d[x].shape[0] - 1))


@drawer("Slice")
def slice_(d, op):
    x = d.pick(lambda x: x.dim() > 0, kind="any")
    axis = d.axis(d[x])
    extent = d[x].shape[axis]
    begin = d.integer(0, extent)
    end = d.integer(begin, extent)
    limits = {"begin": begin - extent if begin < extent and d.chance(0.3)
              else begin}
    if d.chance(0.7):
        limits["end"] = end - extent if end < extent and d.chance(0.3) else end
    d.step(op, x, **limits, axis=axis)


# --- new tensors -----------------------------------------------------------------


@drawer("Full", "Zeros", "Ones")
def new(d, op):
    value = {"value": d.number()} if op == "Full" else {}
    d.step(op, shape=d.shape(0, 3), **value)


@drawer("FullLike", "ZerosLike", "OnesLike")
def new_like(d, op):
    value = {"value": d.number()} if op == "FullLike" else {}
    d.step(op, d.pick(), **value)


@drawer("Arange")
def arange(d, op):
    if d.chance(0.5):
        d.step(op, begin=0, end=d.extent(), step=1, integers=True)
    else:
        step = d.choice([-0.75, -0.5, 0.25, 1.0, 1.5])
        d.step(op, begin=d.number(), end=d.number(), step=step)


@drawer("Linspace")
def linspace(d, op):
    d.step(op, first=d.number(), last=d.number(), count=d.extent())


@drawer("OneHot")
def one_hot(d, op):
    labels = d.index(d.shape(0, 2), 3)
    most = int(d[labels].max()) if d[labels].numel() else 0
    d.step(op, labels, classes=most + d.integer(1, 3))

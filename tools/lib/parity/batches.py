"""Which samples a step gets, and each replica: what is held back to test with,
weights, short batches at the end of an epoch, and shares that differ.

    draw_batches(rng, case)             # adds such options to a case
    part = training_part(case)          # part.left, part.held, part.weights
    batches = Batches(case, part)
    batches.of_step(7)                  # (epoch, numbers of samples)
    batches.parts(size, dp, micro)      # [[positions of each replica], ...]

The rules are those of data/sampler.h, data/sample_weights.h and
data/training_part.h.
"""

import bisect
import dataclasses

from parity import philox

STEPS_MAX = 5


@dataclasses.dataclass
class TrainingPart:
    left: list  # numbers of the samples that are trained on
    held: list  # of those that are tested with; empty: the data's own
    weights: list  # of `left`; empty: none


def draw_batches(rng, case, has_batch_norm, is_classes):
    """The networks with batch norms keep whole batches, in which no sample is
    twice: the normalized values of few rows are signs."""
    config = case["config"]
    data = config["data"]
    if data["kind"] == "synthetic" and rng.random() < 0.15:
        held = rng.randint(1, 4)
        data["train_count"] += held
        data["validation_share"] = (held + 0.5) / data["train_count"]
        del data["test_count"]
    if has_batch_norm:
        return
    if rng.random() < 0.15:
        draw_short_batch(rng, case)
    if rng.random() < 0.15:
        draw_uneven_shares(rng, case)
    kind = rng.random()
    if kind < 0.1:
        data["sample_weights"] = [1.0] + [
            rng.choice([0.0, 0.2, 1.0, 3.5])
            for _ in range(data["train_count"] - 1)]
    elif kind < 0.2 and is_classes and data["kind"] == "synthetic":
        data["balance_classes"] = True


def draw_short_batch(rng, case):
    """Lets the last batch of each epoch have fewer samples."""
    config = case["config"]
    data, size = config["data"], config["train"]["global_batch_size"]
    whole = len(training_part(case).left) // size
    epochs = case.get("epochs")
    if epochs is not None and epochs * (whole + 1) > STEPS_MAX:
        return
    samples = whole * size + rng.randint(1, size - 1)
    extra = samples - len(training_part(case).left)
    if "validation_share" in data:
        held = len(training_part(case).held)
        data["validation_share"] = (held + 0.5) / (samples + held)
    data["train_count"] += extra
    data["drop_last"] = False
    if epochs is not None:
        case["steps"] = epochs * (whole + 1)
        case["phases"][-1]["until"] = case["steps"]


def draw_uneven_shares(rng, case):
    """Gives one phase more replicas than divide the global batch."""
    size = case["config"]["train"]["global_batch_size"]
    phase = rng.randrange(len(case["phases"]))
    old = case["phases"][phase]
    if old["mesh"]["pp"] > 1:
        return
    dp = rng.choice([n for n in (4, 5, 7) if n <= size and size % n])
    case["phases"][phase] = {
        **old, "mesh": {**old["mesh"], "dp": dp},
        "train": {"micro_batch_size": rng.randint(1, -(-size // dp))}}


def training_part(case):
    data = case["config"]["data"]
    order = list(range(data["train_count"]))
    held = int(data["train_count"] * data.get("validation_share", 0))
    if held:
        philox.shuffle(order, philox.Stream(
            philox.key_of(data["seed"], philox.DATA),
            path=philox.hash_of("data.training_part")))
    left, held = sorted(order[:len(order) - held]), sorted(
        order[len(order) - held:])
    weights = data.get("sample_weights", [])
    return TrainingPart(left, held, [weights[i] for i in left if weights])


def balanced(labels):
    """A weight for each sample, so that each class comes equally often."""
    return [1.0 / labels.count(label) for label in labels]


class Batches:

    def __init__(self, case, part):
        config = case["config"]
        train = config["train"]
        drop_last = config["data"].get("drop_last", True)
        self._size, self._seed = train["global_batch_size"], train["seed"]
        self._part = part
        count = len(part.left)
        self.per_epoch = (count // self._size if drop_last
                          else -(-count // self._size))

    def of_step(self, step):
        """The epoch, and the numbers of the samples in `part.left`."""
        epoch, at = divmod(step, self.per_epoch)
        order = self._order(epoch)
        return epoch, order[at * self._size:(at + 1) * self._size]

    def _order(self, epoch):
        weights = self._part.weights
        if not weights:
            return philox.epoch_order(len(self._part.left), self._seed, epoch)
        sums, total = [], 0.0
        for weight in weights:
            total += weight
            sums.append(total)
        stream = philox.Stream(philox.key_of(self._seed, philox.SHUFFLE),
                               step=epoch,
                               path=philox.hash_of("data.weighted_order"))
        draws = [stream.unit() * total for _ in sums]
        return [bisect.bisect_right(sums, x) if x < total
                else bisect.bisect_left(sums, total) for x in draws]

    def parts(self, size, dp, micro):
        """The positions of each replica's micro-batches in a global batch of
        `size` samples: a list for each micro-batch, of one for each replica."""
        share = -(-self._size // dp)
        each = -(-share // micro)
        whole = share * dp

        def begin(m):
            return (m // each * share + m % each * micro) * size // whole

        return [[list(range(begin(r * each + k), begin(r * each + k + 1)))
                 for r in range(dp)] for k in range(each)]

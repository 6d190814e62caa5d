"""What each op of an expression is in PyTorch.

    OPS["Sum"]((x,), {"axes": (0, 1), "keep_dims": True})    # a tuple of outputs

Operands are tensors or numbers, attributes have the names of
tools/golden/expression_ops.cc. Masks are floating numbers, 1 or 0.
"""

import torch
import torch.nn.functional as F


def mask(compare):
    """Masks have the dtype of the operands; those of integers are f32."""
    def function(operands, _):
        a, b = operands
        of = a if torch.is_tensor(a) else b
        holds = compare(a, b)
        return holds.to(of.dtype if of.is_floating_point() else torch.float32)
    return function


def unary(f):
    return lambda operands, _: f(operands[0])


def binary(f):
    return lambda operands, _: f(*operands)


def along(f):
    """Of a tensor and an axis."""
    return lambda operands, a: f(operands[0], a.get("axis", -1))


def over(f):
    """A reduction over axes; none: all of them."""
    def function(operands, a):
        x = operands[0]
        axes = a.get("axes", ()) or tuple(range(x.dim()))
        return f(x, axes, a.get("keep_dims", False)) if axes else f(
            x.reshape(1), (0,), False)
    return function


def extreme(f):
    return lambda operands, a: tuple(
        f(operands[0], a["axis"], a.get("keep_dims", False)))


def index_of(f):
    return lambda operands, a: f(operands[0], a["axis"],
                                 a.get("keep_dims", False))


def new(f):
    """Of a shape, in the dtype of the run."""
    return lambda operands, a: f(a)


def variance(operands, a):
    x = operands[0]
    axes = a.get("axes", ()) or tuple(range(x.dim()))
    return torch.var(x, axes, correction=a.get("correction", 1),
                     keepdim=a.get("keep_dims", False))


def clamp(operands, a):
    return torch.clamp(operands[0], a.get("low"), a.get("high"))


def power(operands, a):
    """x^0 is a constant: Backward() of nothing else is an error in C++."""
    x = operands[0] if a["p"] != 0 else operands[0].detach()
    return torch.pow(x, a["p"])


def where(operands, _):
    condition, a, b = operands
    return torch.where(condition != 0, a, b)


def masked_fill(operands, _):
    x, condition, value = operands
    return torch.masked_fill(x, condition != 0, value)


def attention(operands, a):
    """Of heads [N, T, H, D], with fewer heads of keys; without a mask and a bias
    the op of nn/ops/attention.h."""
    q, k, v, *rest = operands
    groups = q.shape[2] // k.shape[2]
    seen = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool)
    if a.get("causal"):
        seen = seen.tril()
    if a.get("mask"):
        seen = seen & (rest.pop(0) != 0)
    bias = rest.pop(0) if a.get("bias") else torch.zeros((), dtype=q.dtype)
    y = F.scaled_dot_product_attention(
        q.transpose(1, 2), k.repeat_interleave(groups, 2).transpose(1, 2),
        v.repeat_interleave(groups, 2).transpose(1, 2),
        attn_mask=torch.where(seen, bias, -torch.inf), scale=a.get("scale"))
    return y.transpose(1, 2)


def cross_entropy(operands, a):
    weights = a.get("class_weights")
    logits, labels = operands
    return F.cross_entropy(
        logits.flatten(0, -2), labels.flatten(),
        weight=None if weights is None else torch.tensor(
            weights, dtype=logits.dtype),
        label_smoothing=a.get("label_smoothing", 0.0))


def bce(operands, a):
    logits, target = operands
    return F.binary_cross_entropy_with_logits(
        logits, target, pos_weight=torch.tensor(a.get("pos_weight", 1.0),
                                                dtype=logits.dtype))


def flatten(operands, _):
    """Images are (N, H, W, C), and their features in the order C, H, W."""
    x = operands[0]
    if x.dim() == 4:
        x = x.permute(0, 3, 1, 2)
    features = 1
    for extent in x.shape[1:]:
        features *= extent
    return x.reshape(x.shape[0], features)


def squeeze(operands, a):
    return operands[0].squeeze(*([a["axis"]] if "axis" in a else []))


def arange(a):
    dtype = torch.int64 if a.get("integers") else torch.get_default_dtype()
    begin, end, step = (a.get("begin", 0), a["end"], a.get("step", 1))
    if step != 0 and (end - begin) * step <= 0:
        return torch.empty(0, dtype=dtype)  # PyTorch refuses some
    return torch.arange(begin, end, step, dtype=dtype)


def slice_(operands, a):
    x, axis = operands[0], a.get("axis", 0)
    extent = x.shape[axis]

    def from_0(index):
        return index + extent if index < 0 else index

    begin, end = from_0(a["begin"]), from_0(a.get("end", extent))
    return x.narrow(axis, begin, end - begin)


OPS = {
    "+": binary(lambda a, b: a + b),
    "-": binary(lambda a, b=None: -a if b is None else a - b),
    "*": binary(lambda a, b: a * b),
    "/": binary(lambda a, b: a / b),
    "Exp": unary(torch.exp),
    "Log": unary(torch.log),
    "Sqrt": unary(torch.sqrt),
    "Rsqrt": unary(torch.rsqrt),
    "Square": unary(torch.square),
    "Abs": unary(torch.abs),
    "Sin": unary(torch.sin),
    "Cos": unary(torch.cos),
    "Pow": power,
    "Clamp": clamp,
    "Relu": unary(torch.relu),
    "Sigmoid": unary(torch.sigmoid),
    "Tanh": unary(torch.tanh),
    "Gelu": lambda operands, a: F.gelu(
        operands[0], approximate="tanh" if a.get("tanh") else "none"),
    "Silu": unary(F.silu),
    "LeakyRelu": lambda operands, a: F.leaky_relu(operands[0],
                                                  a.get("slope", 0.01)),
    "Softmax": along(torch.softmax),
    "LogSoftmax": along(torch.log_softmax),
    "Detached": unary(torch.Tensor.detach),
    "<": mask(lambda a, b: a < b),
    "<=": mask(lambda a, b: a <= b),
    ">": mask(lambda a, b: a > b),
    ">=": mask(lambda a, b: a >= b),
    "==": mask(lambda a, b: a == b),
    "!=": mask(lambda a, b: a != b),
    "Where": where,
    "MaskedFill": masked_fill,
    "MatMul": binary(torch.matmul),
    "Einsum": lambda operands, a: torch.einsum(a["equation"], *operands),
    "MaskedAttention": attention,
    "Sum": over(lambda x, axes, keep: torch.sum(x, axes, keepdim=keep)),
    "Mean": over(lambda x, axes, keep: torch.mean(x, axes, keepdim=keep)),
    "Variance": variance,
    "Amax": over(lambda x, axes, keep: torch.amax(x, axes, keepdim=keep)),
    "Amin": over(lambda x, axes, keep: torch.amin(x, axes, keepdim=keep)),
    "Max": extreme(torch.max),
    "Min": extreme(torch.min),
    "Argmax": index_of(torch.argmax),
    "Argmin": index_of(torch.argmin),
    "TopK": lambda operands, a: tuple(torch.topk(
        operands[0], a["k"], a["axis"], a.get("largest", True))),
    "Sort": lambda operands, a: tuple(torch.sort(
        operands[0], dim=a["axis"], descending=a.get("descending", False))),
    "Argsort": lambda operands, a: torch.argsort(
        operands[0], dim=a["axis"], descending=a.get("descending", False)),
    "Gather": lambda operands, a: torch.gather(operands[0], a["axis"],
                                               operands[1]),
    "IndexSelect": lambda operands, a: torch.index_select(
        operands[0], a["axis"], operands[1]),
    "ScatterAdd": lambda operands, a: torch.scatter_add(
        operands[0], a["axis"], *operands[1:]),
    "IndexAdd": lambda operands, a: torch.index_add(
        operands[0], a["axis"], *operands[1:]),
    "Cumsum": along(torch.cumsum),
    "Cat": lambda operands, a: torch.cat(operands, a["axis"]),
    "Stack": lambda operands, a: torch.stack(operands, a["axis"]),
    "Expand": lambda operands, a: operands[0].expand(a["shape"]),
    "Repeat": lambda operands, a: operands[0].repeat(a["counts"]),
    "Meshgrid": lambda operands, a: tuple(torch.meshgrid(
        *operands, indexing="xy" if a.get("xy") else "ij")),
    "Flip": lambda operands, a: torch.flip(operands[0], a["axes"]),
    "Roll": lambda operands, a: torch.roll(operands[0], a["shift"], a["axis"]),
    "Tril": lambda operands, a: torch.tril(operands[0], a["diagonal"]),
    "Triu": lambda operands, a: torch.triu(operands[0], a["diagonal"]),
    "View": lambda operands, a: operands[0].reshape(a["extents"]),
    "Flatten": flatten,
    "Unsqueeze": along(torch.unsqueeze),
    "Squeeze": squeeze,
    "Transpose": lambda operands, a: operands[0].transpose(a["first"],
                                                           a["second"]),
    "Permute": lambda operands, a: operands[0].permute(a["axes"]),
    "[]": lambda operands, a: operands[0][a["index"]],
    "Slice": slice_,
    "Full": new(lambda a: torch.full(a["shape"], a["value"])),
    "Zeros": new(lambda a: torch.zeros(a["shape"])),
    "Ones": new(lambda a: torch.ones(a["shape"])),
    "FullLike": lambda operands, a: torch.full_like(operands[0], a["value"]),
    "ZerosLike": unary(torch.zeros_like),
    "OnesLike": unary(torch.ones_like),
    "Arange": new(arange),
    "Linspace": new(lambda a: torch.linspace(a["first"], a["last"],
                                             a["count"])),
    "OneHot": lambda operands, a: F.one_hot(operands[0], a["classes"]).to(
        torch.get_default_dtype()),
    "CrossEntropy": cross_entropy,
    "MeanSquaredError": binary(F.mse_loss),
    "L1Loss": binary(F.l1_loss),
    "HuberLoss": lambda operands, a: F.huber_loss(*operands,
                                                  delta=a.get("delta", 1.0)),
    "BceWithLogits": bce,
}


def apply(op, operands, attributes):
    """Returns a tuple of outputs."""
    outputs = OPS[op](tuple(operands), attributes)
    return outputs if isinstance(outputs, tuple) else (outputs,)


class Plant:
    """A mistake in one op of PyTorch's side, to see that it is found: outputs,
    or the gradients that pass through them, are a millionth too large."""

    FACTOR = 1 + 1e-6

    def __init__(self, text):
        self.op, _, what = text.partition(":")
        self.gradient = what == "gradient"

    def outputs(self, op, outputs):
        if op != self.op:
            return outputs
        return tuple(self._wrong(y) for y in outputs)

    def _wrong(self, y):
        if not y.is_floating_point():
            return y
        if not self.gradient:
            return y * self.FACTOR
        y = y.clone()
        if y.requires_grad:
            y.register_hook(lambda gradient: gradient * self.FACTOR)
        return y


def evaluate(program, inputs, dtype, plant=None):
    """Computes a program (expression_draw.py) again, in `dtype`. Returns
    ({name: value}, {name of an input: its gradient})."""
    torch.set_default_dtype(dtype)
    values, results = {}, {}
    for name, (tensor, trained) in inputs.items():
        if tensor.is_floating_point():
            tensor = tensor.to(dtype)
        values[name] = tensor.clone().requires_grad_(trained)
    for step in program.steps:
        outputs = apply(step.op, [values[each] if isinstance(each, str)
                                  else each for each in step.operands],
                        step.attributes)
        if plant is not None:
            outputs = plant.outputs(step.op, outputs)
        for name, y in zip(step.outputs, outputs):
            values[name] = results[name] = y
    values[program.root].backward()
    gradients = {
        name: values[name].grad if values[name].grad is not None
        else torch.zeros_like(values[name])
        for name, (_, trained) in inputs.items() if trained}
    torch.set_default_dtype(torch.float32)
    return {name: y.detach() for name, y in results.items()}, gradients

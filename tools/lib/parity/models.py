"""The networks of model.kind in PyTorch, with the trainer's names.

    network = make_network({"kind": "gpt_nano", "depth": 2, ...}, shape=[8],
                           outputs=20)
    network = make_network({"layers": ["linear 3"]}, shape=[5], outputs=3)

`outputs` is the number of logits. Those with blocks are tools/golden's, with
dropout. The others are lists of layers.
"""

from torch import nn

import torch_models as golden
from parity.dropout import AttentionDropout, Dropout
from parity.module import Module
from parity.network import Network

# Depth, heads and width of the kinds that are drawn.
GPT_SIZES = {"gpt_nano": (3, 3, 48), "gpt_micro": (4, 4, 128)}
VIT_SIZES = {"vit_tiny": (12, 3, 192)}


class GptBlock(golden.GptBlock):

    def __init__(self, path, width, heads, dropout, attention_dropout):
        super().__init__(width, heads)
        self.attention_drop = AttentionDropout(path + ".attn",
                                               attention_dropout)
        self.drop_1 = Dropout(path + ".resid_dropout", dropout)
        self.drop_2 = Dropout(path + ".dropout", dropout)

    def forward(self, x):
        y = golden.attend(self.attn.c_attn(self.ln_1(x)), self.attn.heads,
                          causal=True, drop=self.attention_drop)
        x = x + self.drop_1(self.attn.c_proj(y))
        return x + self.drop_2(self.mlp(self.ln_2(x)))


class Gpt(Module):

    def __init__(self, keys, shape, outputs):
        super().__init__()
        sizes = GPT_SIZES[keys["kind"]]
        depth, heads, self.width = (keys.get(name, size) for name, size in zip(
            ("depth", "heads", "width"), sizes))
        dropout = keys.get("dropout", 0)
        self.wte = nn.Embedding(outputs, self.width)
        self.wpe = nn.Embedding(keys.get("context", shape[0]), self.width)
        self.drop = Dropout("drop", dropout)
        self.h = nn.Sequential(*[
            GptBlock("h.%d" % i, self.width, heads, dropout,
                     keys.get("attention_dropout", dropout))
            for i in range(depth)])
        self.ln_f = nn.LayerNorm(self.width)
        self.lm_head = nn.Linear(self.width, outputs, bias=False)
        if keys.get("tie_head", True):
            self.lm_head.weight = self.wte.weight
        self.block_names = ["h.%d" % i for i in range(depth)]
        self.places = ["wpe", "drop", *self.block_names, "ln_f", "lm_head"]

    def forward(self, x):
        x = self.wte(x) + self.wpe.weight[:x.shape[1]]
        return self.lm_head(self.ln_f(self.h(self.drop(x))))

    def void_elements(self):
        """A bias of the keys moves all scores of a query alike."""
        return {block + ".attn.c_attn.bias": slice(self.width, 2 * self.width)
                for block in self.block_names}


class Vit(Module, golden.Vit):

    def __init__(self, keys, shape, outputs):
        depth, heads, width = (keys.get(name, size) for name, size in zip(
            ("depth", "heads", "width"), VIT_SIZES[keys["kind"]]))
        super().__init__(depth, heads, width, shape[0],
                         keys.get("patch_size", 16), outputs, shape[2])
        self.width = width
        self.block_names = ["blocks.%d" % i for i in range(depth)]
        self.places = [*self.block_names, "norm", "head"]

    def void_elements(self):
        return {block + ".attn.qkv.bias": slice(self.width, 2 * self.width)
                for block in self.block_names}


class ResNet(Module, golden.ResNet):

    def __init__(self, keys, shape, outputs):
        cifar = keys.get("stem", "auto") != "imagenet"
        super().__init__(int(keys["kind"][len("resnet"):]), 64, outputs, cifar,
                         shape[2])
        self.block_names = ["layer%d.%d" % (i, j) for i in range(1, 5)
                            for j in range(len(getattr(self, "layer%d" % i)))]
        self.places = [*self.block_names, "avgpool", "fc"]


def layers_of(keys, outputs):
    """The list of layers that a kind is."""
    bias = [] if keys.get("bias", True) else ["bias=0"]

    def layer(*words):
        return " ".join([*words, *bias])

    if keys["kind"] == "lenet":
        return [layer("conv 6 5"), "relu", "maxpool 2", layer("conv 16 5"),
                "relu", "maxpool 2", "flatten", layer("linear 120"), "relu",
                layer("linear 84"), "relu", layer("linear %d" % outputs)]
    widths = keys.get("widths", [512, 512]) if keys["kind"] == "mlp" else []
    layers = ["flatten"]
    for width in widths:
        layers += [layer("linear %d" % width), "relu"]
    return [*layers, layer("linear %d" % outputs)]


def make_network(keys, shape, outputs):
    """`keys`: the section [model]. `shape`: [H, W, C], [K], or [T] of tokens."""
    if "layers" in keys:
        return Network(keys["layers"], shape)
    for name, kind in (("gpt", Gpt), ("vit", Vit), ("resnet", ResNet)):
        if keys["kind"].startswith(name):
            return kind(keys, shape, outputs)
    return Network(layers_of(keys, outputs), shape)


def network_of(case):
    return make_network(case["config"]["model"], case["sample_shape"],
                        case["outputs"])

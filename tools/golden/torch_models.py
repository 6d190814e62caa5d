"""The models of nn/models in PyTorch, with its names: torchvision's ResNet and
VGG, Hugging Face's GPT-2 (with Linear in place of Conv1D), timm's ViT. Images
are (N, H, W, C), as in Troupe.
"""

import torch
from torch import nn
from torch.nn import functional as F


# --- ResNet -------------------------------------------------------------------


class Block(nn.Module):
    def add_downsample(self, inplanes, out, stride):
        self.downsample = None
        if inplanes != out or stride != 1:
            self.downsample = nn.Sequential(
                nn.Conv2d(inplanes, out, 1, stride, bias=False),
                nn.BatchNorm2d(out))

    def shortcut(self, x):
        return x if self.downsample is None else self.downsample(x)


class BasicBlock(Block):
    expansion = 1

    def __init__(self, inplanes, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.add_downsample(inplanes, width, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class Bottleneck(Block):
    expansion = 4

    def __init__(self, inplanes, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, width * 4, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(width * 4)
        self.add_downsample(inplanes, width * 4, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


RESNET_BLOCKS = {18: (BasicBlock, [2, 2, 2, 2]), 34: (BasicBlock, [3, 4, 6, 3]),
                 50: (Bottleneck, [3, 4, 6, 3]),
                 101: (Bottleneck, [3, 4, 23, 3])}


class ResNet(nn.Module):
    def __init__(self, depth, width=64, num_classes=1000, cifar=False,
                 channels=3):
        super().__init__()
        self.conv1 = (nn.Conv2d(channels, width, 3, 1, 1, bias=False) if cifar
                      else nn.Conv2d(channels, width, 7, 2, 3, bias=False))
        self.bn1 = nn.BatchNorm2d(width)
        self.cifar = cifar
        block, counts = RESNET_BLOCKS[depth]
        inplanes = width
        for i, count in enumerate(counts):
            layer = nn.Sequential()
            for j in range(count):
                stride = 2 if i > 0 and j == 0 else 1
                layer.append(block(inplanes, width << i, stride))
                inplanes = (width << i) * block.expansion
            setattr(self, f"layer{i + 1}", layer)
        self.fc = nn.Linear(inplanes, num_classes)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x.permute(0, 3, 1, 2))))
        if not self.cifar:
            y = F.max_pool2d(y, 3, 2, 1)
        for i in range(4):
            y = getattr(self, f"layer{i + 1}")(y)
        return self.fc(y.mean((2, 3)))


# --- VGG ------------------------------------------------------------------------

VGG_PLANS = {11: [1, 0, 2, 0, 4, 4, 0, 8, 8, 0, 8, 8, 0],
             16: [1, 1, 0, 2, 2, 0, 4, 4, 4, 0, 8, 8, 8, 0, 8, 8, 8, 0]}


class Vgg(nn.Module):
    def __init__(self, depth, width=64, hidden=4096, num_classes=1000,
                 batch_norm=False, dropout=0.5):
        super().__init__()
        self.features = nn.Sequential()
        channels = 3
        for step in VGG_PLANS[depth]:
            if step == 0:
                self.features.append(nn.MaxPool2d(2))
                continue
            self.features.append(nn.Conv2d(channels, step * width, 3, 1, 1))
            channels = step * width
            if batch_norm:
                self.features.append(nn.BatchNorm2d(channels))
            self.features.append(nn.ReLU())
        self.classifier = nn.Sequential(
            nn.Linear(channels * 49, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, num_classes))

    def forward(self, x):
        y = self.features(x.permute(0, 3, 1, 2))
        y = F.adaptive_avg_pool2d(y, 7)
        return self.classifier(y.flatten(1))


# --- transformers -----------------------------------------------------------------


def attend(qkv, heads, causal, drop=None):
    """`drop`: a function of the probabilities [N, heads, T, T]."""
    n, t, d3 = qkv.shape
    q, k, v = (part.reshape(n, t, heads, -1).transpose(1, 2)
               for part in qkv.split(d3 // 3, dim=2))
    scores = q @ k.transpose(2, 3) / (q.shape[3] ** 0.5)
    if causal:
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        scores = scores.masked_fill(~mask, float("-inf"))
    p = scores.softmax(3)
    p = p if drop is None else drop(p)
    return (p @ v).transpose(1, 2).reshape(n, t, -1)


class GptAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x):
        return self.c_proj(attend(self.c_attn(x), self.heads, causal=True))


class GptMlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = GptAttention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = GptMlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    def __init__(self, layers, heads, width, context, vocab_size):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.Sequential(*[GptBlock(width, heads)
                                 for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[:tokens.shape[1]]
        return self.lm_head(self.ln_f(self.h(x)))


class PatchEmbed(nn.Module):
    def __init__(self, width, patch, channels):
        super().__init__()
        self.proj = nn.Conv2d(channels, width, patch, patch)

    def forward(self, x):
        return self.proj(x.permute(0, 3, 1, 2)).flatten(2).transpose(1, 2)


class VitAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        return self.proj(attend(self.qkv(x), self.heads, causal=False))


class VitMlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class VitBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = VitAttention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = VitMlp(width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Vit(nn.Module):
    def __init__(self, depth, heads, width, image_size, patch, num_classes,
                 channels=3):
        super().__init__()
        self.patch_embed = PatchEmbed(width, patch, channels)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        patches = (image_size // patch) ** 2
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + patches, width))
        self.blocks = nn.Sequential(*[VitBlock(width, heads)
                                      for _ in range(depth)])
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x):
        x = self.patch_embed(x)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = self.blocks(x + self.pos_embed)
        return self.head(self.norm(x)[:, 0])


# --- by their specs ---------------------------------------------------------------

# Classes by their names in tools/golden/model_spec.h.
KINDS = {"resnet": ResNet, "vgg": Vgg, "gpt2": Gpt2, "vit": Vit}


def make_model(spec):
    """Returns ResNet(depth=18) for {"kind": "resnet", "depth": 18}."""
    sizes = {key: value for key, value in spec.items() if key != "kind"}
    return KINDS[spec["kind"]](**sizes)


def make_optimizer(spec, parameters):
    """Returns the optimizer of a spec such as {"kind": "sgd", "lr": 0.1,
    "momentum": 0.9}. It updates one parameter after the other, without
    `foreach`."""
    options = {key: value for key, value in spec.items() if key != "kind"}
    kind = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[spec["kind"]]
    return kind(parameters, foreach=False, **options)

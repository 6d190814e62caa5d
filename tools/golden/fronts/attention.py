"""PyTorch's side of tests/nn/fronts/attention_fronts.cc."""

import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

ROWS = torch.tensor([[4, 0, 4], [1, 1, 4]])


def sdpa(q, k, v, causal=False, scale=None):
    """Attention of heads [N, T, H, D]; keys may have fewer heads (grouped)."""
    groups = q.shape[2] // k.shape[2]
    k = k.repeat_interleave(groups, dim=2)
    v = v.repeat_interleave(groups, dim=2)
    with sdpa_kernel(SDPBackend.MATH):
        y = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
            is_causal=causal, scale=scale)
    return y.transpose(1, 2)


def masked(q, k, v, mask, scale=None):
    """Attention with PyTorch's attn_mask, of booleans or added to the scores."""
    groups = q.shape[2] // k.shape[2]
    k = k.repeat_interleave(groups, dim=2)
    v = v.repeat_interleave(groups, dim=2)
    with sdpa_kernel(SDPBackend.MATH):
        y = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
            attn_mask=mask, scale=scale)
    return y.transpose(1, 2)


def some_keys(q, k, v):
    return masked(q, k, v, torch.tensor(
        [[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 0, 1, 1]],
        dtype=torch.bool))


def biased(q, k, v, bias):
    hidden = torch.zeros(24, dtype=bias.dtype)
    hidden[5] = hidden[12:16] = -math.inf
    return masked(q, k, v, bias + hidden.reshape(2, 3, 4), scale=0.75)


def masked_and_biased(q, k, v, bias):
    seen = torch.tensor([[0, 1, 1, 1, 1], [1, 1, 0, 1, 1]], dtype=torch.bool)
    seen = seen[:, None, None, :] & torch.ones(4, 5, dtype=torch.bool).tril()
    return masked(q, k, v, bias.masked_fill(~seen, -math.inf))


def padded_keys(q, k, v):
    padding = torch.tensor([[0, 0, 0, 1], [0, 1, 1, 1]], dtype=torch.bool)
    y = masked(q.unflatten(2, (2, -1)), k.unflatten(2, (1, -1)),
               v.unflatten(2, (1, -1)), ~padding[:, None, None, :])
    return y.flatten(2)


def of_rank_3(q, k, v):
    y = sdpa(q.unflatten(2, (2, -1)), k.unflatten(2, (1, -1)),
             v.unflatten(2, (1, -1)))
    return y.flatten(2)


def packed(qkv):
    q, k, v = qkv.unflatten(2, (3, 2, 4)).unbind(2)
    return sdpa(q, k, v, causal=True).flatten(2)


def packed_grouped(qkv):
    q, k, v = qkv.split([4, 1, 1], dim=2)
    return sdpa(q, k, v, causal=True)


def keys_and_values_packed(q, kv):
    k, v = kv.unflatten(2, (2, 2, 2)).unbind(2)
    return sdpa(q.unflatten(2, (2, 2)), k, v).flatten(2)


def rotary(x, base=10000.0, first=0, interleaved=False):
    width = x.shape[-1]
    i = torch.arange(width // 2, dtype=torch.float64)
    t = torch.arange(first, first + x.shape[1], dtype=torch.float64)
    angle = torch.outer(t, base ** (-2 * i / width))[:, None, :]
    cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
    else:
        a, b = x.chunk(2, dim=-1)
    turned = [a * cosine - b * sine, b * cosine + a * sine]
    if interleaved:
        return torch.stack(turned, dim=-1).flatten(-2)
    return torch.cat(turned, dim=-1)


def rotary_part(x):
    x = x.unflatten(2, (2, 5))
    first = torch.cat([rotary(x[:, :, :1, :4], base=100.0), x[:, :, :1, 4:]],
                      dim=-1)
    return torch.cat([first, x[:, :, 1:]], dim=2).flatten(2)


def multihead(query, memory, *weights, **masks):
    module = torch.nn.MultiheadAttention(4, 2, batch_first=True,
                                         dtype=query.dtype)
    names = ["in_proj_weight", "in_proj_bias", "out_proj.weight",
             "out_proj.bias"]
    return torch.func.functional_call(
        module, dict(zip(names, weights)), (query, memory, memory),
        {"need_weights": False, **masks})[0]


def masked_multihead(query, memory, *weights):
    hidden = torch.tensor(
        [[0, 1, 0, 0, 0], [1, 0, 0, 0, 1], [0, 0, 1, 0, 1]], dtype=torch.bool)
    padding = torch.tensor([[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]],
                           dtype=torch.bool)
    return multihead(query, memory, *weights, key_padding_mask=padding,
                     attn_mask=hidden)


CASES = [
    ("attention_plain", [[2, 5, 2, 4], [2, 3, 2, 4], [2, 3, 2, 4]], sdpa),
    ("attention_causal", [[1, 6, 2, 3]] * 3,
     lambda q, k, v: sdpa(q, k, v, causal=True)),
    ("attention_causal_more_keys", [[1, 3, 1, 4], [1, 5, 1, 4], [1, 5, 1, 4]],
     lambda q, k, v: sdpa(q, k, v, causal=True)),
    ("attention_causal_more_queries",
     [[1, 5, 1, 4], [1, 3, 1, 4], [1, 3, 1, 4]],
     lambda q, k, v: sdpa(q, k, v, causal=True)),
    ("attention_grouped", [[2, 3, 4, 2], [2, 4, 2, 2], [2, 4, 2, 2]], sdpa),
    ("attention_scaled", [[1, 4, 1, 2]] * 3,
     lambda q, k, v: sdpa(q, k, v, scale=-0.75)),
    ("attention_of_rank_3", [[2, 3, 6], [2, 4, 3], [2, 4, 3]], of_rank_3),
    ("attention_packed", [[2, 5, 24]], packed),
    ("attention_packed_grouped", [[1, 4, 6, 3]], packed_grouped),
    ("attention_keys_and_values_packed", [[2, 3, 4], [2, 5, 8]],
     keys_and_values_packed),
    ("attention_mask", [[2, 3, 2, 4], [2, 5, 2, 4], [2, 5, 2, 4]], some_keys),
    ("attention_bias",
     [[2, 3, 2, 2], [2, 4, 2, 2], [2, 4, 2, 2], [2, 3, 4]], biased),
    ("attention_mask_and_bias",
     [[2, 4, 4, 2], [2, 5, 2, 2], [2, 5, 2, 2], [4, 1, 5]], masked_and_biased),
    ("attention_key_padding", [[2, 3, 6], [2, 4, 3], [2, 4, 3]], padded_keys),
    ("multihead_attention",
     [[2, 3, 4], [2, 5, 4], [12, 4], [12], [4, 4], [4]], multihead),
    ("multihead_attention_of_itself",
     [[2, 3, 4], [12, 4], [12], [4, 4], [4]],
     lambda x, *weights: multihead(x, x, *weights)),
    ("multihead_attention_masked",
     [[2, 3, 4], [2, 5, 4], [12, 4], [12], [4, 4], [4]], masked_multihead),
    ("rotary_halves", [[2, 3, 2, 6]], rotary),
    ("rotary_pairs", [[1, 4, 1, 6]],
     lambda x: rotary(x, first=7, interleaved=True)),
    ("rotary_part", [[2, 3, 10]], rotary_part),
    ("add_positions", [[2, 3, 4], [6, 4]], lambda x, table: x + table[1:4]),
    ("embedding_padded", [[5, 3]],
     lambda table: F.embedding(ROWS, table, padding_idx=4)),
    ("embedding_and_linear_head", [[5, 3]],
     lambda table: F.linear(F.embedding(ROWS, table), table)),
    ("linear_rows", [[2, 3], [4, 3], [6, 3], [6]],
     lambda x, m, w, b: F.linear(F.linear(x, w[1:3], b[1:3]),
                                 F.linear(m, w[3:5], b[3:5]))),
]

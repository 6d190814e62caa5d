"""Values that both sides of a golden file compute, and the file's format."""

import json
import os
import struct

import torch

DTYPES = {"f32": torch.float32, "f64": torch.float64}
IGNORED_LABEL = -100


# --- what both sides can compute -------------------------------------------


def draws(name, count):
    """12-bit integers from a linear congruential generator keyed by `name`."""
    state = 2166136261
    for byte in name.encode():
        state = ((state ^ byte) * 16777619) & 0xFFFFFFFF
    values = []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        values.append(state >> 20)
    return values


def formula(name, shape, scale, dtype):
    """Returns multiples of scale / 2048 in [-scale, scale); exact if scale is a
    power of two."""
    count = torch.Size(shape).numel()
    values = [(v - 2048) / 2048 * scale for v in draws(name, count)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape).to(dtype)


def labels(name, count, classes, ignore_fifth):
    values = [v % classes for v in draws(name, count)]
    if ignore_fifth:
        values = [IGNORED_LABEL if i % 5 == 4 else v
                  for i, v in enumerate(values)]
    return torch.tensor(values, dtype=torch.int64)


# --- the file format ---------------------------------------------------------


SAFETENSORS_DTYPES = {torch.float64: "F64", torch.float32: "F32",
                      torch.int64: "I64"}


def write_safetensors(path, tensors, spec):
    """Writes the file; copies one tensor at a time."""
    header = {"__metadata__": {"spec": json.dumps(spec)}}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": SAFETENSORS_DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            f.write(tensor.detach().contiguous().numpy().tobytes())
    print(f"{path}: {len(tensors)} tensors, {os.path.getsize(path)} bytes")

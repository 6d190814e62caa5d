#!/usr/bin/env python3
"""Writes the small files of this folder, with PyTorch:

    python3 tests/nn/serialize/torch_files/make_files.py

Their tensors count up from 0. Hostile files name what they would call; they are
read as data and never loaded.
"""

import argparse
import collections
import io
import os
import pathlib
import pickle
import zipfile

import torch

FOLDER = os.path.dirname(os.path.abspath(__file__))


def counting(*shape, dtype=torch.float32):
    count = 1
    for extent in shape:
        count *= extent
    return torch.arange(count).to(dtype).reshape(shape)


def state_dict(prefix=""):
    tensors = collections.OrderedDict()
    tensors[prefix + "0.weight"] = counting(2, 3)
    tensors[prefix + "0.bias"] = counting(2)
    return tensors


def save(value, name, **options):
    torch.save(value, os.path.join(FOLDER, name), **options)


def legacy(value, name):
    save(value, name, _use_new_zipfile_serialization=False)


def repack(name, pickle_bytes, method=zipfile.ZIP_STORED):
    """An archive as torch.save writes it, around this pickle."""
    with zipfile.ZipFile(os.path.join(FOLDER, name), "w", method) as archive:
        for entry, data in [("archive/data.pkl", pickle_bytes),
                            ("archive/byteorder", b"little"),
                            ("archive/version", b"3\n")]:
            archive.writestr(zipfile.ZipInfo(entry), data, method)


def deflate(source, name):
    with zipfile.ZipFile(os.path.join(FOLDER, source)) as read, \
            zipfile.ZipFile(os.path.join(FOLDER, name), "w") as write:
        for entry in read.namelist():
            write.writestr(zipfile.ZipInfo(entry), read.read(entry),
                           zipfile.ZIP_DEFLATED)


class Calls:
    """Pickles as a call."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def dump(value, protocol):
    text = io.BytesIO()
    pickle.dump(value, text, protocol=protocol)
    return text.getvalue()


def main():
    module = torch.nn.Linear(3, 2)
    module.load_state_dict({"weight": counting(2, 3), "bias": counting(2)})
    save(torch.nn.Sequential(module).state_dict(), "plain.pt")
    legacy(torch.nn.Sequential(module).state_dict(), "legacy.pth")
    deflate("plain.pt", "deflated.pt")
    save(state_dict(), "protocol4.pt", pickle_protocol=4)
    save({"0.weight": torch.nn.Parameter(counting(2, 3)),
          "0.bias": torch.nn.Parameter(counting(2))}, "parameters.pt")
    optimizer = torch.optim.AdamW(module.parameters())
    module(counting(1, 3)).sum().backward()
    optimizer.step()
    save({"epoch": 3, "global_step": 10, "pytorch-lightning_version": "2.6.0",
          "state_dict": state_dict("net."),
          "optimizer_states": [optimizer.state_dict()],
          "lr_schedulers": [], "callbacks": {argparse.Namespace: {"best": 1}},
          "hparams_name": "kwargs",
          "hyper_parameters": {"lr": 0.1, "path": pathlib.PosixPath("/data")}},
         "lightning.ckpt")
    save({"model": state_dict("_orig_mod."), "optimizer": optimizer.state_dict(),
          "model_args": {"n_layer": 1, "bias": True, "dropout": 0.0},
          "iter_num": 5, "best_val_loss": torch.tensor(1.5),
          "config": {"out_dir": "out"}}, "nanogpt.pt")
    legacy({"arch": "resnet18", "epoch": 1, "state_dict": state_dict("module."),
            "args": argparse.Namespace(lr=0.1, aug=None), "metric": 0.5},
           "timm.pth.tar")
    save({"model_state_dict": state_dict(), "epoch": 1}, "tutorial.pt")
    table = counting(4, 6)
    views = {
        "transposed": table.t(), "part": table[1:3, 2:5],
        "expanded": counting(3, 1).expand(3, 2), "empty": table[:0],
        "channels_last": counting(1, 2, 2, 3).permute(0, 3, 1, 2),
        "scalar": table[3, 5]}
    save(views, "views.pt")
    legacy(views, "views_legacy.pt")
    save({str(dtype)[6:]: counting(3, dtype=dtype) for dtype in [
        torch.float32, torch.float64, torch.bfloat16, torch.float16,
        torch.int32, torch.int64, torch.uint8, torch.bool, torch.int8,
        torch.int16, torch.complex64, torch.uint16, torch.float8_e4m3fn]},
         "dtypes.pt")

    save(module, "module.pt")
    save({"epoch": 1, "weights": {}}, "no_weights.pt")
    evil = {"0.weight": 1, "x": Calls(os.system, "true")}
    for protocol in range(6):
        repack("system%d.pt" % protocol, dump(evil, protocol))
    repack("eval.pt", dump({"hyper_parameters": Calls(eval, "1")}, 2))
    repack("instance.pt", b"(S'true'\nios\nsystem\n.")
    repack("object.pt", b"(cos\nsystem\nS'true'\no.")
    with open(os.path.join(FOLDER, "system.pth"), "wb") as file:
        file.write(b"cos\nsystem\n(S'true'\ntR.")


if __name__ == "__main__":
    main()

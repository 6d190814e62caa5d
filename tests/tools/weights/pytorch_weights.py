"""Carries weights of PyTorch through the trainer and back.

    python3 pytorch_weights.py tools/trainer tests/tools/weights/answers

Every case is a model of another library, and the configuration of the same model
here. Its state dict is saved by torch.save in either format, plain, under
wrappers, and in a checkpoint; the trainer begins with it and takes one step at
rate 0. Then logits are PyTorch's to LIMIT, and what `trainer export` writes is
loaded by that library: parameters with equal bits, running statistics to LIMIT.
"""

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys

import safetensors.torch
import timm
import torch
import torchvision
import transformers

LIMIT = 1e-5  # of the largest number
SAMPLES = 4
TRAINER, ANSWERS = sys.argv[1:]

IMAGES = """
[data]
kind = "synthetic"
input_shape = [%d, %d, 3]
num_classes = 10
train_count = 4
test_count = 4
"""
TOKENS = """
[data]
kind = "tokens"
path = "tokens.bin"
vocab_size = 61
context = 16
window = "sequential"
val_fraction = 0
"""
RUN = """
[train]
steps = 1
global_batch_size = 4
[optimizer]
kind = "sgd"
lr = 0
[checkpoint]
dir = "saved"
replace = true
"""


@dataclasses.dataclass
class Case:
    name: str
    model: torch.nn.Module
    config: str
    all_wrappings: bool = False
    names_here: bool = True  # whether names are those of our modules


def die(words):
    sys.exit("FAILED: %s" % words)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        die("%s: %s" % (" ".join(words), done.stdout + done.stderr))


def load_by_trainer(case, weights):
    """Takes the step from these weights; returns inputs and logits."""
    with open("run.toml", "w") as f:
        f.write(case.config + RUN)
    run(TRAINER, "train", "--config=run.toml", "--init-from=" + weights)
    run(ANSWERS, "run.toml", "answers.safetensors")
    answers = safetensors.torch.load_file("answers.safetensors")
    return answers["input"], answers["output"]


def export(form, out):
    run(TRAINER, "export", "--checkpoint=saved", "--format=" + form, "--out=" + out)
    return out


def logits_of(model, x):
    if x.dim() == 4:
        x = x.permute(0, 3, 1, 2).contiguous()
    with torch.no_grad():
        out = model(x.long() if x.dim() == 2 else x)
    return getattr(out, "logits", out)


def distance(a, b):
    """Largest difference, as a part of the largest number."""
    return ((a - b).abs().max() / b.abs().max().clamp(min=1)).item()


def check_near(what, ours, theirs):
    if ours.shape != theirs.shape:
        die("%s: %s, not %s" % (what, list(ours.shape), list(theirs.shape)))
    if not distance(ours, theirs) <= LIMIT:
        die("%s: %g away" % (what, distance(ours, theirs)))


def check_same_weights(what, loaded, wanted):
    for name, tensor in wanted.items():
        if name.endswith("num_batches_tracked"):
            continue
        if name not in loaded:
            die("%s lacks %s" % (what, name))
        if "running_" in name:
            check_near("%s: %s" % (what, name), loaded[name], tensor)
        elif not torch.equal(loaded[name], tensor):
            die("%s: %s has other bits" % (what, name))


def fill(model):
    """Gives every parameter and running statistic numbers of its own."""
    torch.manual_seed(7)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() < 4:  # heads of torchvision's ViT, for example, are zero
                p.add_(0.1 * torch.randn(p.shape))
            # Branches are small, as in a trained ResNet. Those of a fresh one grow
            # from block to block, and f32 then rounds logits by 4e-5, in PyTorch
            # as well as here.
            if name.endswith("bn3.weight"):
                p.mul_(0.25)
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = None
    return model


def warm(model, x):
    """Sets the running statistics to those of a batch."""
    model.train()
    logits_of(model, x)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 0.1
    return model.eval()


def wrappings(case):
    """Yields (name, what is saved)."""
    model = case.model
    yield "plain", model.state_dict()
    if not case.all_wrappings:
        return
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    compiled = torch.compile(model)
    yield "ddp", ddp.state_dict()
    yield "compiled", compiled.state_dict()
    adam = torch.optim.AdamW(model.parameters(), lr=0.0)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    adam.step()
    model.zero_grad()
    yield "lightning", {
        "epoch": 3, "global_step": 100, "pytorch-lightning_version": "2.5.0",
        "state_dict": {"model._orig_mod." + name: t
                       for name, t in model.state_dict().items()},
        "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {
            "total": {"ready": 4, "completed": 3}}}},
        "callbacks": {"ModelCheckpoint{'monitor': None}": {
            "best_model_score": torch.tensor(0.5), "best_model_path": "a.ckpt"}},
        "optimizer_states": [adam.state_dict()],
        "lr_schedulers": [], "MixedPrecision": None,
        "hparams_name": "kwargs", "hyper_parameters": {"lr": 0.1, "name": "x"},
    }


def save_by_lightning(model, path):
    """Saves what Lightning's Trainer does after a step. Returns False without it."""
    try:
        import lightning
    except ImportError:
        return False

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model
            self.save_hyperparameters({"lr": 0.1, "name": "x"})

        def training_step(self, batch, number):
            return sum(0 * p.sum() for p in self.parameters())

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=0.0)

    trainer = lightning.Trainer(
        max_steps=1, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Module(), torch.utils.data.DataLoader(torch.zeros(1)))
    trainer.save_checkpoint(path)
    return True


def linear_weights(gpt2):
    """The weights of a GPT-2 whose layers are Linear, (out, in), not Conv1D."""
    conv1d = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    return {name: t.t().contiguous() if name.endswith(conv1d) else t
            for name, t in gpt2.state_dict().items()}


def nanogpt_checkpoint(gpt2):
    """What karpathy/nanoGPT's train.py saves of a compiled model."""
    return {
        "model": {"_orig_mod." + n: t for n, t in linear_weights(gpt2).items()},
        "optimizer": torch.optim.AdamW(gpt2.parameters()).state_dict(),
        "model_args": {"n_layer": 2, "n_head": 2, "bias": True, "dropout": 0.0},
        "iter_num": 5, "best_val_loss": torch.tensor(1e9),
        "config": {"out_dir": "out", "compile": True, "lr_decay_iters": 600000},
    }


def write_llmc(gpt2, path):
    """Writes what karpathy/llm.c's train_gpt2.py does, write_model() in f32."""
    tensors = linear_weights(gpt2)
    rows = 128  # the table of tokens, padded
    header = torch.zeros(256, dtype=torch.int32)
    header[:8] = torch.tensor([20240326, 3, 16, 61, 2, 2, 32, rows])
    table = tensors["transformer.wte.weight"]
    padded = torch.cat([table, torch.full((rows - len(table), 32), 9.0)])
    with open(path, "wb") as f:
        f.write(header.numpy().tobytes())
        f.write(padded.numpy().tobytes())
        f.write(tensors["transformer.wpe.weight"].numpy().tobytes())
        for name in ("ln_1.weight", "ln_1.bias", "attn.c_attn.weight",
                     "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias",
                     "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight",
                     "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias"):
            for layer in range(2):
                f.write(tensors["transformer.h.%d.%s" % (layer, name)]
                        .numpy().tobytes())
        for name in ("transformer.ln_f.weight", "transformer.ln_f.bias"):
            f.write(tensors[name].numpy().tobytes())


def files_of(case):
    """Yields (name, path): the case's weights in files."""
    for name, saved in wrappings(case):
        for form, is_zip in (("zipped", True), ("legacy", False)):
            torch.save(saved, "weights.pt", _use_new_zipfile_serialization=is_zip)
            yield "%s %s" % (name, form), "weights.pt"
    if case.all_wrappings and save_by_lightning(case.model, "last.ckpt"):
        yield "Lightning's checkpoint", "last.ckpt"
    if case.name == "gpt2":
        torch.save(nanogpt_checkpoint(case.model), "ckpt.pt")
        yield "nanoGPT", "ckpt.pt"
        write_llmc(case.model, "gpt2.bin")
        yield "llm.c", "gpt2.bin"
    if case.name == "timm's vit":
        torch.save({
            "epoch": 4, "arch": "vit", "version": 2, "metric": 81.5,
            "args": argparse.Namespace(lr=0.1, betas=(0.9, 0.95), amp=True),
            "state_dict": case.model.state_dict(),
            "optimizer": torch.optim.SGD(case.model.parameters()).state_dict(),
        }, "last.pth.tar")
        yield "timm's checkpoint", "last.pth.tar"
    if not hasattr(case.model, "save_pretrained"):
        return
    case.model.save_pretrained("pretrained")
    yield "save_pretrained", "pretrained"
    shutil.rmtree("pretrained")
    case.model.save_pretrained("sharded", max_shard_size="40KB")
    if not os.path.exists("sharded/model.safetensors.index.json"):
        die("there are no shards")
    yield "sharded safetensors", "sharded"
    shutil.rmtree("sharded")
    os.mkdir("bins")
    places = {}
    tensors = case.model.state_dict()
    for i, name in enumerate(tensors):
        places[name] = "pytorch_model-%05d-of-00002.bin" % (i % 2 + 1)
    for file in set(places.values()):
        torch.save({n: t for n, t in tensors.items() if places[n] == file},
                   "bins/" + file)
    with open("bins/pytorch_model.bin.index.json", "w") as f:
        json.dump({"metadata": {}, "weight_map": places}, f)
    yield "sharded bin", "bins"
    shutil.rmtree("bins")


def check(case):
    model = fill(case.model)
    has_statistics = any(isinstance(m, torch.nn.BatchNorm2d)
                         for m in model.modules())
    if has_statistics:
        warm(model, torch.randn(SAMPLES, 64, 64, 3))
    before = {n: t.clone() for n, t in model.state_dict().items()}
    wanted = wanted_weights = None
    for name, path in files_of(case):
        what = "%s, %s" % (case.name, name)
        x, ours = load_by_trainer(case, path)
        if wanted is None:
            if has_statistics:  # the step's
                model.train()
                logits_of(model, x)
            model.eval()
            wanted = logits_of(model, x)
            wanted_weights = {n: t.clone() for n, t in model.state_dict().items()}
            model.load_state_dict(before)
        check_near(what, ours, wanted)
        print("%s: logits %.1e away" % (what, distance(ours, wanted)), flush=True)
    return x, wanted, wanted_weights


def check_exports(case, x, wanted, weights):
    """What the last checkpoint of the case exports is loaded by its library."""
    pt = torch.load(export("pt", "out.pt"), weights_only=True, mmap=True)
    plain = safetensors.torch.load_file(export("safetensors", "out.safetensors"))
    if set(pt) != set(plain):
        die("%s: pt and safetensors have other names" % case.name)
    for name, tensor in plain.items():
        if not torch.equal(pt[name], tensor):
            die("%s: %s is another in pt" % (case.name, name))
    folder = export("hf", "out")
    if hasattr(case.model, "save_pretrained"):
        loaded = type(case.model).from_pretrained(folder).eval()
        check_same_weights("%s, hf" % case.name, loaded.state_dict(), weights)
        check_near("%s, hf" % case.name, logits_of(loaded, x), wanted)
        return
    if case.names_here:
        case.model.load_state_dict(pt)
        check_same_weights("%s, pt" % case.name, case.model.state_dict(), weights)
        check_near("%s, pt" % case.name, logits_of(case.model.eval(), x), wanted)
    kind = (transformers.ViTForImageClassification if "vit" in case.name
            else transformers.ResNetForImageClassification)
    loaded = kind.from_pretrained(folder).eval()
    check_near("%s, hf" % case.name, logits_of(loaded, x), wanted)


def cases():
    gpt2 = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=61, n_positions=16, n_embd=32, n_layer=2, n_head=2,
        bos_token_id=0, eos_token_id=0))
    yield Case("gpt2", gpt2, TOKENS + """
[model]
kind = "gpt2"
depth = 2
heads = 2
width = 32
""", all_wrappings=True)
    vit_config = IMAGES % (32, 32) + """
[model]
kind = "vit_tiny"
depth = 2
heads = 3
width = 24
patch_size = 8
"""
    yield Case("timm's vit", timm.models.VisionTransformer(
        img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=3,
        num_classes=10), vit_config)
    yield Case("torchvision's vit", torchvision.models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=3, hidden_dim=24,
        mlp_dim=96, num_classes=10), vit_config, names_here=False)
    yield Case("transformers' vit", transformers.ViTForImageClassification(
        transformers.ViTConfig(
            hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
            intermediate_size=96, image_size=32, patch_size=8, num_labels=10,
            layer_norm_eps=1e-6)), vit_config)
    resnet = IMAGES % (64, 64) + """
[model]
kind = "resnet%d"
stem = "imagenet"
"""
    yield Case("transformers' resnet18", transformers.ResNetForImageClassification(
        transformers.ResNetConfig(
            layer_type="basic", depths=[2, 2, 2, 2], num_labels=10,
            hidden_sizes=[64, 128, 256, 512])), resnet % 18)
    yield Case("timm's resnet18", timm.create_model("resnet18", num_classes=10),
               resnet % 18)
    yield Case("torchvision's resnet50", torchvision.models.resnet50(num_classes=10),
               resnet % 50, all_wrappings=True)


def check_that_differences_show():
    """A weight that is a little off gives other logits than the limit allows."""
    case = next(cases())
    fill(case.model)
    torch.save(case.model.state_dict(), "weights.pt")
    x, ours = load_by_trainer(case, "weights.pt")
    case.model.eval().transformer.ln_f.bias.data += 1e-3
    if distance(ours, logits_of(case.model, x)) <= LIMIT:
        die("logits of other weights pass")


def main():
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    tokens = torch.randint(0, 61, (SAMPLES * 16 + 1,), dtype=torch.int16)
    tokens.numpy().tofile("tokens.bin")
    check_that_differences_show()
    for case in cases():
        check_exports(case, *check(case))
    torch.distributed.destroy_process_group()


main()

#!/bin/bash
# What `trainer export` writes is read back by --init-from with equal bits, in every
# format, and a "pt" is an archive and a pickle as Python's own modules have them.
set -euo pipefail
. tests/tools/trainer_lib.sh

cat >gpt2.toml <<'TOML'
[model]
kind = "gpt2"
depth = 2
heads = 2
width = 16

[data]
kind = "text"
context = 8
train_count = 64
test_count = 4

[train]
steps = 1
global_batch_size = 4

[optimizer]
lr = 0.05
TOML
cat >vit.toml <<'TOML'
[model]
kind = "vit_tiny"
depth = 2
heads = 2
width = 16
patch_size = 4

[data]
kind = "synthetic"
input_shape = [8, 8, 3]
train_count = 8
test_count = 4

[train]
steps = 1
global_batch_size = 4

[optimizer]
lr = 0.05
TOML

# Reads $1.pt by Python's modules, and compares it with $1.safetensors.
same_in_python() {
  python3 - "$1" <<'PYTHON' || die "$1.pt is not as torch.save writes it"
import collections, io, json, pickle, pickletools, struct, sys, zipfile

def rebuild(storage, offset, shape, stride, requires_grad, hooks):
    assert (offset, requires_grad, hooks) == (0, False, {})
    for i, step in enumerate(stride):
        assert i + 1 == len(shape) or step == stride[i + 1] * shape[i + 1]
    return list(shape), storage

class Reader(pickle.Unpickler):
    def find_class(self, module, name):
        return {"torch._utils._rebuild_tensor_v2": rebuild,
                "torch.FloatStorage": "f32",
                "collections.OrderedDict": collections.OrderedDict,
                }[module + "." + name]

    def persistent_load(self, what):
        kind, dtype, key, place, count = what
        data = archive.read("archive/data/" + key)
        assert [kind, dtype, place, len(data)] == ["storage", "f32", "cpu", 4 * count]
        return data

with open(sys.argv[1] + ".safetensors", "rb") as f:
    header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    rest = f.read()
wanted = {name: (t["shape"], rest[slice(*t["data_offsets"])])
          for name, t in header.items() if name != "__metadata__"}
path = sys.argv[1] + ".pt"
with zipfile.ZipFile(path) as archive:
    assert archive.testzip() is None
    assert archive.namelist()[0] == "archive/data.pkl"
    assert archive.read("archive/byteorder") == b"little"
    assert archive.read("archive/version") == b"3\n"
    for entry in archive.infolist():
        assert entry.compress_type == zipfile.ZIP_STORED, entry
        head = open(path, "rb").read()[entry.header_offset:][:30]
        name_bytes, extra_bytes = struct.unpack("<HH", head[26:])
        begin = entry.header_offset + 30 + name_bytes + extra_bytes
        assert begin % 64 == 0, entry
    code = archive.read("archive/data.pkl")
    pickletools.dis(code, out=io.StringIO())  # raises if the stack does not fit
    read = Reader(io.BytesIO(code)).load()
    assert len(archive.namelist()) == len(read) + 3
assert read == wanted and len(read) > 20
PYTHON
}

for model in gpt2 vit; do
  run=(--config="$model.toml" --set checkpoint.dir="$model")
  quietly train "${run[@]}"
  trained=$model/step-00000001
  for format in safetensors pt hf; do
    out=$model-out.$format
    quietly export --checkpoint="$model" --format="$format" --out="$out"
    [[ $(cat out.txt) == "wrote $out: "*' of step 1' ]] || die "$(cat out.txt)"
    quietly train --config="$model.toml" --init-from="$out" \
      --set optimizer.lr=0 --set checkpoint.dir="$model-$format"
    same_bytes "$trained/model.safetensors" \
      "$model-$format/step-00000001/model.safetensors"
    [[ $format == hf ]] || mv "$out" "$model.$format"
  done
  if type python3 >/dev/null; then same_in_python "$model"; fi
  # Another start has other weights.
  quietly train --config="$model.toml" --set optimizer.lr=0 \
    --set checkpoint.dir="$model-other"
  cmp -s "$trained/model.safetensors" \
    "$model-other/step-00000001/model.safetensors" && die "no weight differs"
done

# Where a file does not fit, the error says which key makes it.
fails_with 2 'trainer: *gpt2.pt has the weights of another model; *; set model.width = 16; *; take a file of this model, *' \
  train --config=gpt2.toml --init-from=gpt2.pt --set model.width=32 \
  --set checkpoint.dir=wide
fails_with 2 'trainer: *; set model.patch_size = 4*model.num_classes = *' \
  train --config=vit.toml --init-from=vit.pt --set model.patch_size=8 \
  --set data.num_classes=3 --set checkpoint.dir=patches

quietly train --config=tiny.toml --set checkpoint.dir=mlp
fails_with 2 'trainer: *the model is neither a GPT-2 nor a ResNet nor a ViT*' \
  export --checkpoint=mlp --format=hf --out=none
exit 0

#!/bin/bash
# `trainer predict`, by the program: a model that has learnt red from blue.
set -euo pipefail
. tests/tools/trainer_lib.sh

# A PNG of one colour, of 12 x 10 pixels: bytes of red, green and blue; file.
png() {
  python3 - "$@" <<'PYTHON'
import struct, sys, zlib
colour, path = bytes(int(c) for c in sys.argv[1:4]), sys.argv[4]
def chunk(name, data):
    return (struct.pack(">I", len(data)) + name + data +
            struct.pack(">I", zlib.crc32(name + data)))
with open(path, "wb") as f:
    f.write(b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", 12, 10, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress((b"\0" + colour * 12) * 10)) +
            chunk(b"IEND", b""))
PYTHON
}

mkdir -p photos/blue photos/red
for i in {1..8}; do
  png $((i * 4)) $((i * 3)) $((255 - i * 9)) photos/blue/$i.png
  png $((255 - i * 8)) $((i * 5)) $((i * 2)) photos/red/$i.png
done
png 230 20 20 'a rose.png'
png 10 10 240 sea.png
cat >photos.toml <<'TOML'
[model]
kind = "linear"

[data]
kind = "images"
path = "photos"
image_size = 8
resize = 8

[train]
steps = 30
global_batch_size = 4

[optimizer]
lr = 0.01

[checkpoint]
dir = "saved"
TOML
cp photos/red/1.png photos/red/1.heic
echo '' >photos/blue/notes.TXT
quietly train --config=photos.toml
grep -qx 'photos: 2 files are not read: 1 .heic, 1 .txt; images are .*' out.txt ||
  die "$(cat out.txt)"
predict=(predict --config=photos.toml --checkpoint=saved)

# So say the commands whose output is a result, on the error output.
for command in plan profile; do
  words=("$command" --config=photos.toml)
  [[ $command != profile ]] || words+=(--seconds=0.01)
  "$TRAINER" "${words[@]}" >out.txt 2>err.txt || die "$(cat err.txt)"
  [[ $(cat err.txt) == 'photos: 2 files are not read: '* ]] ||
    die "$command: $(cat err.txt)"
done
rm photos/red/1.heic photos/blue/notes.TXT

quietly "${predict[@]}" 'a rose.png' sea.png photos/red/3.png
[[ $(cat out.txt) == 'a rose.png: red '*' %, blue '*' %
sea.png: blue '*' %, red '*' %
photos/red/3.png: red '* ]] || die "$(cat out.txt)"
# In two stages, of which the first only flattens.
cp out.txt whole.txt
quietly "${predict[@]}" 'a rose.png' sea.png photos/red/3.png --set mesh.pp=2
same_bytes whole.txt out.txt
# In every dtype that trains: f64 where its kernels are.
for dtype in f64 bf16; do
  device=cpu:0
  [[ $dtype != f64 ]] || device=reference:0
  of_dtype=(--config=photos.toml --set train.precision="$dtype"
    --set train.device="$device")
  quietly train "${of_dtype[@]}" --set checkpoint.dir="$dtype"
  quietly predict "${of_dtype[@]}" --checkpoint="$dtype" 'a rose.png' sea.png
  [[ $(cat out.txt) == 'a rose.png: red '*'sea.png: blue '* ]] ||
    die "$dtype: $(cat out.txt)"
done
quietly "${predict[@]}" sea.png --top=1
[[ $(cat out.txt) == 'sea.png: blue '*' %' && $(cat out.txt) != *red* ]] ||
  die "$(cat out.txt)"

head -c 40 sea.png >half.png
fails_with 1 'trainer: half.png: *' "${predict[@]}" half.png
fails_with 1 'trainer: *nowhere.png*' "${predict[@]}" nowhere.png
fails_with 2 'trainer: no image is given; *' "${predict[@]}"
fails_with 2 'trainer: no checkpoint is given; *' predict sea.png
fails_with 2 'trainer: tiny.toml:6: data.kind = "synthetic" has no classes *' \
  predict --config=tiny.toml --checkpoint=saved sea.png
fails_with 2 'trainer: *is of another model; mismatched: 1.weight is *' \
  "${predict[@]}" --set data.image_size=4 sea.png

# Uneven shares, short last batches, a share to test with, balanced classes.
quietly train --config=photos.toml --set checkpoint.dir=parts --set mesh.dp=3 \
  --set data.drop_last=false --set data.validation_share=0.25 \
  --set data.balance_classes=true
grep -qx '4 of 16 training samples are held back to test with, drawn by seed 0' \
  out.txt || die "$(cat out.txt)"
printf '1\n%.0s' {1..16} >weights.txt
quietly train --config=photos.toml --set data.sample_weights=weights.txt \
  --set data.val_fraction=0 --set checkpoint.dir=weighted
echo 1 >>weights.txt
fails_with 2 'trainer: *weights.txt has 17 weights for 16 training samples; *' \
  train --config=photos.toml --set data.sample_weights=weights.txt \
  --set data.val_fraction=0 --set checkpoint.dir=other
# To predict, the checkpoint has all names, and neither data nor optimizer are
# looked at; to evaluate, the test samples are.
quietly "${predict[@]}" sea.png && cp out.txt whole.txt
mkdir only && mkdir only/val && cp -r photos/* only/val
cat >only.toml <<'TOML'
[model]
kind = "linear"

[data]
kind = "images"
path = "only"
image_size = 8
resize = 8
TOML
for others in "" --set=optimizer.kind=adamw '--set=optimizer.kind=lamb --set=mesh.dp=2'; do
  # shellcheck disable=SC2086  # several words
  quietly predict --config=only.toml --checkpoint=saved $others \
    --set data.path=nowhere sea.png
  same_bytes whole.txt out.txt
  # shellcheck disable=SC2086
  quietly evaluate --config=only.toml --checkpoint=saved $others
  grep -q '^saved/step-00000030 after step 30: test loss .* 16 samples' out.txt ||
    die "$others: $(cat out.txt)"
done
# Classes are compared by name.
mv photos/red photos/rose
fails_with 2 'trainer: *saved*: class 1 was "red" and is "rose" now, of 2 and *' \
  train --config=photos.toml --resume --set train.steps=40

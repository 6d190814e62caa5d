#!/bin/bash
# Exit codes, and the one line that each failure of the program ends in.
set -euo pipefail
. tests/tools/trainer_lib.sh

# Usage and configuration: 2, and nothing has been started.
fails_with 2 'trainer: unknown command foo; run "trainer help" for a list' \
  foo
fails_with 2 'trainer: cannot read no.toml: No such file or directory; check the path' \
  train --config=no.toml
fails_with 2 'trainer: cannot read .: it is not a file; check the path' \
  train --config=.
fails_with 2 'trainer: --set train.stepz: unknown key train.stepz; did you mean train.steps?' \
  train --config=tiny.toml --set train.stepz=1
sed 's/global_batch_size/batch_size/' tiny.toml >bare.toml
fails_with 2 'trainer: bare.toml:12: "batch_size" can mean two things: *' \
  train --config=bare.toml
fails_with 2 'trainer: --ranks: train.global_batch_size = 16 is less than mesh.dp = 17, and each replica takes a share of a batch; use at least 17' \
  train --config=tiny.toml --ranks=17
[[ ! -e saved ]] || die "a folder was made for a run that never began"

# A configuration may come through a pipe.
quietly train --config=<(cat tiny.toml) --set checkpoint.dir=
quietly train --config=/dev/stdin --set checkpoint.dir= < <(cat tiny.toml)
fails_with 2 'trainer: cannot read /dev/zero: it has more than the 1048576 bytes that are expected; check the path' \
  train --config=/dev/zero

# Data that cannot be read.
fails_with 1 "trainer: --set data.path: no none/t10k-images-idx3-ubyte, plain or with .gz, here or in MNIST/raw; give the folder of MNIST's IDX files" \
  train --config=tiny.toml --set data.kind=mnist --set data.path=none
mkdir broken
echo 'this is no image' >broken/t10k-images-idx3-ubyte
echo 'this is no label' >broken/t10k-labels-idx1-ubyte
fails_with 1 'trainer: --set data.path: broken/t10k-*' \
  train --config=tiny.toml --set data.kind=mnist --set data.path=broken

# Files without a test part train, and that is said: 64 images of 28 x 28.
mkdir train_only
{
  printf '\0\0\10\3\0\0\0\100\0\0\0\34\0\0\0\34'
  head -c $((64 * 28 * 28)) /dev/zero
} >train_only/train-images-idx3-ubyte
{
  printf '\0\0\10\1\0\0\0\100'
  head -c 64 /dev/zero
} >train_only/train-labels-idx1-ubyte
quietly train --config=tiny.toml --set data.kind=mnist \
  --set data.path=train_only --set data.train_count=0 \
  --set data.test_count=0 --set checkpoint.dir=
grep -qx 'no test samples in train_only: nothing is evaluated' out.txt ||
  die "$(cat out.txt)"
! grep -q '^after step\|^test accuracy' out.txt || die "$(cat out.txt)"

# A number of samples is blamed where it was set.
fails_with 2 'trainer: --set data.test_count: glyphs come in sets of 1 to 16777216 samples, not 1000000000; choose a number between' \
  train --config=tiny.toml --set data.kind=glyphs --set data.test_count=1000000000
fails_with 2 'trainer: --set data.input_shape: data.train_count: synthetic data of * are more than the limit of 8589934592; make fewer or smaller samples' \
  train --config=tiny.toml --set data.input_shape=100000000
fails_with 2 'trainer: --ranks: mesh dp=512 pp=1 has 512 ranks, and one process at most 256; start several processes' \
  train --config=tiny.toml --ranks=512

# A run that diverges.
fails_with 1 'trainer: rank 0, compute: the loss of step *, micro-batch 0 is *; lower the learning rate, or set train.stop_on_nan = false to go on' \
  train --config=tiny.toml --set optimizer.lr=1e30
quietly train --config=tiny.toml --set optimizer.lr=1e30 \
  --set train.stop_on_nan=false --set log.file=log.jsonl --set log.every=1 \
  --set checkpoint.dir=nan
grep -q '"loss":null,"loss_text":"nan"' log.jsonl || die "no NaN in the log"

# Places that cannot be written.
echo 'a file' >file
fails_with 1 'trainer: cannot create folder file: Not a directory; *' \
  train --config=tiny.toml --set checkpoint.dir=file
fails_with 1 'trainer: cannot write /dev/full: No space left on device; free space there or write to another disk' \
  train --config=tiny.toml --set log.file=/dev/full --set checkpoint.dir=full
fails_with 1 'trainer: cannot create no/such/trace.json: No such file or directory; check the path' \
  train --config=tiny.toml --trace=no/such/trace.json

# A folder in use is not mixed with.
quietly train --config=tiny.toml
fails_with 2 'trainer: tiny.toml:19: checkpoint.dir has checkpoints of an earlier run, the last is saved/step-00000020; add --resume to go on from it, --set checkpoint.replace=true to replace them, or use another folder' \
  train --config=tiny.toml
quietly train --config=tiny.toml --set checkpoint.replace=true \
  --set train.steps=10
[[ $(names_in saved) == step-00000010 ]] || die "left: $(names_in saved)"

# A checkpoint that cannot be used.
fails_with 2 'trainer: --set train.seed: saved/step-00000010 was written with seed 0, this job has 1; set train.seed to go on with it' \
  train --config=tiny.toml --resume --set train.seed=1
fails_with 2 "trainer: saved/step-00000010: the data were of seed 0, this job's are of 3; go on with the same data, or start anew" \
  train --config=tiny.toml --resume --set data.seed=3
fails_with 2 "trainer: saved/step-00000010: the data were of kind synthetic, this job's are of glyphs; go on with the same data, or start anew" \
  train --config=tiny.toml --resume --set data.kind=glyphs
fails_with 2 'trainer: tiny.toml: saved/step-00000010 is of another model or optimizer; unexpected in the checkpoint: 1.bias, 3.bias, 1.bias.momentum_buffer, 3.bias.momentum_buffer; go on with those that it was saved from, or set checkpoint.allow_unexpected = true to go on without what is unexpected' \
  train --config=tiny.toml --resume --set model.bias=false
fails_with 2 'trainer: --set checkpoint.allow_missing: saved/step-00000010 is of another model or optimizer; missing from the checkpoint: *; mismatched: *; go on with those that it was saved from, or set checkpoint.allow_missing = true to begin what is missing with initial values' \
  train --config=tiny.toml --resume --set model.widths=16,16 \
  --set checkpoint.allow_missing=false
[[ $(names_in saved) == step-00000010 ]] || die "left: $(names_in saved)"
echo 'nonsense' >saved/step-00000010/model.safetensors
fails_with 1 'trainer: *saved/step-00000010/model.safetensors is not a whole safetensors file: *' \
  train --config=tiny.toml --resume

# Output that is lost is an error of every command that prints.
quietly train --config=tiny.toml --set checkpoint.dir=printed
for arguments in help --version 'help plan' 'train --help' \
  'train --config=tiny.toml --print-config' 'plan --config=tiny.toml' \
  'evaluate --config=tiny.toml --checkpoint=printed' 'launch --help' \
  'export --checkpoint=printed --out=printed.safetensors'; do
  for output in full closed unread; do
    code=0
    # shellcheck disable=SC2086  # several words
    case $output in
      full) "$TRAINER" $arguments >/dev/full 2>err.txt || code=$? ;;
      closed) "$TRAINER" $arguments >&- 2>err.txt || code=$? ;;
      unread)
        # The reader has ended before the program begins.
        exec {unread}> >(:)
        wait "$!" || true
        "$TRAINER" $arguments >&"$unread" 2>err.txt || code=$?
        exec {unread}>&-
        ;;
    esac
    ((code == 1)) || die "exit code $code, not 1, of $arguments, $output"
    [[ $(cat err.txt) == 'trainer: standard output, or its end, could not be written: '* ]] ||
      die "$arguments, $output: it says: $(cat err.txt)"
  done
done

# A run may be started without standard streams: nothing else goes there.
"$TRAINER" train --config=tiny.toml --set checkpoint.dir=closed \
  --set log.file=closed.jsonl --set log.every=1 <&- >&- 2>&- ||
  die "exit code $? without standard streams"
[[ $(names_in closed) == step-00000020 ]] || die "saved: $(names_in closed)"
(($(wc -l <closed.jsonl) >= 20)) && ! grep -qv '^{' closed.jsonl ||
  die "$(cat closed.jsonl)"

#!/bin/bash
# Which algorithm computes a product changes last bits. It is measured once,
# kept on disk for later runs and in the plans of checkpoints for those that go
# on from them; what is kept is what counts, whatever is the fastest today.
set -euo pipefail
. tests/tools/emulated/emulated_lib.sh

off=(--set train.kernel_cache=off)
differ() {
  ! cmp -s "$1"/step-00000040/model.safetensors \
    "$2"/step-00000040/model.safetensors || die "$1 and $2 have the same bits"
}

# Two machines that find other algorithms to be the fastest.
EMULATED_FASTEST=1 run one 40
EMULATED_FASTEST=2 run two 40 "${off[@]}"
differ one two
grep -q 'matmul:[^ ]* loops.f32"' one/step-00000040/plan.json ||
  die "no choices in $(cat one/step-00000040/plan.json)"
[[ $(names_in cache/troupe/kernels) == emulated-gpu-*.txt ]] ||
  die "in the cache: $(names_in cache/troupe/kernels)"
cache=$(echo cache/troupe/kernels/*.txt)
cp "$cache" cache.txt
grep -q '^of Emulated GPU, compute 9.0, driver ' "$cache" || die "$(cat "$cache")"
grep -q '^matmul:.* loops.f32$' "$cache" || die "$(cat "$cache")"

# A later run takes what is on disk, ...
EMULATED_FASTEST=2 run from_disk 40
says_not 'warning'
same_bits one from_disk
cmp "$cache" cache.txt || die "what was not measured was written"

# ... on two ranks, too, which agree.
EMULATED_FASTEST=1 run ranks 40 --ranks=2 "${off[@]}"
EMULATED_FASTEST=1 run ranks_again 40 --ranks=2
same_bits ranks ranks_again

# One that goes on from a checkpoint takes the checkpoint's, ...
EMULATED_FASTEST=1 run parts 17 "${off[@]}"
EMULATED_FASTEST=2 run parts 40 --resume "${off[@]}"
says_not 'warning'
says_not 'where the plan differs'
same_bits one parts

# ... before those on disk.
EMULATED_FASTEST=2 run two_parts 17 "${off[@]}"
EMULATED_FASTEST=0 run two_parts 40 --resume
same_bits two two_parts

# A choice that the library no longer has is measured again, and told.
EMULATED_FASTEST=1 run gone 17 "${off[@]}"
sed -i 's/loops\.f32"/loops.gone"/' gone/step-00000017/plan.json
EMULATED_FASTEST=1 run gone 40 --resume "${off[@]}"
says 'warning: matmul:'
says 'is chosen anew, and may give other last bits: loops.gone is no algorithm'
same_bits one gone
! grep -q loops.gone gone/step-00000040/plan.json || die 'it is still there'

# So are those of another device.
EMULATED_FASTEST=1 run other 17 "${off[@]}"
sed -i 's/"Emulated GPU, compute 9.0, /"Emulated GPU, compute 9.1, /' \
  other/step-00000017/plan.json
EMULATED_FASTEST=2 run other 40 --resume "${off[@]}"
says "warning: the checkpoint's algorithms are for Emulated GPU, compute 9.1, "
differ one other

# A file that is damaged is named once, and replaced.
echo garbage >"$cache"
EMULATED_FASTEST=1 run damaged 40 --ranks=2
says "warning: $PWD/$cache: line 1 of the choices"
(($(grep -c "$cache" out.txt) == 1)) || die "$(cat out.txt)"
same_bits ranks damaged
grep -q '^matmul:.* loops.f32$' "$cache" || die "$(cat "$cache")"

# Nowhere to write is no error.
XDG_CACHE_HOME=/proc/none EMULATED_FASTEST=1 run nowhere 40
says 'later runs measure them again'
same_bits one nowhere
(
  unset HOME XDG_CACHE_HOME
  EMULATED_FASTEST=1 run homeless 40
)
says_not 'warning'
same_bits one homeless

# A folder by name.
run named 20 --set train.kernel_cache=here/kernels
[[ $(names_in here/kernels) == emulated-gpu-*.txt ]] ||
  die "here: $(names_in here/kernels)"

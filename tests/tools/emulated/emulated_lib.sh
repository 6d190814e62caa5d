# For tests of the program on emulated GPUs, after trainer_lib.sh's:
#
#   . tests/tools/emulated/emulated_lib.sh
#   run one_rank 40            # trains gpu.toml until step 40, into one_rank
#
# gpu.toml is tiny.toml on GPUs. What algorithms are chosen is kept in cache/.

export TRAINER=$PWD/tests/tools/emulated/emulated_trainer
readonly CPU_TRAINER=$PWD/tools/trainer
. tests/tools/trainer_lib.sh

export XDG_CACHE_HOME=$PWD/cache
unset CUDA_VISIBLE_DEVICES EMULATED_GPUS EMULATED_FASTEST EMULATED_BREAKS

sed 's/^global_batch_size.*/&\ndevice = "cuda"/' tiny.toml >gpu.toml

# The line of gpu.toml that names the device.
DEVICE_LINE=$(grep -n '^device' gpu.toml | cut -d: -f1)
readonly DEVICE_LINE

# run FOLDER STEPS OPTIONS...
run() {
  local folder=$1 steps=$2
  shift 2
  quietly train --config=gpu.toml --set checkpoint.dir="$folder" \
    --set train.steps="$steps" "$@"
}

# Two runs have the same parameters and states after step 40.
same_bits() {
  local file
  for file in "$1"/step-00000040/*.safetensors; do
    same_bytes "$file" "$2/step-00000040/${file##*/}"
  done
}

says() {
  grep -qF -e "$1" out.txt || die "no \"$1\" in: $(cat out.txt)"
}

says_not() {
  ! grep -qF -e "$1" out.txt || die "\"$1\" in: $(cat out.txt)"
}

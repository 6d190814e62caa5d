# Finds MNIST's files for tests: . tests/examples/mnist_lib.sh
#
#   folder=$(find_mnist examples/mnist/mnist.toml)   # empty: none is here

# Prints $TROUPE_DATA/mnist, or shared/data/mnist of the nearest folder above
# the source file $1 that has one. Bazel links $1 to that file.
find_mnist() {
  if [[ -n ${TROUPE_DATA:-} ]]; then
    if [[ ! -d $TROUPE_DATA/mnist ]]; then
      echo "FAILED: TROUPE_DATA is set, but there is no folder" \
        "$TROUPE_DATA/mnist" >&2
      return 1
    fi
    echo "$TROUPE_DATA/mnist"
    return
  fi
  local above
  above=$(dirname "$(realpath "$1")")
  while [[ $above != / ]]; do
    if [[ -d $above/shared/data/mnist ]]; then
      echo "$above/shared/data/mnist"
      return
    fi
    above=$(dirname "$above")
  done
}

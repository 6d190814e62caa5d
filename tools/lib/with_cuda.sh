#!/bin/bash
# Runs a program of this folder with NVIDIA's libraries in its path:
#
#   ./with_cuda bin/trainer doctor
#   ./with_cuda --where          # prints where each library was found
#   ./with_cuda --unpack         # only unpacks, as the first use does
#
# The first use unpacks programs.tar.xz beside this script.
#
# Searches $CUDA_HOME/lib64, /usr/local/cuda/lib64, NVIDIA's packages of the Python
# that $TROUPE_PYTHON names (else python3), and then the system's folders. The
# libraries that cuDNN loads later are in its own folder, and are found likewise.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Extracts archive $1 into folder $2, also on machines without xz.
extract() {
  if command -v xz >/dev/null; then
    tar -xJf "$1" -C "$2"
  else
    python3 -c 'import sys, tarfile
with tarfile.open(sys.argv[1]) as archive:
    archive.extractall(sys.argv[2])' "$1" "$2"
  fi
}

# Unpacks atomically, also if two programs begin at once: lib/nvidia.txt is moved
# last.
unpack() {
  local stage
  stage=$(mktemp -d "$here/.unpacking.XXXXXX") || {
    echo "${0##*/}: cannot write to $here, where programs must be unpacked; copy the folder to where you can write" >&2
    exit 1
  }
  extract "$here/programs.tar.xz" "$stage"
  cp -rT "$stage/bin" "$here/bin"
  [[ ! -d $stage/tests ]] || cp -rT "$stage/tests" "$here/tests"
  [[ ! -d $stage/data ]] || cp -rT "$stage/data" "$here/data"
  mkdir -p "$here/lib"
  find "$stage/lib" -name '*.so*' -exec mv -t "$here/lib" {} +
  mv "$stage/lib/nvidia.txt" "$here/lib"
  rm -rf "$stage"
}
[[ -e $here/lib/nvidia.txt ]] || unpack
[[ ${1:-} != --unpack ]] || exit 0

# Each line is a required library: "libcudnn.so.9".
mapfile -t needed <"$here/lib/nvidia.txt"

# Prints the folders of NVIDIA's Python packages: nvidia/cudnn/lib,
# nvidia/cu13/lib, ...
python_folders() {
  local python=${TROUPE_PYTHON:-python3}
  command -v "$python" >/dev/null || return 0
  "$python" -c '
import glob, site, sys, sysconfig
roots = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
roots += site.getsitepackages() + [site.getusersitepackages()] + sys.path
for root in dict.fromkeys(root for root in roots if root):
  for folder in sorted(glob.glob(glob.escape(root) + "/nvidia/*/lib")):
    print(folder)
' 2>/dev/null || true
}

mapfile -t folders < <(
  printf '%s\n' ${CUDA_HOME:+"$CUDA_HOME/lib64"} /usr/local/cuda/lib64
  python_folders
)

# Prints the folder of a library; nothing if the system's linker finds it, or if it
# is missing.
folder_of() {
  local folder
  for folder in "${folders[@]}"; do
    if [[ -e $folder/$1 ]]; then
      echo "$folder"
      return
    fi
  done
}
known_to_system() {
  (/sbin/ldconfig -p 2>/dev/null || true) | grep -qF "$1 "
}

path=$here/lib
missing=()
found=()
for library in "${needed[@]}"; do
  folder=$(folder_of "$library")
  if [[ -n $folder ]]; then
    [[ :$path: == *":$folder:"* ]] || path+=:$folder
    found+=("$library: $folder")
  elif known_to_system "$library"; then
    found+=("$library: where the system looks")
  else
    missing+=("$library")
  fi
done
# Adds the folders of libraries that these load, such as cuDNN's compiler.
for folder in "${folders[@]}"; do
  [[ ! -d $folder || :$path: == *":$folder:"* ]] || path+=:$folder
done

if ((${#missing[@]})); then
  printf '%s: nowhere is %s; set CUDA_HOME to a CUDA 13 toolkit with cuDNN 9 and NCCL 2, or TROUPE_PYTHON to a Python that has nvidia-cublas, nvidia-cudnn-cu13 and nvidia-nccl-cu13\n' \
    "${0##*/}" "${missing[*]}" >&2
  exit 1
fi
if [[ ${1:-} == --where ]]; then
  printf '%s\n' "${found[@]}"
  exit 0
fi
# peer_python restores this path.
export TROUPE_OUTER_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec "$@"

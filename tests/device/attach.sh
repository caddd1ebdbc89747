#!/usr/bin/env bash
# tacho attach on this machine's NVIDIA GPU: a PyTorch training loop and a decode loop of CUDA graphs that were started without tacho
# are attached to and left, again and again. Prints times of getting in, speeds before, during and after, memory, and verdicts.
# Needs a build (TACHO_BUILD, default ../../build) and a Python with a torch for CUDA.
#   attach.sh [sections...]     those of attach.py; OUT: folder for results (default .)           about sixteen minutes; finalize takes
#                               three of them, launches four
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if ! nvidia-smi -L > "$out/gpus.txt" 2>&1; then
  echo "attach.sh: no NVIDIA GPU on this machine (nvidia-smi: $(head -1 "$out/gpus.txt")); nothing was measured" >&2
  exit 77
fi
cat "$out/gpus.txt"
for file in bin/tacho lib/libtacho.so; do
  if [ ! -e "$build/$file" ]; then
    echo "attach.sh: $build/$file is missing: build first" >&2
    exit 1
  fi
done
cuda=${CUDA_HOME:-/usr/local/cuda}
for program in cupti_finalize launch_loop; do  # for the sections facts and launches
  if [ ! -e "$build/tests/device/$program" ] && [ -x "$cuda/bin/nvcc" ]; then
    mkdir -p "$build/tests/device"
    "$cuda/bin/nvcc" -O2 -arch=native -std=c++17 -I"$cuda/extras/CUPTI/include" -o "$build/tests/device/$program" "$here/$program.cu" ||
      echo "attach.sh: nvcc could not build $program" >&2
  fi
done
exec python3 "$here/attach.py" --build "$build" --out "$out" "$@"

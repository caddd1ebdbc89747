#!/usr/bin/env bash
# Collects hardware counters on this machine's NVIDIA GPU and prints a table of verdicts against Nsight Compute (ncu).
# Needs a build (TACHO_BUILD, default ../../build) made with CUDA's headers; its CUDA program is compiled here when
# it is not there, with nvcc, or carried along.
#   cuda_profile.sh [--limit SECONDS] [sections...]     see cuda_profile.py; OUT: folder for results (default .)
# About nine minutes, most telling first: cupti time multiplex values more_values pc host unselected
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if ! nvidia-smi -L > "$out/gpus.txt" 2>&1; then
  echo "cuda_profile.sh: no NVIDIA GPU on this machine (nvidia-smi: $(head -1 "$out/gpus.txt")); nothing was measured" >&2
  exit 77
fi
cat "$out/gpus.txt"
cuda=${CUDA_HOME:-/usr/local/cuda}
mkdir -p "$build/tests/device"
if [ ! -e "$build/tests/device/cuda_kernels" ]; then
  "$cuda/bin/nvcc" -O2 -lineinfo -arch=native -std=c++17 -o "$build/tests/device/cuda_kernels" "$here/cuda_kernels.cu" ||
    echo "cuda_profile.sh: nvcc could not build cuda_kernels" >&2
fi
for file in bin/tacho lib/libtacho.so lib/librange_floor.so tests/device/cuda_kernels tests/device/cuda_variables; do
  if [ ! -e "$build/$file" ]; then
    echo "cuda_profile.sh: $build/$file is missing: build with the CUDA toolkit installed" >&2
    exit 1
  fi
done
for folder in "${CUDA_HOME:-/usr/local/cuda}"/{lib64,extras/CUPTI/lib64,targets/x86_64-linux/lib}; do
  if [ -e "$folder/libcupti.so" ]; then export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; break; fi
done
exec python3 "$here/cuda_profile.py" --build "$build" --out "$out" "$@"

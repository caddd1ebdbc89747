#!/usr/bin/env bash
# What recording costs CUDA programs on this machine's NVIDIA GPU beside bare CUPTI, torch.profiler and Proton: the table of
# docs/nvidia.md. Needs a build (TACHO_BUILD, default ../../build) made with CUDA's headers, a Python with torch and Triton.
#   costs.sh [--starts N] [--rounds N] [loops...]     OUT: folder for results (default .)
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if ! nvidia-smi -L > "$out/gpus.txt" 2>&1; then
  echo "costs.sh: no NVIDIA GPU on this machine (nvidia-smi: $(head -1 "$out/gpus.txt")); nothing was measured" >&2
  exit 77
fi
cat "$out/gpus.txt"
for file in bin/tacho lib/libtacho.so lib/libcupti_floor.so; do
  if [ ! -e "$build/$file" ]; then
    echo "costs.sh: $build/$file is missing: build with the CUDA toolkit installed" >&2
    exit 1
  fi
done
for folder in "${CUDA_HOME:-/usr/local/cuda}"/{lib64,extras/CUPTI/lib64,targets/x86_64-linux/lib}; do
  if [ -e "$folder/libcupti.so" ]; then export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; break; fi
done
exec python3 "$here/costs.py" --build "$build" --out "$out" "$@"

#!/usr/bin/env bash
# Operators of PyTorch on this machine's NVIDIA GPU against torch.profiler: counts, times, graphs, compiled regions, cost; prints a
# table of verdicts. Needs a build (TACHO_BUILD, default ../../build) and a Python with a torch for CUDA.
#   torch_ops.sh [sections...]     those of torch_ops.py; OUT: folder for results (default .)
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if ! nvidia-smi -L > "$out/gpus.txt" 2>&1; then
  echo "torch_ops.sh: no NVIDIA GPU on this machine (nvidia-smi: $(head -1 "$out/gpus.txt")); nothing was measured" >&2
  exit 77
fi
cat "$out/gpus.txt"
for file in bin/tacho lib/libtacho.so; do
  if [ ! -e "$build/$file" ]; then
    echo "torch_ops.sh: $build/$file is missing: build first" >&2
    exit 1
  fi
done
cuda=${CUDA_HOME:-/usr/local/cuda}
mkdir -p "$build/tests/device"
if [ ! -e "$build/tests/device/cuda_graph_kinds" ]; then
  "$cuda/bin/nvcc" -O2 -arch=native -rdc=true -std=c++17 -o "$build/tests/device/cuda_graph_kinds" "$here/cuda_graph_kinds.cu" ||
    echo "torch_ops.sh: nvcc could not build cuda_graph_kinds" >&2
fi
# Carried binaries come without the build's link to Python's part.
export TACHO_PYTHON=$here/../../python
exec python3 "$here/torch_ops.py" --build "$build" --out "$out" "$@"

#!/usr/bin/env bash
# Operators against their roof on this machine's NVIDIA GPU: FLOPs beside torch's own counter, the rate of a product beside its time
# without a profiler. Needs a build (TACHO_BUILD, default ../../build) and a Python with a torch for CUDA.
#   efficiency.sh     OUT: folder for results (default .)
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if ! nvidia-smi -L > "$out/gpus.txt" 2>&1; then
  echo "efficiency.sh: no NVIDIA GPU on this machine (nvidia-smi: $(head -1 "$out/gpus.txt")); nothing was measured" >&2
  exit 77
fi
cat "$out/gpus.txt"
if [ ! -e "$build/bin/tacho" ]; then
  echo "efficiency.sh: $build/bin/tacho is missing: build first" >&2
  exit 1
fi
exec python3 "$here/efficiency.py" --build "$build" --out "$out"

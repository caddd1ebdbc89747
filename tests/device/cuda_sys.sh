#!/usr/bin/env bash
# System profiling on this machine's NVIDIA GPU: Python line -> torch operator -> API call -> kernel, telemetry through
# NVML, overhead; prints a table of verdicts. Needs a build (TACHO_BUILD, default ../../build) and a Python with torch.
#   cuda_sys.sh [options] [sections...]     those of cuda_sys.py; OUT: folder for results (default .)
# All sections take about six minutes; each ends by itself when its time is over. What to run first: lines nvtx telemetry.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if ! nvidia-smi -L > "$out/gpus.txt" 2>&1; then
  echo "cuda_sys.sh: no NVIDIA GPU on this machine (nvidia-smi: $(head -1 "$out/gpus.txt")); nothing was measured" >&2
  exit 77
fi
cat "$out/gpus.txt"
for file in bin/tacho lib/libtacho.so; do
  if [ ! -e "$build/$file" ]; then
    echo "cuda_sys.sh: $build/$file is missing: build first" >&2
    exit 1
  fi
done
exec python3 "$here/cuda_sys.py" --build "$build" --out "$out" "$@"

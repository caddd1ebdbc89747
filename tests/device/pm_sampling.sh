#!/usr/bin/env bash
# tacho attach --pmc on this machine's NVIDIA GPU: samples of its counters against what a program did, which was started without tacho;
# their times; what it costs the program; who else may hold the counters. Prints figures and verdicts.
# Needs a build (TACHO_BUILD, default ../../build), the right to read counters, and a Python with a torch for CUDA.
#   pm_sampling.sh [values|intervals|clock|speed|holders|kernels]...     OUT: folder for results (default .)      about two minutes
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if ! nvidia-smi -L > "$out/gpus.txt" 2>&1; then
  echo "pm_sampling.sh: no NVIDIA GPU on this machine (nvidia-smi: $(head -1 "$out/gpus.txt")); nothing was measured" >&2
  exit 77
fi
cat "$out/gpus.txt"
if [ ! -e "$build/bin/tacho" ]; then
  echo "pm_sampling.sh: $build/bin/tacho is missing: build first" >&2
  exit 1
fi
exec python3 "$here/pm_sampling.py" --build "$build" --out "$out" "$@"

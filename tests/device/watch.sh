#!/usr/bin/env bash
# `tacho watch` on this machine's NVIDIA GPU: what it costs loops of PyTorch beside nothing and torch.profiler, whether its counts are
# exact, and whether its times agree with torch.profiler's within their stated error.
# Needs a build (TACHO_BUILD, default ../../build) and a Python with a torch for CUDA.
#   watch.sh [events|counts|times|governor|budget|cost|parts|past]... [--loops tiny,mixed] [--seconds S]     OUT: folder for results (default .)
# About ten minutes for all but parts, which says where the cost comes from (--seconds 45: four minutes), and past, which says what counting
# takes within one program (--seconds 20: three minutes).
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if ! nvidia-smi -L > "$out/gpus.txt" 2>&1; then
  echo "watch.sh: no NVIDIA GPU on this machine (nvidia-smi: $(head -1 "$out/gpus.txt")); nothing was measured" >&2
  exit 77
fi
cat "$out/gpus.txt"
for file in bin/tacho lib/libtacho.so lib/libtacho-watch.so; do
  if [ ! -e "$build/$file" ]; then
    echo "watch.sh: $build/$file is missing: build first" >&2
    exit 1
  fi
done
exec python3 "$here/watch.py" --build "$build" --out "$out" "$@"

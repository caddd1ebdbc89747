#!/usr/bin/env bash
# `tacho watch --keep` on this machine's NVIDIA GPU: what keeping costs loops of PyTorch beside nothing and tacho watch alone, how soon a
# file is there after SIGUSR1, whether it has each launch, and whether its kernels ran between their launch and the wait for them.
# Needs a build (TACHO_BUILD, default ../../build) and a Python with a torch for CUDA.
#   watch_keep.sh [file|cost]... [--loops tiny,eager] [--seconds S]     OUT: folder for results (default .)            about two minutes
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if ! nvidia-smi -L > "$out/gpus.txt" 2>&1; then
  echo "watch_keep.sh: no NVIDIA GPU on this machine (nvidia-smi: $(head -1 "$out/gpus.txt")); nothing was measured" >&2
  exit 77
fi
cat "$out/gpus.txt"
for file in bin/tacho lib/libtacho.so lib/libtacho-watch.so; do
  if [ ! -e "$build/$file" ]; then
    echo "watch_keep.sh: $build/$file is missing: build first" >&2
    exit 1
  fi
done
exec python3 "$here/watch_keep.py" --build "$build" --out "$out" "$@"

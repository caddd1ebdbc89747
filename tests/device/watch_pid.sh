#!/usr/bin/env bash
# `tacho watch PID` on this machine's NVIDIA GPU: PyTorch programs that were started without tacho are watched and left again, three
# times each. Counts against the programs' own, speed before, while and after, a stream that is being captured when tacho comes, losses
# of a training loop.
# Needs a build (TACHO_BUILD, default ../../build) and a Python with a torch for CUDA.
#   watch_pid.sh [--patch-entries] [counts|speed|capture|training|heap]...     OUT: folder for results (default .)      about three minutes
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if ! nvidia-smi -L > "$out/gpus.txt" 2>&1; then
  echo "watch_pid.sh: no NVIDIA GPU on this machine (nvidia-smi: $(head -1 "$out/gpus.txt")); nothing was measured" >&2
  exit 77
fi
cat "$out/gpus.txt"
for file in bin/tacho lib/libtacho.so lib/libtacho-watch.so; do
  if [ ! -e "$build/$file" ]; then
    echo "watch_pid.sh: $build/$file is missing: build first" >&2
    exit 1
  fi
done
exec python3 "$here/watch_pid.py" --build "$build" --out "$out" "$@"

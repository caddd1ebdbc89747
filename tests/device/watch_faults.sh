#!/usr/bin/env bash
# What is hard on `tacho watch` on this machine's NVIDIA GPU: contexts that go with events pending, captures while pairs are open,
# per-thread default streams, resets, forks after CUDA has started, green contexts, the driver by the program's own dlopen, two devices,
# MPS. Counts are compared with what the device itself has counted. Needs a build (TACHO_BUILD, default ../../build), and no torch.
#   watch_faults.sh [contexts|captures|per_thread|reset|forks|green|library|peers|mps]...     OUT: folder for results     about a minute
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if ! nvidia-smi -L > "$out/gpus.txt" 2>&1; then
  echo "watch_faults.sh: no NVIDIA GPU on this machine (nvidia-smi: $(head -1 "$out/gpus.txt")); nothing was measured" >&2
  exit 77
fi
cat "$out/gpus.txt"
for file in bin/tacho lib/libtacho.so lib/libtacho-watch.so; do
  if [ ! -e "$build/$file" ]; then
    echo "watch_faults.sh: $build/$file is missing: build first" >&2
    exit 1
  fi
done
exec python3 "$here/watch_faults.py" --build "$build" --out "$out" "$@"

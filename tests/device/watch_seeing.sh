#!/usr/bin/env bash
# What `tacho watch` shows on this machine's NVIDIA GPU: whether Prometheus' page, OpenTelemetry's messages and the file of sums agree with
# the JSON of the same run, and the GPU's telemetry with nvidia-smi. Needs a build (TACHO_BUILD, default ../../build) and a Python with a
# torch for CUDA.
#   watch_seeing.sh            OUT: folder for results (default .)            about one minute
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if ! nvidia-smi -L > "$out/gpus.txt" 2>&1; then
  echo "watch_seeing.sh: no NVIDIA GPU on this machine (nvidia-smi: $(head -1 "$out/gpus.txt")); nothing was checked" >&2
  exit 77
fi
for file in bin/tacho lib/libtacho.so lib/libtacho-watch.so; do
  if [ ! -e "$build/$file" ]; then
    echo "watch_seeing.sh: $build/$file is missing: build first" >&2
    exit 1
  fi
done
exec python3 "$here/watch_seeing.py" --build "$build" --out "$out"

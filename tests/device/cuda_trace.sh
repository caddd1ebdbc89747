#!/usr/bin/env bash
# Traces CUDA and PyTorch programs on this machine's NVIDIA GPU and prints a table of verdicts against bare CUPTI and
# torch.profiler. Needs a build (TACHO_BUILD, default ../../build) made with CUDA's headers and nvcc.
#   cuda_trace.sh [sections...]     see cuda_trace.py; OUT: folder for results (default .)
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if ! nvidia-smi -L > "$out/gpus.txt" 2>&1; then
  echo "cuda_trace.sh: no NVIDIA GPU on this machine (nvidia-smi: $(head -1 "$out/gpus.txt")); nothing was measured" >&2
  exit 77
fi
cat "$out/gpus.txt"
for file in bin/tacho lib/libtacho.so lib/libcupti_floor.so examples/launch_storm_cuda tests/device/cuda_endings tests/device/trace_facts; do
  if [ ! -e "$build/$file" ]; then
    echo "cuda_trace.sh: $build/$file is missing: build with the CUDA toolkit installed" >&2
    exit 1
  fi
done
# The bare CUPTI client is linked to CUPTI: the toolkit's, which is often not on the loader's path.
for folder in "${CUDA_HOME:-/usr/local/cuda}"/{lib64,extras/CUPTI/lib64,targets/x86_64-linux/lib}; do
  if [ -e "$folder/libcupti.so" ]; then export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; break; fi
done
exec python3 "$here/cuda_trace.py" --build "$build" --out "$out" "$@"

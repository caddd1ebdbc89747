#!/usr/bin/env bash
# Judges the findings about traces by time: programs with a fault and their mends, on this machine's GPU. Says of each whether
# tacho finds the fault and not the mend, and whether the mend saved what the finding promised.
# Needs a build (TACHO_BUILD, default ../../build); its CUDA program is compiled here when it is not there, or carried along.
#   trace_findings.sh      OUT: folder for results (default .)        about one minute
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if ! nvidia-smi -L > "$out/gpus.txt" 2>&1; then
  echo "trace_findings.sh: no NVIDIA GPU on this machine (nvidia-smi: $(head -1 "$out/gpus.txt")); nothing was measured" >&2
  exit 77
fi
cat "$out/gpus.txt"
cuda=${CUDA_HOME:-/usr/local/cuda}
mkdir -p "$build/tests/device"
if [ ! -e "$build/tests/device/cuda_trace_findings" ]; then
  "$cuda/bin/nvcc" -O2 -arch=native -std=c++17 -o "$build/tests/device/cuda_trace_findings" "$here/cuda_trace_findings.cu" || {
    echo "trace_findings.sh: nvcc could not build cuda_trace_findings" >&2
    exit 1
  }
fi
for folder in "$cuda"/{lib64,extras/CUPTI/lib64,targets/x86_64-linux/lib}; do
  if [ -e "$folder/libcupti.so" ]; then export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; break; fi
done
exec python3 "$here/trace_findings.py" --build "$build" --out "$out"

#!/usr/bin/env bash
# Who holds memory, on this machine's NVIDIA GPU: the sum of live bytes beside torch.cuda.memory_allocated() at every step, snapshots
# of torch beside its own statistics, out of memory, CuPy's pool beside its own sums, lines of a C program's calls of CUDA's driver,
# and what --memory costs on top of --torch-trace.
# Needs a build (TACHO_BUILD, default ../../build) and a Python with a torch for CUDA.
#   memory.sh         OUT: folder for results (default .)            about three minutes
#   memory.sh PART    only this: steps, snapshots, oom, cupy, lines, cost (less than two minutes)
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if ! nvidia-smi -L > "$out/gpus.txt" 2>&1; then
  echo "memory.sh: no NVIDIA GPU on this machine (nvidia-smi: $(head -1 "$out/gpus.txt")); nothing was measured" >&2
  exit 77
fi
cat "$out/gpus.txt"
if [ ! -e "$build/bin/tacho" ]; then
  echo "memory.sh: $build/bin/tacho is missing: build first" >&2
  exit 1
fi
# Carried binaries come without the build's link to Python's part.
export TACHO_PYTHON=$here/../../python
exec python3 "$here/memory.py" --build "$build" --out "$out" ${1:+--part "$1"}

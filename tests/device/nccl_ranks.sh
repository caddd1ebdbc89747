#!/usr/bin/env bash
# Ranks over NCCL on this host's NVIDIA GPUs (two at least): DDP and FSDP traced rank by rank, `tacho ranks` against torch.profiler,
# the gradients' bytes and planted delays; prints a table of verdicts. Needs a build (TACHO_BUILD, default ../../build) and a Python
# with a torch for CUDA.
#   nccl_ranks.sh            OUT: folder for results (default .)        about three minutes
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${TACHO_BUILD:-$here/../../build}
out=${OUT:-.}
if [ "$(nvidia-smi -L 2>/dev/null | wc -l)" -lt 2 ]; then
  echo "nccl_ranks.sh: two NVIDIA GPUs are needed; nothing was measured" >&2
  exit 77
fi
for file in bin/tacho lib/libtacho.so; do
  if [ ! -e "$build/$file" ]; then
    echo "nccl_ranks.sh: $build/$file is missing: build first" >&2
    exit 1
  fi
done
exec python3 "$here/nccl_ranks.py" --build "$build" --out "$out"

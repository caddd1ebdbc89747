#!/bin/bash
# tacho roofline on an NVIDIA GPU. Prints a verdict table.
#   points   counters of kernels with known FLOPs and bytes, and of cuBLAS, against what was computed and timed
#   suite    the ceilings against the device's peaks, cuBLAS and a copy by PyTorch in the same run
# usage: SECTIONS="points suite" cuda_roofline.sh [build folder]; results go to $OUT, or to a temporary folder.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-${TACHO_BUILD:-$here/../../build}}
tacho=$build/bin/tacho
out=${OUT:-$(mktemp -d)}
export XDG_CACHE_HOME=$(mktemp -d)
if ! nvidia-smi -L; then
  echo "cuda_roofline.sh: no NVIDIA GPU on this machine; nothing was measured" >&2
  exit 77
fi
for folder in "${CUDA_HOME:-/usr/local/cuda}"/{lib64,extras/CUPTI/lib64,targets/x86_64-linux/lib}; do
  if [ -e "$folder/libcupti.so" ]; then export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; break; fi
done
code=0
for section in ${SECTIONS:-points suite}; do
  case $section in
    points) python3 "$here/cuda_roofline.py" points "$build" "$out" || code=1 ;;
    suite)
      python3 "$here/cuda_roofline.py" gemm "$out/before.json" || exit 1
      begin=$(date +%s.%N)
      "$tacho" roofline --format json -o "$out/roofline.json" --overwrite || echo "exit code $?"
      end=$(date +%s.%N)
      python3 "$here/cuda_roofline.py" gemm "$out/after.json" || exit 1
      python3 "$here/cuda_roofline.py" judge "$out/roofline.json" "$out/before.json" "$out/after.json" \
        "$(python3 -c "print($end - $begin)")" || code=1 ;;
    *) echo "cuda_roofline.sh: no section $section; there are points and suite" >&2; exit 1 ;;
  esac
done
exit $code

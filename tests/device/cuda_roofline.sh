#!/bin/bash
# tacho roofline on an NVIDIA GPU, judged against cuBLAS and a copy by PyTorch in the same run. Prints a verdict table.
# usage: cuda_roofline.sh [path of tacho]; results go to $OUT, or to a temporary folder.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tacho=${1:-$here/../../build/bin/tacho}
out=${OUT:-$(mktemp -d)}
export XDG_CACHE_HOME=$(mktemp -d)
python3 "$here/cuda_roofline.py" gemm "$out/before.json" || exit 1
begin=$(date +%s.%N)
"$tacho" roofline --format json -o "$out/roofline.json" --overwrite || echo "exit code $?"
end=$(date +%s.%N)
python3 "$here/cuda_roofline.py" gemm "$out/after.json" || exit 1
python3 "$here/cuda_roofline.py" judge "$out/roofline.json" "$out/before.json" "$out/after.json" "$(python3 -c "print($end - $begin)")"

#!/usr/bin/env bash
# Counters of regions on a real GPU: tests/device/regions.sh, from the repository root, tacho built in $TACHO_BUILD (default build).
set -u
if ! nvidia-smi -L; then
  echo "regions.sh: no NVIDIA GPU on this machine; nothing was counted" >&2
  exit 77
fi
for folder in "${CUDA_HOME:-/usr/local/cuda}"/{lib64,extras/CUPTI/lib64,targets/x86_64-linux/lib}; do
  if [ -e "$folder/libcupti.so" ]; then export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; break; fi
done
build=$(cd "${TACHO_BUILD:-build}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place" || exit 1
ln -s "$build/bin/tacho" rocprofv3
wrong=0
check() {  # NAME EXPECTED FOUND
  if [ "$2" = "$3" ]; then echo "ok     $1: $3"; else echo "WRONG  $1: $3, expected $2"; wrong=$((wrong + 1)); fi
}
counted() {  # the dispatches of a file of counters that have a value
  python3 - "$1" <<'PYTHON'
import csv, pathlib, sys
path = pathlib.Path(sys.argv[1])
rows = list(csv.DictReader(path.open())) if path.exists() else []
print(",".join(sorted({row["Dispatch_Id"] for row in rows if row["Counter_Value"]}, key=int)))
PYTHON
}
run() { ./rocprofv3 "$@" 2>errors | tee output; sed 's/^/       /' errors; }
run --pmc sm__inst_executed_pipe_alu.sum --selected-regions -o one -- python3 "$here/regions.py"
check "one pass, memory" "result 8" "$(cat output)"
check "one pass, launches" "3,4,5" "$(counted one_counter_collection.csv)"
run --pmc sm__inst_executed_pipe_alu.sum --pmc lts__t_sectors.sum --replay-mode kernel --kernel-replay-beta-enabled --selected-regions -o two -- \
  python3 "$here/regions.py"
check "kernel replay, memory" "result 8" "$(cat output)"
check "kernel replay, launches" "3,4,5" "$(counted two_counter_collection.csv)"
run --pmc sm__inst_executed_pipe_alu.sum -o all -- python3 "$here/regions.py"
check "without regions" "1,2,3,4,5,6,7,8" "$(counted all_counter_collection.csv)"
run --pmc sm__inst_executed_pipe_alu.sum --selected-regions -o never -- python3 "$here/regions.py" never
check "never resumed" 1 "$(tr '\n' ' ' <errors | tr -s ' ' | grep -c 'called no roctxProfilerResume()')"
if [ "$wrong" = 0 ]; then echo "regions.sh: all good"; else echo "regions.sh: $wrong wrong"; fi
exit "$wrong"

#!/bin/bash
# Perfetto's model of a real GPU: a recorded run and a run with counters, exported, checked and read back.
#   [BUILD=build] tests/device/perfetto.sh [OUT]
# Needs a GPU with its runtime, and cuda_kernels in the build folder or nvcc. With PERFETTO=FOLDER (a checkout of google/perfetto, and python3-protobuf) every packet
# is decoded by Perfetto's own .proto files as well. Prints a line a check and a verdict; OUT gets the files.
set -uo pipefail
cd "$(dirname "$0")/../.."
tacho=$PWD/${BUILD:-build}/bin/tacho
out=${1:-${OUT:-$(mktemp -d)}}
mkdir -p "$out"
wrong=0
check() {  # words, whether it is so (0 = yes)
  if [[ $2 == 0 ]]; then echo "  $1: ok"; else echo "  $1: FAILED"; wrong=$((wrong + 1)); fi
}
ask() { "$tacho" query "$1" "$2" --output-format csv 2>/dev/null | tail -n +2; }
app=$PWD/${BUILD:-build}/tests/device/cuda_kernels
if [[ ! -e $app ]]; then
  "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" -O2 -arch=native -std=c++17 -o "$app" tests/device/cuda_kernels.cu ||
    { echo "perfetto.sh: $app is missing and nvcc could not build it" >&2; exit 1; }
fi
for folder in "${CUDA_HOME:-/usr/local/cuda}"/{lib64,extras/CUPTI/lib64,targets/x86_64-linux/lib}; do
  if [[ -e $folder/libcupti.so ]]; then export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; break; fi
done
"$tacho" trace -o "$out/run.tacho" --overwrite -- "$app" graph 20 >"$out/trace.log" 2>&1 || { tail -5 "$out/trace.log"; exit 1; }
"$tacho" export "$out/run.tacho" -f pftrace -o "$out/run.pftrace" --overwrite >/dev/null
for table in dispatch copy fill; do
  sql="SELECT count(*), total(duration), count(DISTINCT correlation) FROM tacho.$table"
  mine=$(ask "$out/run.tacho" "$sql") back=$(ask "$out/run.pftrace" "$sql")
  [[ $mine == "$back" ]]
  check "$table: rows, time and correlations come back ($mine)" $?
done
sql="SELECT name, architecture, uuid, driver FROM tacho.device WHERE id > 0"
[[ $(ask "$out/run.tacho" "$sql") == $(ask "$out/run.pftrace" "$sql") ]]
check "the GPU comes back: $(ask "$out/run.pftrace" "$sql")" $?
sql="SELECT count(*) FROM tacho.dispatch d JOIN tacho.api a ON a.correlation = d.correlation"
[[ $(ask "$out/run.tacho" "$sql") == $(ask "$out/run.pftrace" "$sql") ]]
check "calls and kernels belong together: $(ask "$out/run.pftrace" "$sql")" $?
metrics="sm__throughput.avg.pct_of_peak_sustained_elapsed gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
if "$tacho" rocprofv3 --pmc $metrics --keep-trace "$out/counters.tacho" -d "$out/pmc" -- "$app" all 2 >"$out/pmc.log" 2>&1; then
  "$tacho" export "$out/counters.tacho" -f pftrace -o "$out/counters.pftrace" --overwrite >/dev/null
  sql="SELECT c.name, count(*), round(total(v.value), 3) FROM tacho.counter_value v JOIN tacho.counter c ON c.id = v.dim GROUP BY 1 ORDER BY 1"
  [[ -n $(ask "$out/counters.tacho" "$sql") && $(ask "$out/counters.tacho" "$sql") == $(ask "$out/counters.pftrace" "$sql") ]]
  check "metrics of the page of kernels come back: $(ask "$out/counters.pftrace" "$sql" | tr '\n' ' ')" $?
else
  echo "  counters: not run: $(tail -1 "$out/pmc.log")"
fi
if [[ -n ${PERFETTO:-} ]]; then
  tests/peers/perfetto.sh "$tacho" "$out"/*.tacho
  [[ $? == 0 || $? == 77 ]]
  check "Perfetto's own .proto files" $?
fi
if [[ $wrong == 0 ]]; then echo "perfetto: good"; else echo "perfetto: $wrong FAILED"; fi
exit "$((wrong > 0))"

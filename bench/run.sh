#!/usr/bin/env bash
# The figures of the core: marker and call cost, launch storm, bytes a row, stats, start-up, package size. Prints one line
# a figure with its goal. Machines are noisy: pairs are interleaved, medians with 95 % intervals are printed.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release
build=$PWD/build
export TACHO_DATA=${TACHO_DATA:-$PWD/../shared/data}
export POCL_CACHE_DIR=${POCL_CACHE_DIR:-$build/pocl-cache}
mkdir -p "$POCL_CACHE_DIR"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
tacho="$build/bin/tacho"
pairs=${PAIRS:-15}

echo "== markers (goal: pair <= 60 ns)"
"$tacho" trace -q -o markers.tacho --overwrite -- "$build/bench/marker_bench" || true

echo "== OpenCL layer, a call that does next to nothing (goal: traced - untraced <= 120 ns)"
for _ in 1 2 3; do
  plain=$("$build/bench/opencl_call" | awk '{print $1}')
  traced=$("$tacho" trace -q -o call.tacho --overwrite -- "$build/bench/opencl_call" | awk '{print $1}')
  awk -v a="$traced" -v b="$plain" 'BEGIN { printf "untraced %.1f ns, traced %.1f ns, difference %.1f ns\n", b, a, a - b }'
done

echo "== enqueue storm on PoCL"
"$build/examples/many_kernels" >/dev/null
"$build/../bench/paired.py" --name "storm traced/untraced" --pairs "$pairs" --goal 1.05 --value '([0-9.]+) ns each until' -- \
  "$tacho" trace -q -o storm.tacho --overwrite -- "$build/examples/many_kernels" --vs "$build/examples/many_kernels"
rows=$("$tacho" info --tables storm.tacho | awk '/^(dispatch|api|copy|fill|allocation|sync)/ {sum += $2} END {print sum}')
size=$(stat -c %s storm.tacho)
awk -v s="$size" -v r="$rows" 'BEGIN { printf "storm.tacho: %d rows, %.2f bytes a row (goal <= 12)\n", r, s / r }'

echo "== trace file"
"$build/bench/trace_bench"

echo "== start"
"$build/../bench/paired.py" --name "tacho --help - true" --difference ms --goal 5 --pairs "$pairs" -- "$tacho" --help --vs /bin/true

echo "== what a recorder adds to a short run, start and end (goal: 30 ms)"
rocprofv3="$build/personalities/rocprofv3"
vcopy=("$build/examples/vcopy" -n 65536 -b 256 -i 2)
for program in true vcopy; do
  [ "$program" = true ] && words=(/bin/true) || words=("${vcopy[@]}")
  "$build/../bench/paired.py" --name "tacho trace $program" --difference ms --goal 30 --pairs "$pairs" -- \
    "$tacho" trace -q -o short.tacho --overwrite -- "${words[@]}" --vs "${words[@]}"
  "$build/../bench/paired.py" --name "rocprofv3 $program" --difference ms --goal 30 --pairs "$pairs" -- \
    "$rocprofv3" --sys-trace --stats -o short --overwrite -- "${words[@]}" --vs "${words[@]}"
done

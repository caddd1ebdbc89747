#!/usr/bin/env bash
# The figures of the core against their goals: a table on standard output, the runs themselves on standard error. Machines
# are noisy: pairs are interleaved (ABBA), medians with 95 % bootstrap intervals decide, and an interval wider than the
# margin is "not resolved". PAIRS=N changes the number of pairs (default 15), QUICK=1 leaves out what takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release >&2
source=$PWD
build=$PWD/build
export TACHO_DATA=${TACHO_DATA:-$PWD/../shared/data}
export POCL_CACHE_DIR=${POCL_CACHE_DIR:-$build/pocl-cache}
mkdir -p "$POCL_CACHE_DIR"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
tacho="$build/bin/tacho"
pairs=${PAIRS:-15}

rows=()
row() { rows+=("$1|$2|$3|$4"); printf '%s: %s (goal %s) %s\n' "$@" >&2; }
# judge VALUE GOAL: met when VALUE <= GOAL
judge() { awk -v v="$1" -v g="$2" 'BEGIN { print (v <= g ? "met" : "missed") }'; }
# smallest of several runs of a command that prints a number
smallest() { local n=$1 best="" value; shift; for _ in $(seq "$n"); do
  value=$("$@"); best=$(awk -v a="$best" -v b="$value" 'BEGIN { print (a == "" || b < a ? b : a) }'); done; echo "$best"; }
# paired NAME GOAL paired.py's arguments...: a row of its ratio
paired() {
  local name=$1 goal=$2 line; shift 2
  line=$("$source/bench/paired.py" --name "$name" --pairs "$pairs" --goal "$goal" "$@")
  row "$name" "$(sed -E 's/^.*: (.*\]).* over.*/\1/' <<<"$line")" "<= $goal" "$(sed -E 's/^.*goal [0-9.]+: //' <<<"$line")"
}

echo "load at the start: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) CPUs" >&2

marker() { "$build/bench/marker_bench" | tee marker.txt >&2; awk '/^tacho.h push\+pop, 12 bytes/ {print $(NF - 1)}' marker.txt; }
value=$(smallest 3 marker)
row "marker push+pop, ns" "$value" "<= 60" "$(judge "$value" 60)"

plain=$(smallest 5 sh -c "$build/bench/opencl_call | cut -d' ' -f1")
traced=$(smallest 5 sh -c "$tacho trace -q -o call.tacho --overwrite -- $build/bench/opencl_call | cut -d' ' -f1")
value=$(awk -v a="$traced" -v b="$plain" 'BEGIN { printf "%.1f", a - b }')
row "OpenCL layer, ns a traced call" "$value" "<= 120" "$(judge "$value" 120)"

storm="$build/examples/many_kernels"
each=(--value '([0-9.]+) ns each until')
for items in 64 1024 16384; do
  count=$((items > 4000 ? 4000 : 20000))
  options=(-s "$items" -n "$count")
  "$storm" "${options[@]}" >/dev/null
  trace=("$tacho" trace -q -o storm.tacho --overwrite -- "$storm" "${options[@]}")
  paired "storm, $items work-items: traced / untraced" 1.05 "${each[@]}" -- "${trace[@]}" --vs "$storm" "${options[@]}"
  paired "storm, $items work-items: traced / PoCL measuring itself" 1.05 "${each[@]}" -- "${trace[@]}" --vs "$storm" "${options[@]}" -p
  paired "storm, $items work-items: traced / a program that asks PoCL for the times itself" 1.05 "${each[@]}" -- "${trace[@]}" --vs "$storm" "${options[@]}" -q
done
"$tacho" trace -q -o storm.tacho --overwrite -- "$storm" >/dev/null
events=$("$tacho" info --tables storm.tacho | awk '/^(dispatch|api|copy|fill|allocation|sync)/ {sum += $2} END {print sum}')
value=$(awk -v s="$(stat -c %s storm.tacho)" -v r="$events" 'BEGIN { printf "%.2f", s / r }')
row "OpenCL trace, bytes a row ($events rows)" "$value" "<= 12" "$(judge "$value" 12)"

paired "overlap example: untraced / traced" 1.05 --value 'overlap ([0-9.]+) %' -- "$build/examples/overlap" -n 60 \
  --vs "$tacho" trace -q -o overlap.tacho --overwrite -- "$build/examples/overlap" -n 60

"$build/bench/trace_bench" | tee trace.txt >&2
while IFS= read -r line; do
  name=$(sed -E 's/ +[0-9]+ rows.*//' <<<"$line")
  count=$(sed -E 's/.* ([0-9]+) rows.*/\1/' <<<"$line")
  value=$(sed -E 's/.* ([0-9.]+) B\/row.*/\1/' <<<"$line")
  goal=$([[ $name == mytrace* ]] && echo 8 || echo 12)
  row "$name, bytes a row ($count rows)" "$value" "<= $goal" "$(judge "$value" "$goal")"
  value=$(sed -E 's/.*both +([0-9.]+) M events.*/\1/' <<<"$line")
  row "$name, decode + encode, M events/s" "$value" ">= 10" "$(judge 10 "$value")"
done < <(grep 'B/row' trace.txt)

if [ -z "${QUICK:-}" ]; then
  text=$("$build/bench/trace_bench" --memory 100000000)
  value=$(sed -E 's/.*, ([0-9]+) MiB with.*/\1/' <<<"$text")
  row "anonymous memory, 100 M events, MiB" "$value" "<= 256" "$(judge "$value" 256)"
  value=$(sed -E 's/.*at most ([0-9]+) MiB.*/\1/' <<<"$("$build/bench/trace_bench" --names 5000000)")
  row "anonymous memory, 5 M markers with texts of their own, MiB" "$value" "<= 256" "$(judge "$value" 256)"
fi

"$build/bench/export_data" ten.tacho 10000000 >/dev/null 2>&1 || true
if [ -s ten.tacho ]; then
  stats() { local begin end; begin=$(date +%s%N); "$tacho" stats ten.tacho >/dev/null; end=$(date +%s%N); echo $(((end - begin) / 1000)); }
  value=$(awk -v u="$(smallest 15 stats)" 'BEGIN { printf "%.1f", u / 1000 }')
  row "stats on 10 M events, warm, ms" "$value" "<= 50" "$(judge "$value" 50)"
fi

start() { local begin end; begin=$(date +%s%N); "$tacho" --help >/dev/null; end=$(date +%s%N); echo $(((end - begin) / 1000)); }
value=$(awk -v u="$(smallest 25 start)" 'BEGIN { printf "%.2f", u / 1000 }')
row "start of tacho --help, ms" "$value" "<= 5" "$(judge "$value" 5)"

rocprofv3="$build/personalities/rocprofv3"
vcopy=("$build/examples/vcopy" -n 65536 -b 256 -i 2)
for program in true vcopy; do
  [ "$program" = true ] && words=(/bin/true) || words=("${vcopy[@]}")
  paired "short run ($program), tacho trace adds, ms" 30 --difference ms -- \
    "$tacho" trace -q -o short.tacho --overwrite -- "${words[@]}" --vs "${words[@]}"
  paired "short run ($program), rocprofv3 adds, ms" 30 --difference ms -- \
    "$rocprofv3" --sys-trace --stats -o short --overwrite -- "${words[@]}" --vs "${words[@]}"
done

echo "load at the end: $(cut -d' ' -f1-3 /proc/loadavg)" >&2
printf '%s\n' "figure|measured|goal|verdict" "${rows[@]}" | column -t -s '|'

#!/bin/bash
# The cost and accuracy of system profiling. usage: bench/sys.sh [BUILD] [SECTION...]
#   overhead   CPU time of a program with 100 Hz and 1 kHz (timers of CPU time and of wall time) against without, paired;
#              goals 1.01, 1.03; and the cost of a timer of 1 kHz with an empty handler on this machine (CLOCKS, RATES, PAIRS)
#   decode     unwinding and symbolising a million samples                             goal 5 s
#   bytes      MB/s of trace at 100 Hz with 16 busy threads                            goal 1
#   shares     a program of known shares (70/20/10), with and without frame pointers   goal within 2 points
#   perf       shares of functions against perf record on the same program             goal within 3 points
# Programs run for seconds, so that the cost of a start (some 10 ms) does not count as sampling. Load matters: the first line
# says it.
set -eu
here=$(dirname "$(realpath "$0")")
build=$(realpath "${1:-$here/../build}")
shift || true
sections=${*:-decode shares perf bytes overhead}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tacho=$build/bin/tacho
tests=$here/../tests/capture/source/sampler
echo "load $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) CPUs, $(uname -r)"
cc -O2 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -o "$work/shares_fp" "$tests/shares.c" -lpthread
cc -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -o "$work/shares_nofp" "$tests/shares.c" -lpthread
cat > "$work/shares.py" <<'PYTHON'
import json, subprocess, sys
tacho, file = sys.argv[1:]
rows = json.loads(subprocess.run([tacho, "stats", file, "--by", "function", "--output-format", "json"], stdout=subprocess.PIPE, check=True).stdout)["rows"]
whole = sum(row[2] for row in rows) or 1
print(" ".join(f"{100 * sum(row[3] for row in rows if row[0] == name) / whole:.1f}" for name in ("heavy", "medium", "light")), sum(row[1] for row in rows))
PYTHON
for section in $sections; do
  case $section in
    decode) TACHO_BUILD=$build "$build/bench/samples_bench" ;;
    shares)
      for kind in fp nofp; do
        "$tacho" trace -q --overwrite -o "$work/t.tacho" --sampler timer --sample-hz 1000 --sample-clock wall -- "$work/shares_$kind" 20000
        echo "shares, $kind (70 20 10; samples): $(python3 "$work/shares.py" "$tacho" "$work/t.tacho")"
      done ;;
    perf)
      "$tacho" trace -q --overwrite -o "$work/t.tacho" --sampler timer --sample-hz 250 -- "$work/shares_fp" 40000
      echo "tacho, timer:          $(python3 "$work/shares.py" "$tacho" "$work/t.tacho")"
      "$tacho" trace -q --overwrite -o "$work/p.tacho" --sampler perf --sample-hz 1000 -- "$work/shares_fp" 40000
      echo "tacho, from outside:   $(python3 "$work/shares.py" "$tacho" "$work/p.tacho")"
      if command -v perf > /dev/null && perf record -q -e cpu-clock -F 1000 -o "$work/perf.data" -- "$work/shares_fp" 40000 > /dev/null 2>&1; then
        perf report -i "$work/perf.data" --stdio --no-children -q 2> /dev/null | awk '/heavy|medium|light/ {printf "perf record: %s %s\n", $1, $NF}'
      else
        echo "perf record does not work here"
      fi ;;
    bytes)
      begin=$(date +%s%N)
      "$tacho" trace -q --overwrite -o "$work/b.tacho" --sampler timer --sample-hz 100 --sample-clock wall -- /usr/bin/python3 -c '
import threading, time
def work(until):
    while time.time() < until: sum(range(1000))
threads = [threading.Thread(target=work, args=(time.time() + 10,)) for _ in range(16)]
for t in threads: t.start()
for t in threads: t.join()'
      seconds=$(( ($(date +%s%N) - begin) / 1000000 ))
      echo "16 threads at 100 Hz: $(stat -c %s "$work/b.tacho") bytes in $seconds ms = $(( $(stat -c %s "$work/b.tacho") / seconds )) kB/s (goal 1000)" ;;
    overhead)
      cat > "$work/cpu.py" <<'PYTHON'
import os, resource, subprocess, sys
if "TIMER_FLOOR" in os.environ: os.environ["LD_PRELOAD"] = os.environ["TIMER_FLOOR"]
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print("cpu", usage.ru_utime + usage.ru_stime)
PYTHON
      cc -O2 -shared -fPIC -o "$work/floor.so" "$here/timer_floor.c"
      for clock in ${CLOCKS:-cpu wall}; do
        for hz in ${RATES:-100 1000}; do
          goal=$([ "$hz" = 100 ] && echo 1.01 || echo 1.03)
          for program in "$work/shares_nofp 5000" "/usr/bin/env PYTHONHASHSEED=0 /usr/bin/setarch -R /usr/bin/python3 $tests/shares.py 1600"; do
            "$here/paired.py" --pairs "${PAIRS:-21}" --goal "$goal" --value 'cpu ([0-9.]+)' --name "$hz Hz of $clock time, ${program##*/}" -- \
              "$tacho" trace -q --overwrite -o "$work/t.tacho" --sampler timer --sample-hz "$hz" --sample-clock "$clock" -- /usr/bin/python3 "$work/cpu.py" $program \
              --vs /usr/bin/python3 "$work/cpu.py" $program
          done
        done
      done
      program="$work/shares_nofp 5000"
      "$here/paired.py" --pairs "${PAIRS:-21}" --value 'cpu ([0-9.]+)' --name "an empty handler, 1000 Hz of wall time, ${program##*/}" -- \
        /usr/bin/env TIMER_FLOOR="$work/floor.so" /usr/bin/python3 "$work/cpu.py" $program --vs /usr/bin/python3 "$work/cpu.py" $program ;;
    *) echo "sys.sh: no section '$section'" >&2; exit 2 ;;
  esac
done

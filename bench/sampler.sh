#!/bin/bash
# Cost of call-stack sampling in the program: CPU time of the sampled program against the same program alone, paired.
# usage: bench/sampler.sh [BUILD]     goals: 100 Hz <= 1.01, 1 kHz <= 1.03
set -eu
build=$(realpath "${1:-build}")
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O2 -fomit-frame-pointer -o "$work/shares" "$here/../tests/sampler/shares.c" -lpthread
# Prints the CPU seconds of the command (user + system, children too).
cat > "$work/cpu.py" <<'PYTHON'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print("cpu", usage.ru_utime + usage.ru_stime)
PYTHON
for hz in 100 1000; do
  goal=$([ $hz = 100 ] && echo 1.01 || echo 1.03)
  for program in "$work/shares 5000" "/usr/bin/python3 $here/../tests/sampler/shares.py 400"; do
    "$here/paired.py" --pairs "${PAIRS:-15}" --goal $goal --value 'cpu ([0-9.]+)' --name "$hz Hz, ${program##*/}" -- \
      "$build/bin/tacho" trace -q --overwrite -o "$work/t.tacho" --sampler timer --sample-hz $hz -- \
      /usr/bin/python3 "$work/cpu.py" $program --vs /usr/bin/python3 "$work/cpu.py" $program
  done
done

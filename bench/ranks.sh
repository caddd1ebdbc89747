#!/bin/bash
# Wall time, processor time and peak memory of `tacho ranks`: eight recorded ranks (the four of ranks4 twice), and synthetic ranks, no
# two alike. Published figures of other tools: TraceLens takes about 45 s for the report of 8 ranks (pull request 599);
# HTA takes up to 950 GB of memory for 200 GB of files (HolisticTraceAnalysis issue 250). The goals are 1 s for the eight recorded
# ranks, and 60 s and 1 GB for the synthetic ones on two processors. The load says how much else ran meanwhile.
# The synthetic ranks need about 0.27 MB of disk for each 100,000 events and rank in $TMPDIR, and as much again while tacho runs. With
# TACHO_RANKS_DATA=FOLDER they stay there, and an existing folder is used as it is.
#
# usage: bench/ranks.sh [TACHO [RANKS [EVENTS]]]      data: $TACHO_DATA or ../shared/data; defaults: RANKS 1024, EVENTS 1000000
set -eu
source_folder=$(cd "$(dirname "$0")/.." && pwd)
tacho=${1:-$source_folder/build/bin/tacho}
ranks=${2:-1024}
events=${3:-1000000}
data=${TACHO_DATA:-$source_folder/../shared/data}
maker=$(dirname "$tacho")/../bench/ranks_data
for program in "$tacho" "$maker" /usr/bin/time; do
  [ -x "$program" ] || { echo "bench/ranks.sh: no executable at $program" >&2; exit 1; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

measure() {  # name, inputs, seconds and MB that are the goal
  for _ in 1 2 3; do
    /usr/bin/time -f "%e %U %S %M" -o "$folder/time" "$tacho" ranks "$2" --output-format json > "$folder/answer.json"
    awk -v name="$1" -v seconds="$3" -v most="$4" -v load="$(cut -d' ' -f1 /proc/loadavg)" '{
      printf "%-38s %6.2f s (%s)  %6.1f s of processors  %4.0f MB (%s)  load %s\n", name, $1,
        $1 <= seconds ? "met" : "goal " seconds, $2 + $3, $4 / 1024, $4 / 1024 <= most ? "met" : "goal " most, load }' "$folder/time"
  done
}

if [ -d "$data/ranks4" ]; then
  mkdir "$folder/eight"
  /usr/bin/python3 - "$data/ranks4" "$folder/eight" <<'PYTHON'
import gzip
import re
import sys

source, target = sys.argv[1:]
for rank in range(4):
    text = gzip.open(f"{source}/kineto_rank{rank}.json.gz", "rt").read()
    for to, group in ((rank, "[0, 1, 2, 3]"), (rank + 4, "[4, 5, 6, 7]")):
        out = re.sub(r'"rank": \d+, "world_size": 4', f'"rank": {to}, "world_size": 8', text, count=1)
        with gzip.open(f"{target}/rank{to}.json.gz", "wt", 6) as file:
            file.write(out.replace("[0, 1, 2, 3]", group))
PYTHON
  measure "8 recorded ranks" "$folder/eight" 1 256
else
  echo "bench/ranks.sh: no recorded ranks at $data (set TACHO_DATA)" >&2
fi
many=${TACHO_RANKS_DATA:-$folder/many}
if [ ! -d "$many" ]; then
  mkdir "$many"
  "$maker" "$many" "$ranks" "$events"
fi
measure "$ranks synthetic ranks x $events" "$many" 60 1000

#!/bin/bash
# Wall time and peak memory of `tacho ranks`: eight recorded ranks (the four of ranks4 twice), and synthetic ranks, no two alike.
# For comparison, as published: HTA takes 45 s for 8 ranks (HolisticTraceAnalysis issue 250), TraceLens up to 950 GB of memory
# (issue 599). The synthetic ranks need about 0.3 MB of disk for each 100,000 events and rank.
#
# usage: bench/ranks.sh [TACHO [RANKS [EVENTS]]]      data: $TACHO_DATA or ../shared/data; RANKS 1024, EVENTS 1000000 unless told
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

measure() {  # name, inputs
  for _ in 1 2 3; do
    /usr/bin/time -f "%e %U %M" -o "$folder/time" "$tacho" ranks "$2" --output-format json > "$folder/answer.json"
    awk -v name="$1" '{ printf "%-40s %7.2f s wall  %7.2f s CPU  %7.1f MB\n", name, $1, $2, $3 / 1024 }' "$folder/time"
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
  measure "8 recorded ranks" "$folder/eight"
else
  echo "bench/ranks.sh: no recorded ranks at $data (set TACHO_DATA)" >&2
fi
mkdir "$folder/many"
"$maker" "$folder/many" "$ranks" "$events"
measure "$ranks synthetic ranks x $events events" "$folder/many"

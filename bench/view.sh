#!/bin/bash
# The server of `tacho view` on a large trace: first paint, tiles, search, memory. A trace of 100 million events needs 400 MB of disk
# and is made when FILE does not exist.
#
# usage: bench/view.sh [TACHO [FILE [EVENTS]]]      FILE /tmp/tacho-view-EVENTS.tacho, default EVENTS 100000000
set -eu
source_folder=$(cd "$(dirname "$0")/.." && pwd)
tacho=${1:-$source_folder/build/bin/tacho}
events=${3:-100000000}
file=${2:-${TMPDIR:-/tmp}/tacho-view-$events.tacho}
maker=$(dirname "$tacho")/../bench/view_data
for program in "$tacho" "$maker"; do
  [ -x "$program" ] || { echo "bench/view.sh: no executable at $program" >&2; exit 1; }
done
[ -e "$file" ] || "$maker" "$file" "$events" > /dev/null
cat "$file" > /dev/null  # warm
/usr/bin/python3 "$source_folder/bench/view.py" "$tacho" "$file"

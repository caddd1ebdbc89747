#!/usr/bin/env bash
# How fast a trace is exported: events per second and the peak of anonymous memory for every
# format, on a trace of 10 million events (or $EVENTS), with plain writing of the same bytes beside it.
#
#   bench/export.sh [BUILD]        runs are interleaved with the floor; $RUNS of each (default 5)
set -euo pipefail

build=$(realpath "${1:-build}")
events=${EVENTS:-10000000}
runs=${RUNS:-5}
work=$(mktemp -d "${TMPDIR:-/tmp}/tacho-export-XXXXXX")
trap 'rm -rf "$work"' EXIT

cmake --build "$build" --target tacho export_data >/dev/null
"$build/bench/export_data" "$work/t.tacho" "$events"
python3 "$(dirname "$0")/export.py" "$build/bin/tacho" "$work" "$events" "$runs"

#!/usr/bin/env bash
# Traces as databases, at the size of 5 M operations and 10 M API calls: top, busy, conversions, trimming and queries, each
# in CPU seconds beside SQLite in the same run, and the goals that they have to meet.
#
#   bench/databases.sh [BUILD]     $RUNS of each, interleaved (default 3; the median counts); $COPIES of the recording (494)
#   TACHO_DATA=...                 where rpd/mytrace.rpd and traces/ lie (default: ../shared/data)
#   UPSTREAM=CLONE                 a clone of rocmProfileData: its rpd2tracing.py and rpd_trim.py run too (minutes)
#   WORK=FOLDER                    keep the files there and use them again (default: a folder that is removed)
set -euo pipefail

here=$(realpath "$(dirname "$0")")
build=$(realpath "${1:-$here/../build}")
export TACHO_DATA=${TACHO_DATA:-$here/../../shared/data}
if [ -n "${WORK:-}" ]; then
  work=$(realpath -m "$WORK")
  mkdir -p "$work"
else
  work=$(mktemp -d "${TMPDIR:-/tmp}/tacho-databases-XXXXXX")
  trap 'rm -rf "$work"' EXIT
fi

cmake --build "$build" --target tacho >/dev/null
[ -e "$work/large.rpd" ] || python3 "$here/make_large_rpd.py" "$TACHO_DATA/rpd/mytrace.rpd" "$work/large.rpd" "${COPIES:-494}"
[ -e "$work/large.json" ] || python3 "$here/make_large_json.py" "$TACHO_DATA/traces/kineto_mi300x_resnet_checkpoint.json.gz" "$work/large.json" "${JSON_COPIES:-40}"
python3 "$here/databases.py" "$build" "$work" "${RUNS:-3}"

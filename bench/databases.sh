#!/usr/bin/env bash
# Traces as databases, at the size of 5 M operations and 10 M API calls: top, busy, conversions, trimming and queries, each
# in CPU seconds beside SQLite and upstream's own tools in the same run, and a verdict for each goal. Ends with 1 when one is
# missed.
#
#   bench/databases.sh [BUILD]     $RUNS of each (default 3), in rounds forwards and backwards; $COPIES of the recording (494)
#   TACHO_DATA=...                 where rpd/mytrace.rpd and traces/ lie (default: ../shared/data)
#   UPSTREAM=CLONE                 a clone of github.com/ROCm/rocmProfileData, whose rpd2tracing.py and rpd_trim.py run $PEER_RUNS
#                                  times (default 1; minutes each). Default: a folder rocmProfileData beside this clone or in
#                                  $WORK; where there is none, figures recorded on another machine stand in, and the output says so
#   WORK=FOLDER                    keep the files there and use them again (default: a folder that is removed; 20 GiB are needed)
set -euo pipefail

here=$(realpath "$(dirname "$0")")
build=$(realpath "${1:-$here/../build}")
export TACHO_DATA=${TACHO_DATA:-$(realpath -m "$here/../../shared/data")}
if [ -n "${WORK:-}" ]; then
  work=$(realpath -m "$WORK")
  mkdir -p "$work"
else
  work=$(mktemp -d "${TMPDIR:-/tmp}/tacho-databases-XXXXXX")
  trap 'rm -rf "$work"' EXIT
fi
for folder in "${UPSTREAM:-}" "$here/../../rocmProfileData" "$work/rocmProfileData"; do
  if [ -e "$folder/tools/rpd2tracing.py" ]; then
    UPSTREAM=$(realpath "$folder")
    break
  fi
done
if [ -e "${UPSTREAM:-}/tools/rpd2tracing.py" ]; then
  export UPSTREAM
else
  [ -z "${UPSTREAM:-}" ] || { echo "databases.sh: $UPSTREAM holds no tools/rpd2tracing.py" >&2; exit 2; }
  unset UPSTREAM
fi

cmake --build "$build" --target tacho >/dev/null
[ -e "$work/large.rpd" ] || python3 "$here/make_large_rpd.py" "$TACHO_DATA/rpd/mytrace.rpd" "$work/large.rpd" "${COPIES:-494}"
[ -e "$work/large.json" ] || python3 "$here/make_large_json.py" "$TACHO_DATA/traces/kineto_mi300x_resnet_checkpoint.json.gz" "$work/large.json" "${JSON_COPIES:-40}"
python3 "$here/databases.py" "$build" "$work" "${RUNS:-3}" "${PEER_RUNS:-1}"

#!/bin/bash
# AMD's own rocpd package's summary of databases that tacho writes, beside tacho's sums of the same traces.
#
#   ROCPD=FOLDER tests/peers/rocpd.sh TACHO [FILE...]
#
# The folder is projects/rocprofiler-sdk of a checkout of ROCm/rocm-systems; it is no part of tacho. The compiled part of
# the package (libpyrocpd) is stood in for: it opens databases and reads the schema's files. FILE is a trace that tacho
# reads, by default each one among the recorded data. Leaves with 77 and the reason where something is absent.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [[ $# -lt 1 ]]; then
  sed -n '2,8s/^# \?//p' "$0" >&2
  exit 2
fi
tacho=$1
shift
python=/usr/bin/python3
skip() {
  echo "skipped: $1"
  exit 77
}
package=${ROCPD:-}/source/lib/python/rocpd
share=${ROCPD:-}/source/share/rocprofiler-sdk-rocpd
[[ -f $package/summary.py && -f $share/data_views.sql ]] ||
  skip "ROCPD names no projects/rocprofiler-sdk of ROCm/rocm-systems"
files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  data=${TACHO_DATA:-$here/../../../shared/data}
  shopt -s nullglob
  files=("$data"/traces/*.json.gz "$data"/rpd/*.rpd)
  [[ ${#files[@]} -gt 0 ]] || skip "there are no recorded traces in $data"
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# CMake fills these in when it installs the package.
mkdir "$folder/rocpd"
for file in "$package"/*.py; do
  sed -E 's/@[A-Za-z_]+@/0/g' "$file" >"$folder/rocpd/$(basename "$file")"
done
cp "$here/rocpd_stand_in.py" "$folder/rocpd/libpyrocpd.py"
PYTHONPATH=$folder ROCPD_SQL=$share "$python" "$here/rocpd_summary.py" "$tacho" "$folder" "${files[@]}"

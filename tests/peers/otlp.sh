#!/bin/bash
# Parses tacho's OTLP files by OpenTelemetry's own .proto files and compares their sums with tacho's.
#
#   OTLP_PROTO=FOLDER tests/peers/otlp.sh TACHO [FILE...]
#
# The folder is a checkout of open-telemetry/opentelemetry-proto, which is no part of tacho. Needs Debian's protobuf-compiler
# and python3-protobuf. FILE is a trace of any format, by default each one among the recorded data. Leaves with 77 and the
# reason where something is absent.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [[ $# -lt 1 ]]; then
  sed -n '2,8s/^# \?//p' "$0" >&2
  exit 2
fi
tacho=$(realpath "$1")
shift
python=/usr/bin/python3
skip() {
  echo "skipped: $1"
  exit 77
}
proto=${OTLP_PROTO:-}
[[ -f $proto/opentelemetry/proto/metrics/v1/metrics.proto ]] || skip "OTLP_PROTO names no checkout of opentelemetry-proto"
command -v protoc >/dev/null || skip "there is no protoc"
"$python" -c 'import google.protobuf' 2>/dev/null || skip "$python lacks google.protobuf"
files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  data=${TACHO_DATA:-$here/../../../shared/data}
  shopt -s nullglob
  files=("$data"/traces/*.json.gz "$data"/rpd/*.rpd "$data"/rpd/*.rpd.gz)
  [[ ${#files[@]} -gt 0 ]] || skip "there are no recorded traces in $data"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$proto" && protoc --python_out="$work" opentelemetry/proto/{common/v1/common,resource/v1/resource,metrics/v1/metrics,profiles/v1development/profiles}.proto)
PYTHONPATH=$work "$python" "$here/otlp_sums.py" "$tacho" "$work" "${files[@]}"

#!/bin/bash
# What tacho writes for Perfetto, decoded with Perfetto's own .proto files.
#
#   PERFETTO=FOLDER tests/peers/perfetto.sh TACHO [FILE...]
#
# The folder is a checkout of google/perfetto (its folder protos is enough); it is no part of tacho. Needs Debian's
# protobuf-compiler and python3-protobuf. FILE is a trace that tacho reads, by default each one among the recorded data.
# Checks the fields, interning and order of every packet, and compares sums with those that tacho has of the trace.
# Leaves with 77 and the reason where something is absent.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [[ $# -lt 1 ]]; then
  sed -n '2,9s/^# \?//p' "$0" >&2
  exit 2
fi
tacho=$1
shift
python=/usr/bin/python3
skip() {
  echo "skipped: $1"
  exit 77
}
[[ -f ${PERFETTO:-}/protos/perfetto/trace/trace.proto ]] || skip "PERFETTO names no checkout of google/perfetto"
command -v protoc >/dev/null || skip "there is no protoc (protobuf-compiler)"
"$python" -c 'import google.protobuf' 2>/dev/null || skip "$python lacks google.protobuf (python3-protobuf)"
files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  data=${TACHO_DATA:-$here/../../../shared/data}
  shopt -s nullglob
  files=("$data"/traces/*.json.gz "$data"/rpd/*.rpd)
  [[ ${#files[@]} -gt 0 ]] || skip "there are no recorded traces in $data"
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
gpu=protos/perfetto/trace/gpu
protoc -I "$PERFETTO" --include_imports --descriptor_set_out="$folder/perfetto.bin" \
  protos/perfetto/trace/trace.proto "$gpu/gpu_track_event.proto" "$gpu/gpu_interned_data.proto" 2>"$folder/protoc" ||
  { cat "$folder/protoc" >&2; exit 1; }
"$python" "$here/perfetto_packets.py" "$tacho" "$folder" "${files[@]}"

#!/bin/bash
# HTA's and TraceLens' tables of torch.profiler's files beside those of tacho's exports of the same files.
#
#   HTA=FOLDER TRACELENS=FOLDER tests/peers/hta.sh TACHO [FILE...]
#
# The folders are checkouts of facebookresearch/HolisticTraceAnalysis and AMD-AGI/TraceLens; neither is part of tacho.
# Both need Debian's python3-pandas, python3-plotly, python3-networkx, python3-tqdm and python3-openpyxl. FILE is a trace
# of torch.profiler, by default each one among the recorded data. Leaves with 77 and the reason where something is absent.
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
[[ -d ${HTA:-}/hta || -d ${TRACELENS:-}/TraceLens ]] ||
  skip "neither HTA nor TRACELENS names a checkout of HolisticTraceAnalysis or TraceLens"
missing=$("$python" -c 'from importlib.util import find_spec
print(*(one for one in ("pandas", "plotly", "networkx", "tqdm", "openpyxl") if find_spec(one) is None))')
[[ -z $missing ]] || skip "$python lacks $missing"
files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  data=${TACHO_DATA:-$here/../../../shared/data}
  shopt -s nullglob
  files=("$data"/traces/kineto_*.json.gz "$data"/ranks4/*.json.gz)
  [[ ${#files[@]} -gt 0 ]] || skip "there are no recorded traces in $data"
fi
exec "$python" "$here/torch_tables.py" "$tacho" "${files[@]}"

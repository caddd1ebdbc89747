#!/usr/bin/env bash
# Configures and builds with a CMake preset: scripts/build.sh [preset] [target], default release and everything. Quiet
# unless it fails. The target "product" builds only the files that a user runs: no tests, no benchmarks.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
target=${2:-all}
# A build folder that quickstart.sh has set up leaves the tests and benchmarks out.
everything=()
[ "$target" != all ] || everything=(-DTACHO_TESTS=ON -DTACHO_BENCH=ON)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake --preset "$preset" "${everything[@]}" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
if ! cmake --build --preset "$preset" --target "$target" >"$log" 2>&1; then
  grep -E 'error|Error|FAILED|undefined' "$log" >&2 || tail -40 "$log" >&2
  exit 1
fi
grep -E 'warning:' "$log" >&2 || true

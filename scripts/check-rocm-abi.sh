#!/usr/bin/env bash
# Compares tacho's declarations of rocprofiler-sdk (src/vendor/amd/sdk.h, sdk_counting.h) and those of the tests'
# imitation (tests/rocm/sdk/abi.h) with AMD's own headers: sizes, offsets, enumerators, the functions' parameters. tacho
# itself builds without them.
#   scripts/check-rocm-abi.sh --headers FOLDER...     folders for -I: /opt/rocm/include; or of a source tree, with HIP's and HSA's
# Works with the headers of 0.5 (ROCm 6.3) and later. Exit code 0: they agree; 1: the compiler names the differences.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
[ "${1:-}" = --headers ] && [ $# -ge 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
shift
folders=()
for folder in "$@"; do
  [ -d "$folder" ] || { echo "check-rocm-abi.sh: $folder is no folder" >&2; exit 2; }
  folders+=(-isystem "$folder")
done
"${CXX:-c++}" -std=c++20 -fsyntax-only -w ${CXXFLAGS:-} -D__HIP_PLATFORM_AMD__=1 \
  "${folders[@]}" -I "$here/src" -I "$here/tests/rocm/sdk" "$here/tests/rocm/sdk/check.cpp" || {
  echo "check-rocm-abi.sh: these headers and tacho's declarations differ" >&2
  exit 1
}
echo "tacho's declarations and these headers agree"

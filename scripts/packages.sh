#!/usr/bin/env bash
# Installs the Debian packages that building, running and testing tacho needs. Does nothing, silently, when all are there.
#   scripts/packages.sh [build] [run] [test]      default: build run
set -euo pipefail

build=(g++ cmake ninja-build ccache pkg-config
  libcli11-dev libfmt-dev libexpected-dev libsqlite3-dev libsimdjson-dev libyaml-cpp-dev libprotozero-dev
  libzstd-dev zlib1g-dev libxxhash-dev robin-map-dev libdw-dev libelf-dev liblzma-dev libbz2-dev libcpp-httplib-dev
  opencl-headers ocl-icd-opencl-dev)
run=(ocl-icd-libopencl1 pocl-opencl-icd)
test=(libgtest-dev libbenchmark-dev python3 python3-pyopencl python3-numpy clpeak clinfo openmpi-bin sqlite3
  clang llvm debootstrap python3-torch chromium)

[ $# -gt 0 ] || set -- build run
wanted=()
for group in "$@"; do
  case "$group" in
    build) wanted+=("${build[@]}") ;;
    run) wanted+=("${run[@]}") ;;
    test) wanted+=("${test[@]}") ;;
    *) echo "packages.sh: no group '$group' (build, run, test)" >&2; exit 2 ;;
  esac
done

missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "packages.sh: root is needed to install: ${missing[*]}" >&2; exit 1; }
  sudo=(sudo)
fi
echo "installing ${#missing[@]} packages: ${missing[*]}"
log=$(mktemp)
if ! { "${sudo[@]}" apt-get update && DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -20 "$log" >&2
  echo "packages.sh: apt-get failed; its whole output is in $log" >&2
  exit 1
fi
rm -f "$log"

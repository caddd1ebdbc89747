#!/usr/bin/env bash
# Installs the Debian packages that building, running and testing tacho needs. Does nothing, silently, when all are there.
#   scripts/packages.sh [build] [run] [test] [package]      default: build run; test also fetches Prometheus from Debian,
#                                                           DuckDB's library and Arrow with npm, and ClickHouse's with TACHO_REQUIRE_DATA=1
set -euo pipefail

build=(g++ cmake ninja-build ccache
  libfmt-dev libexpected-dev libsqlite3-dev libyaml-cpp-dev libprotozero-dev
  libzstd-dev zlib1g-dev libxxhash-dev robin-map-dev libdw-dev libelf-dev liblzma-dev libbz2-dev libncurses-dev libcapstone-dev
  opencl-headers ocl-icd-opencl-dev liboclgrind-dev llvm-14-dev)
run=(ocl-icd-libopencl1 pocl-opencl-icd oclgrind)
test=(libgtest-dev clang-format-14 clang-tidy-14 pyflakes3 pycodestyle python3 python3-pyopencl python3-numpy
  python3-pandas python3-torch clpeak clinfo python3-venv python3-yaml python3-ipython python3-uvicorn pkg-config buildah openmpi-bin libopenmpi-dev mpich
  libmpich-dev python3-mpi4py slurmctld slurmd slurm-client gfortran sqlite3 clang clang-19 llvm libomp-14-dev debootstrap
  chromium fonts-dejavu-core)
package=(lowdown dpkg-dev rpm binutils python3 python3-wheel)

[ $# -gt 0 ] || set -- build run
wanted=()
for group in "$@"; do
  case "$group" in
    build) wanted+=("${build[@]}") ;;
    run) wanted+=("${run[@]}") ;;
    test) wanted+=("${test[@]}" "${package[@]}") ;;
    package) wanted+=("${package[@]}") ;;
    *) echo "packages.sh: no group '$group' (build, run, test, package)" >&2; exit 2 ;;
  esac
done

# Node.js and npm build and test the HTML pages (web/dist holds them built); any installation of them will do.
for group in "$@"; do
  [ "$group" = test ] || continue
  command -v node >/dev/null || wanted+=(nodejs)
  command -v npm >/dev/null || wanted+=(npm)
done

missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
# Engines that Debian does not have: tests write and read Parquet with DuckDB's C library, read Arrow's streams with Apache
# Arrow for JavaScript and with DuckDB for JavaScript (its C library has no reader of them), and run SQL in ClickHouse's C
# library. These two are 35 and 130 MB to fetch, 140 and 530 MB on the disk, so only TACHO_REQUIRE_DATA=1 (CI) gets them.
engine() {  # folder of tests/, library
  local folder log
  folder=$(dirname "$0")/../tests/$1
  [ ! -e "$folder/node_modules/$2" ] || return 0
  log=$(mktemp)
  if ! npm ci --prefix "$folder" --no-audit --no-fund >"$log" 2>&1; then
    tail -20 "$log" >&2
    echo "packages.sh: npm ci in tests/$1 failed; its whole output is in $log" >&2
    exit 1
  fi
  rm -f "$log"
}
# Prometheus scrapes `tacho watch` in a test. Installing Debian's package would start a server for good, so that the programs are
# only unpacked.
prometheus() {
  local folder
  folder=$(dirname "$0")/../.cache/prometheus
  command -v prometheus >/dev/null && command -v promtool >/dev/null && return 0
  [ ! -e "$folder/usr/bin/promtool" ] || return 0
  mkdir -p "$folder"
  if ! (cd "$folder" && apt-get -qq download prometheus && dpkg-deb --fsys-tarfile prometheus_*.deb |
    tar -x ./usr/bin/prometheus ./usr/bin/promtool && rm prometheus_*.deb) >"$folder/log" 2>&1; then
    tail -20 "$folder/log" >&2
    echo "packages.sh: Debian's package prometheus could not be fetched; its whole output is in $folder/log" >&2
    exit 1
  fi
}
engines() {
  prometheus
  engine duckdb @duckdb/node-bindings-linux-x64/libduckdb.so
  engine arrow apache-arrow
  [ "${TACHO_REQUIRE_DATA:-}" = 1 ] || return 0
  engine duckdb_wasm @duckdb/duckdb-wasm
  engine clickhouse @chdb/lib-linux-x64-gnu/libchdb.so
}

if [ ${#missing[@]} -eq 0 ]; then
  case " $* " in *" test "*) engines ;; esac
  exit 0
fi

sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "packages.sh: root is needed to install: ${missing[*]}" >&2; exit 1; }
  sudo=(sudo)
fi
echo "installing ${#missing[@]} packages: ${missing[*]}"
log=$(mktemp)
# The caller may watch how far apt-get is: it writes its percentages to the file in APT_STATUS.
apt() { DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get -o APT::Status-Fd=7 "$@" 7>>"${APT_STATUS:-/dev/null}"; }
if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -20 "$log" >&2
  echo "packages.sh: apt-get failed; its whole output is in $log" >&2
  exit 1
fi
rm -f "$log"
case " $* " in *" test "*) engines ;; esac

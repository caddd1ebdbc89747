#!/usr/bin/env bash
# From a fresh Debian 12 to the first result: installs packages, builds the program, its library and an example, traces the
# example, prints where its time went. Tests and benchmarks are scripts/test.sh's business.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/progress.sh
steps 3
APT_STATUS=$(mktemp)
export APT_STATUS
without=()
trap 'rm -f "$APT_STATUS"' EXIT
step "installing Debian packages" scripts/packages.sh build run
# A build folder that scripts/test.sh has set up keeps its tests.
[ -e build/CMakeCache.txt ] || without=(-DTACHO_TESTS=OFF -DTACHO_BENCH=OFF)
step "configuring" cmake --preset release "${without[@]}"
step "building tacho" cmake --build --preset release --target product
mkdir -p build/quickstart
build/bin/tacho trace --overwrite -o build/quickstart/vcopy.tacho -- build/examples/vcopy -n 1048576 -b 256 -i 20

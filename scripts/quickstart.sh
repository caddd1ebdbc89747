#!/usr/bin/env bash
# From a fresh Debian 12 to the first result: installs packages, builds, traces an example, prints where its time went.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/packages.sh build run
scripts/build.sh release
mkdir -p build/quickstart
build/bin/tacho trace --overwrite -o build/quickstart/vcopy.tacho -- build/examples/vcopy -n 1048576 -b 256 -i 20

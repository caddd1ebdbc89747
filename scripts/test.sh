#!/usr/bin/env bash
# Installs what tests need, builds, runs every test. Arguments go to ctest (scripts/test.sh -R trace).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/packages.sh build run test
scripts/build.sh release
export TACHO_DATA=${TACHO_DATA:-$PWD/../shared/data}
# A warm kernel cache: the tests are about tracing, not about PoCL's compiler.
export POCL_CACHE_DIR=${POCL_CACHE_DIR:-$PWD/build/pocl-cache}
mkdir -p "$POCL_CACHE_DIR"
# Tests of real programs under real timers may miss a deadline on a machine that others use too: what fails runs again, at
# most twice, and its failures stay in the output. TACHO_TEST_TRIES=1 shows every flake.
export TACHO_TEST_TRIES=${TACHO_TEST_TRIES:-3}
ctest --test-dir build --output-on-failure --no-tests=error --timeout 300 --repeat "until-pass:$TACHO_TEST_TRIES" \
  -j"$(nproc)" "$@"

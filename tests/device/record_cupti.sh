#!/usr/bin/env bash
# Leaves the pool of traced CUDA programs in $OUT/pool: tacho is stopped before they begin and killed when they have ended, so
# that all that they recorded is still in it. pool_pieces makes a file for tests of it.
set -eu
build=${TACHO_BUILD:-$(dirname "$(realpath "$0")")/../../build}
folder=$(mktemp -d)
mkdir "$folder/pools"
cp "$build/tests/device/cuda_endings" "$folder"
tacho=$(realpath "$build/bin/tacho")
cd "$folder"
TACHO_POOL_DIR=$folder/pools "$tacho" trace -q -o t.tacho --driver-trace --graph-trace node -- \
  sh -c 'sleep 2; ./cuda_endings nosync 60; ./cuda_endings graph 2; ./cuda_endings copies 3; touch done' &
sleep 1
kill -STOP $!
for _ in $(seq 300); do [ -e done ] && break; sleep 0.1; done
kill -KILL $!
cp pools/* "$OUT/pool"
rm -rf "$folder"

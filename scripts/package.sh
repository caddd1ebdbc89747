#!/usr/bin/env bash
# Makes tacho-<version>-<machine>.tar.gz: everything that `cmake --install` installs, stripped. Needs nothing on the
# machine where it is unpacked but glibc. Usage: scripts/package.sh [folder for the archive], default build/.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release
target=${1:-build}
version=$(build/bin/tacho --version | awk '{print $2}')
name=tacho-$version-$(uname -m)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cmake --install build --prefix "$stage/$name" --strip >/dev/null
tar -C "$stage" --owner=0 --group=0 --sort=name -czf "$target/$name.tar.gz" "$name"
echo "$target/$name.tar.gz"

#!/usr/bin/env bash
# Makes tacho-<version>-<machine>.tar.gz and tacho_<version>_<architecture>.deb: everything that `cmake --install` installs,
# stripped. Neither needs anything on the machine where it is unpacked but glibc. Prints the two paths.
#   scripts/package.sh [folder for both]      default build/
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/packages.sh build package >&2
scripts/build.sh release product
target=$(realpath "${1:-build}")
version=$(build/bin/tacho --version | awk '{print $2}')
name=tacho-$version-$(uname -m)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cmake --install build --prefix "$stage/$name" --strip >/dev/null
tar -C "$stage" --owner=0 --group=0 --sort=name -czf "$target/$name.tar.gz" "$name"
(cd "$stage" && cpack --config "$OLDPWD/build/CPackConfig.cmake" -B "$stage/deb" >"$stage/cpack.log" 2>&1) ||
  { cat "$stage/cpack.log" >&2; exit 1; }
# cpack counts the target of every symbolic link: 12 times the program. The true size goes in.
package=$(basename "$stage"/deb/*.deb)
dpkg-deb --raw-extract "$stage/deb/$package" "$stage/raw"
size=$(du --apparent-size -ks --exclude=DEBIAN "$stage/raw" | cut -f1)
sed -i "s/^Installed-Size: .*/Installed-Size: $size/" "$stage/raw/DEBIAN/control"
dpkg-deb --build --root-owner-group "$stage/raw" "$target/$package" >/dev/null
echo "$target/$name.tar.gz"
echo "$target/$package"

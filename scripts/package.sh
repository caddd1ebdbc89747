#!/usr/bin/env bash
# Makes the packages of tacho from the release build, stripped, and prints their paths:
#   tacho-<version>-<machine>.tar.gz                      the relocatable archive
#   tacho_<version>_<architecture>.deb                    for Debian and Ubuntu, with man pages
#   tacho-<version>-1.<machine>.rpm                       for Fedora, RHEL and SUSE, with man pages
#   tacho-<version>-py3-none-manylinux_2_34_<machine>.whl for pip
#   Containerfile                                         an image with the .deb in it
# They need nothing on the machine where they are installed but the glibc that the wheel's name states.
#   scripts/package.sh [folder for them]      default build/
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/packages.sh build package >&2
scripts/build.sh release product
mkdir -p "${1:-build}"
target=$(realpath "${1:-build}")
version=$(build/bin/tacho --version | awk '{print $2}')
name=tacho-$version-$(uname -m)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

quietly() { "$@" >"$stage/log" 2>&1 || { cat "$stage/log" >&2; echo "package.sh: $1 failed" >&2; exit 1; }; }

quietly cmake --install build --prefix "$stage/$name" --strip
tar -C "$stage" --owner=0 --group=0 --sort=name -czf "$target/$name.tar.gz" "$name"
echo "$target/$name.tar.gz"

(cd "$stage" && quietly cpack --config "$OLDPWD/build/CPackConfig.cmake" -B "$stage/deb")
# cpack counts the target of every symbolic link: 12 times the program. The true size goes in.
package=$(basename "$stage"/deb/*.deb)
dpkg-deb --raw-extract "$stage/deb/$package" "$stage/raw"
size=$(du --apparent-size -ks --exclude=DEBIAN "$stage/raw" | cut -f1)
sed -i "s/^Installed-Size: .*/Installed-Size: $size/" "$stage/raw/DEBIAN/control"
quietly dpkg-deb --build --root-owner-group "$stage/raw" "$target/$package"
echo "$target/$package"

quietly rpmbuild -bb --define "_topdir $stage/rpm" --define "tacho_version $version" --define "tacho_staged $stage/$name" \
  --define "_rpmdir $target" --define "_rpmfilename %%{name}-%%{version}-%%{release}.%%{arch}.rpm" scripts/package/tacho.spec
echo "$target/tacho-$version-1.$(uname -m).rpm"

/usr/bin/python3 scripts/package/wheel.py "$stage/$name" "$version" "$target"

cp scripts/package/Containerfile "$target"
echo "$target/Containerfile"

#!/usr/bin/env bash
# Checks and describes a release; the steps of .github/workflows/release.yml use it.
#   scripts/package/release.sh check TAG     is this checkout the release that TAG names? Else a sentence and exit code 1.
#   scripts/package/release.sh notes TAG     prints the part of CHANGELOG.md about it
set -euo pipefail
cd "$(dirname "$0")/../.."

refuse() { echo "release.sh: $1" >&2; exit 1; }

[ $# -eq 2 ] || { sed -n '2,4s/^# *//p' "$0" >&2; exit 2; }
tag=$2
version=$(sed -n 's/^project(tacho VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
notes=$(awk -v title="## ${tag#v}" '/^## / { found = $0 == title || index($0, title " ") == 1; next } found' CHANGELOG.md | sed '/./,$!d')

case $1 in
  check)
    [ "$tag" = "v$version" ] || refuse "$tag is not the tag of this source, whose CMakeLists.txt says version $version: v$version"
    git tag --points-at HEAD | grep -qxF "$tag" || refuse "this checkout is not at $tag: git checkout $tag"
    [ -z "$(git status --porcelain)" ] || refuse "this checkout has changes that are not committed: git status lists them"
    [ -n "$notes" ] || refuse "CHANGELOG.md says nothing about ${tag#v}: write a part headed \"## ${tag#v}\""
    ;;
  notes)
    [ -n "$notes" ] || refuse "CHANGELOG.md has no part headed \"## ${tag#v}\""
    printf '%s\n' "$notes"
    ;;
  *) refuse "there is no '$1': check or notes" ;;
esac

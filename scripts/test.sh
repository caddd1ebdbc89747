#!/usr/bin/env bash
# scripts/test.sh [ctest's arguments]: installs what tests need, builds, runs every test. scripts/test.sh -R trace
# scripts/test.sh --folder FOLDER [arguments]: builds and runs only the unit tests of src/FOLDER, in seconds; the arguments
#   go to GoogleTest (scripts/test.sh --folder trace --gtest_filter='Codec*').
# A test that fails has failed. TACHO_TEST_TRIES=2 (CI) runs it once more, so that one stall of a shared machine does not hide
# every other result, and names it before the summary. More than two of them fail the run. Mend each before the next step.
# TACHO_TIDY=ON (CI) adds the test lint.tidy, TACHO_TIDY=OFF ends that.
set -euo pipefail
cd "$(dirname "$0")/.."
export TACHO_DATA=${TACHO_DATA:-$PWD/../shared/data}
# A warm kernel cache: the tests are about tracing, not about PoCL's compiler.
export POCL_CACHE_DIR=${POCL_CACHE_DIR:-$PWD/build/pocl-cache}

if [ "${1:-}" = --folder ]; then
  folder=${2:?test.sh --folder needs a folder of src/, as in: scripts/test.sh --folder trace}
  shift 2
  folder=${folder#src/}
  folder=${folder#tests/}
  folder=${folder%/}
  grep -qs '^TACHO_TESTS:BOOL=ON' build/CMakeCache.txt || cmake --preset release -DTACHO_TESTS=ON
  programs=$(ninja -C build -t targets all | sed -n 's/^\(test_[a-z0-9_]*\): phony.*/\1/p')
  # The folder's program and those of folders below; a folder without any is part of the program above: format/csv of
  # test_format.
  while ! wanted=$(grep -xE "test_${folder//\//_}(_.*)?" <<<"$programs"); do
    case $folder in
      */*) folder=${folder%/*} ;;
      *)
        echo "test.sh: src/$folder has no unit tests of its own. There are: $(tr '\n' ' ' <<<"${programs//test_/}")" >&2
        exit 2
        ;;
    esac
  done
  mkdir -p "$POCL_CACHE_DIR"
  mapfile -t wanted <<<"$wanted"
  cmake --build build --target "${wanted[@]}"
  status=0
  for program in "${wanted[@]}"; do
    build/tests/"$program" "$@" || status=1
  done
  exit $status
fi

scripts/packages.sh build run test
# A setting lasts in a build folder, until TACHO_TIDY changes it.
[ -z "${TACHO_TIDY:-}" ] || cmake --preset release -DTACHO_TIDY="$TACHO_TIDY" >/dev/null
scripts/build.sh release
mkdir -p "$POCL_CACHE_DIR"
ctest --test-dir build --output-on-failure --no-tests=error --timeout 300 --repeat "until-pass:${TACHO_TEST_TRIES:-1}" \
  -j"$(nproc)" "$@" | awk '
  { failed = $0 ~ /Test +#[0-9]+: .*\*\*\*(Failed|Timeout|Exception)/ }
  match($0, /Test +#[0-9]+: [^ ]+/) {
    name = substr($0, RSTART, RLENGTH)
    sub(/^Test +#[0-9]+: /, "", name)
    if (failed) bad[name] = 1
    else if (/ Passed /) { if (name in bad) { again[name] = 1; ++count } }
  }
  /^[0-9]+% tests passed/ {
    printf "%d tests needed a second try%s\n", count, count ? ":" : ""
    for (name in again) print "  " name
    if (count > 2) print "More than two: this run has failed. Mend each of them before the next step."
  }
  { print; fflush() }
  END { exit count > 2 }'

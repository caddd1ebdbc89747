#!/usr/bin/env bash
# Builds the HTML report from web/src into web/dist/index.html, the one built file that the repository holds. Run it after a
# change in web/ and commit both; the test web.page fails when they differ.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/packages.sh build test
cmake --preset release -DTACHO_TESTS=ON >/dev/null
cmake --build --preset release --target web_page
mkdir -p web/dist
cp build/web/dist/index.html web/dist/index.html
ls -l web/dist/index.html

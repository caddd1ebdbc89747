#!/usr/bin/env bash
# Builds the pages of analyze, view, flame and watch from web/src into web/dist, the only built files that the repository holds. Run it
# after a change in web/ and commit them; the tests web.page, web.view_page, web.flame_page and web.watch_page fail when they differ. Then
# scripts/demo.py makes the pages of docs/demo with them, and e2e.demo_test compares.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/packages.sh build test
cmake --preset release -DTACHO_TESTS=ON >/dev/null
cmake --build --preset release --target web_page
mkdir -p web/dist
cp build/web/dist/index.html build/web/dist/view.html build/web/dist/flame.html build/web/dist/watch.html web/dist/
ls -l web/dist

#!/usr/bin/env bash
# The most expensive kernels of a program: records a run and shows the head of its kernel statistics.
#
#   kernels.sh program [arguments]
#   LINES_SHOWN=20 PROFILE_DIR=/scratch/me kernels.sh python3 train.py
#
# Files go to $PROFILE_DIR (default: profile-<time>), one set per process.
set -euo pipefail

[ $# -gt 0 ] || { echo "usage: kernels.sh program [arguments]" >&2; exit 2; }
command -v rocprofv3 >/dev/null || { echo "kernels.sh: no rocprofv3 in PATH (tacho's is in libexec/tacho/personalities)" >&2; exit 127; }

folder=${PROFILE_DIR:-profile-$(date +%Y%m%d-%H%M%S)}
status=0
rocprofv3 --stats --sys-trace --kernel-trace -d "$folder" -o "%pid%" -- "$@" || status=$?

for file in "$folder"/*_kernel_stats.csv; do
  [ -e "$file" ] || { echo "kernels.sh: no process ran a kernel" >&2; break; }
  echo "$file"
  head -n "$((${LINES_SHOWN:-10} + 1))" "$file"
done
exit "$status"

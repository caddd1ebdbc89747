#!/usr/bin/env bash
# The kernels of every rank of an MPI program: each rank is recorded by itself, into files named after the rank.
#
#   mpi_kernels.sh RANKS program [arguments]
#   MPIRUN="mpirun --hostfile hosts" PROFILE_DIR=$PWD/profile mpi_kernels.sh 8 ./app
#
# On several nodes let PROFILE_DIR be a local scratch folder, so that thousands of ranks do not wait for one file system.
set -euo pipefail

[ $# -gt 1 ] || { echo "usage: mpi_kernels.sh RANKS program [arguments]" >&2; exit 2; }
ranks=$1
shift
folder=${PROFILE_DIR:-profile-$(date +%Y%m%d-%H%M%S)}

# rocprofv3 stands between the launcher and the program: one recorder a rank. It passes signals and exit codes on.
status=0
${MPIRUN:-mpirun} -n "$ranks" rocprofv3 --stats --sys-trace --kernel-trace -d "$folder" -o "rank%rank%_%pid%" -- "$@" || status=$?

echo "kernel time by rank:"
for file in "$folder"/rank*_kernel_stats.csv; do
  [ -e "$file" ] || { echo "mpi_kernels.sh: no rank ran a kernel" >&2; break; }
  # A kernel's name may hold commas: everything up to its closing quote goes; Calls and TotalDurationNs follow.
  sed 's/.*",//' "$file" | awk -F, -v file="$file" 'NR > 1 { total += $2; calls += $1 } END { printf "  %-50s %8d dispatches %12.3f ms\n", file, calls, total / 1e6 }'
done
exit "$status"

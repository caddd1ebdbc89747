#!/usr/bin/env bash
#SBATCH --job-name=kernels
#SBATCH --nodes=1
#SBATCH --ntasks=4
#SBATCH --time=00:15:00
# The kernels of every task of a Slurm job, as statistics and as a timeline for https://ui.perfetto.dev.
#
#   sbatch --gpus-per-task=1 slurm_kernels.sh python3 train.py
#   inside an allocation:  slurm_kernels.sh python3 train.py
#
# Files: $PROFILE_DIR/<job>/task<rank>_*; the default folder is beside the job's output.
set -euo pipefail

[ $# -gt 0 ] || { echo "usage: slurm_kernels.sh program [arguments]" >&2; exit 2; }
folder=${PROFILE_DIR:-$PWD/profile}

# Slurm copies a batch script elsewhere before it runs it; rocprofv3 comes from PATH (module load tacho).
status=0
${SRUN:-srun} rocprofv3 --stats --sys-trace --kernel-trace --output-format csv pftrace \
  -d "$folder/%job%" -o "task%rank%" -- "$@" || status=$?

echo "recorded in $folder/${SLURM_JOB_ID:-0}:"
ls "$folder/${SLURM_JOB_ID:-0}"
exit "$status"

// The table of launchers and its reader (job_rank.h).
#include "base/job_rank.h"

#include <cstdlib>

namespace tacho {
namespace {

using enum RankCondition;

// mpirun in sbatch, torchrun in srun, PRRTE's daemons in srun: the process sees the variables of both, and the outer
// ones describe the launcher or its daemon. So outer launchers come later in the table. RANK and WORLD_SIZE alone come
// last: scripts copy them from any of the others.
constexpr JobLauncher kLaunchers[] = {
    {"torchrun", kWithMarker, "TORCHELASTIC_RUN_ID", {"RANK"}, {"WORLD_SIZE"}, {"LOCAL_RANK"}},
    {"Open MPI", kAlways, nullptr, {"OMPI_COMM_WORLD_RANK"}, {"OMPI_COMM_WORLD_SIZE"}, {"OMPI_COMM_WORLD_LOCAL_RANK"}},
    {"MVAPICH2", kAlways, nullptr, {"MV2_COMM_WORLD_RANK"}, {"MV2_COMM_WORLD_SIZE"}, {"MV2_COMM_WORLD_LOCAL_RANK"}},
    {"PMI", kWithSize, nullptr, {"PMI_RANK"}, {"PMI_SIZE"}, {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"}},
    {"Flux", kAlways, nullptr, {"FLUX_TASK_RANK"}, {"FLUX_JOB_SIZE"}, {"FLUX_TASK_LOCAL_ID"}},
    {"PALS", kAlways, nullptr, {"PALS_RANKID"}, {"PALS_SIZE", "PMI_SIZE"}, {"PALS_LOCAL_RANKID"}},
    {"MPI", kAlways, nullptr, {"MPI_RANK", "MPI_RANKID"}, {"MPI_SIZE", "MPI_NRANKS"}, {"MPI_LOCALRANKID"}},
    {"PMIx", kAlways, nullptr, {"PMIX_RANK"}, {}, {"PMIX_LOCAL_RANK"}},
    {"Slurm",
     kInSlurmStep,
     nullptr,
     {"SLURM_PROCID"},
     {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"},
     {"SLURM_LOCALID"}},
    {"torch.distributed", kWithSize, nullptr, {"RANK"}, {"WORLD_SIZE"}, {"LOCAL_RANK"}},
};

// A whole number below 2^31, else -1. PMIx writes "undefined" as 4294967295, Slurm uses values near it.
int64_t whole_number(const char* text) {
  if (text == nullptr || *text == '\0') return -1;
  int64_t value = 0;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return -1;
    value = value * 10 + (*text - '0');
    if (value > INT32_MAX) return -1;
  }
  return value;
}

template <size_t kCount>
int64_t first_number(const char* const (&names)[kCount], const char* (*lookup)(const char*)) {
  for (const char* const name : names) {
    if (name == nullptr) break;
    if (const int64_t value = whole_number(lookup(name)); value >= 0) return value;
  }
  return -1;
}

// srun gives every task its step's number. A process without one is the batch script, whose SLURM_PROCID is always 0,
// or a shell of salloc (whose step's number is special). Any rank but 0 must be a task's.
bool in_slurm_step(int64_t rank, const char* (*lookup)(const char*)) {
  return rank > 0 || whole_number(lookup("SLURM_STEP_ID")) >= 0 || whole_number(lookup("SLURM_STEPID")) >= 0;
}

JobRank read(const JobLauncher& launcher, const char* (*lookup)(const char*)) {
  JobRank job;
  const int64_t rank = first_number(launcher.rank, lookup);
  if (rank < 0) return job;
  int64_t size = first_number(launcher.size, lookup);
  if (size <= rank) size = -1;  // left over from another job
  if (launcher.condition == kWithSize && size < 0) return job;
  if (launcher.condition == kWithMarker && lookup(launcher.marker) == nullptr) return job;
  if (launcher.condition == kInSlurmStep && !in_slurm_step(rank, lookup)) return job;
  job.launcher = launcher.name;
  job.rank = rank;
  job.size = size;
  job.local_rank = first_number(launcher.local_rank, lookup);
  return job;
}

// The rank from variables that the user named (rocprofv3's --mpi-world-rank-variable), which then count alone.
JobRank of_chosen_variables(const char* (*lookup)(const char*)) {
  const char* const rank = lookup("ROCPROF_MPI_RANK_VAR");
  const char* const size = lookup("ROCPROF_MPI_SIZE_VAR");
  JobRank job;
  if (rank == nullptr || *rank == '\0') return job;
  job.rank = whole_number(lookup(rank));
  if (job.rank < 0) return job;
  job.launcher = "variables";
  job.size = size == nullptr ? -1 : whole_number(lookup(size));
  if (job.size <= job.rank) job.size = -1;
  return job;
}

const char* from_environment(const char* name) {
  return std::getenv(name);
}

}  // namespace

std::span<const JobLauncher> job_launchers() {
  return kLaunchers;
}

JobRank job_rank(const char* (*lookup)(const char* name)) {
  JobRank job = of_chosen_variables(lookup);
  if (job.known()) return job;
  for (const JobLauncher& launcher : kLaunchers) {
    const JobRank found = read(launcher, lookup);
    if (!found.known()) continue;
    if (!job.known()) {
      job = found;
    } else if (found.rank == job.rank) {
      if (job.size < 0) job.size = found.size;
      if (job.local_rank < 0) job.local_rank = found.local_rank;
    }
  }
  return job;
}

JobRank job_rank() {
  return job_rank(from_environment);
}

}  // namespace tacho

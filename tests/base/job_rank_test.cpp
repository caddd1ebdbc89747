// Ranks from launchers: each launcher alone, one inside another, and variables that are no rank.
#include "base/job_rank.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>

namespace tacho {
namespace {

std::map<std::string, std::string> g_variables;

const char* lookup(const char* name) {
  const auto at = g_variables.find(name);
  return at == g_variables.end() ? nullptr : at->second.c_str();
}

struct Case {
  const char* what;
  std::map<std::string, std::string> variables;
  const char* launcher;  // nullptr = no rank
  int64_t rank = -1, size = -1, local_rank = -1;
};

const Case kCases[] = {
    {"nothing", {}, nullptr},
    {"mpirun of Open MPI",
     {{"OMPI_COMM_WORLD_RANK", "5"},
      {"OMPI_COMM_WORLD_SIZE", "8"},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
      {"PMIX_RANK", "5"}},
     "Open MPI",
     5,
     8,
     1},
    {"MVAPICH2",
     {{"MV2_COMM_WORLD_RANK", "2"}, {"MV2_COMM_WORLD_SIZE", "4"}, {"MV2_COMM_WORLD_LOCAL_RANK", "0"}},
     "MVAPICH2",
     2,
     4,
     0},
    {"mpiexec of MPICH",
     {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "3"}, {"MPI_LOCALNRANKS", "4"}},
     "PMI",
     3,
     4,
     3},
    {"Flux", {{"FLUX_TASK_RANK", "6"}, {"FLUX_JOB_SIZE", "16"}, {"FLUX_TASK_LOCAL_ID", "2"}}, "Flux", 6, 16, 2},
    {"flux run of an MPICH program",
     {{"FLUX_TASK_RANK", "6"}, {"FLUX_TASK_LOCAL_ID", "2"}, {"PMI_RANK", "6"}, {"PMI_SIZE", "16"}},
     "PMI",
     6,
     16,
     2},
    {"PALS", {{"PALS_RANKID", "7"}, {"PALS_LOCAL_RANKID", "3"}}, "PALS", 7, -1, 3},
    {"PALS with PMI", {{"PALS_RANKID", "7"}, {"PALS_LOCAL_RANKID", "3"}, {"PMI_SIZE", "8"}}, "PALS", 7, 8, 3},
    {"PMIx alone", {{"PMIX_RANK", "4"}}, "PMIx", 4, -1, -1},
    {"srun --mpi=pmix",
     {{"PMIX_RANK", "4"},
      {"SLURM_PROCID", "4"},
      {"SLURM_STEP_ID", "0"},
      {"SLURM_STEP_NUM_TASKS", "6"},
      {"SLURM_NTASKS", "12"},
      {"SLURM_LOCALID", "1"}},
     "PMIx",
     4,
     6,
     1},
    {"a variable of some MPI", {{"MPI_RANK", "1"}, {"MPI_NRANKS", "2"}}, "MPI", 1, 2, -1},
    {"srun",
     {{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "2"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}},
     "Slurm",
     0,
     4,
     0},
    {"srun, the step's tasks are fewer than the job's",
     {{"SLURM_PROCID", "1"}, {"SLURM_STEPID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_NTASKS", "4"}},
     "Slurm",
     1,
     2,
     -1},
    {"the batch script of sbatch is no task",
     {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "8"}},
     nullptr},
    {"the shell of salloc is no task",
     {{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "4294967290"}, {"SLURM_NTASKS", "4"}},
     nullptr},
    {"a task whose step is not told", {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}}, "Slurm", 3, 8, -1},
    {"mpirun in a batch script",
     {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}},
     "Open MPI",
     3,
     4,
     -1},
    {"mpirun whose daemon srun started: the daemon's number is not the rank",
     {{"SLURM_PROCID", "1"},
      {"SLURM_STEP_ID", "0"},
      {"SLURM_LOCALID", "0"},
      {"OMPI_COMM_WORLD_RANK", "7"},
      {"OMPI_COMM_WORLD_SIZE", "8"}},
     "Open MPI",
     7,
     8,
     -1},
    {"torchrun",
     {{"TORCHELASTIC_RUN_ID", "none"}, {"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "3"}},
     "torchrun",
     3,
     4,
     3},
    {"srun -N 2 torchrun: the task is a node",
     {{"TORCHELASTIC_RUN_ID", "1"},
      {"RANK", "6"},
      {"WORLD_SIZE", "8"},
      {"LOCAL_RANK", "2"},
      {"SLURM_PROCID", "1"},
      {"SLURM_STEP_ID", "0"},
      {"SLURM_NTASKS", "2"}},
     "torchrun",
     6,
     8,
     2},
    {"RANK and WORLD_SIZE set by a script", {{"RANK", "1"}, {"WORLD_SIZE", "2"}}, "torch.distributed", 1, 2, -1},
    {"RANK alone can be anything", {{"RANK", "1"}}, nullptr},
    {"PMI_RANK without a size", {{"PMI_RANK", "2"}}, nullptr},
    {"PMI_RANK with a size that does not fit", {{"PMI_RANK", "2"}, {"PMI_SIZE", "1"}}, nullptr},
    {"a size that does not fit is unknown",
     {{"OMPI_COMM_WORLD_RANK", "4"}, {"OMPI_COMM_WORLD_SIZE", "4"}},
     "Open MPI",
     4,
     -1,
     -1},
    {"an empty variable says nothing", {{"OMPI_COMM_WORLD_RANK", ""}, {"PMIX_RANK", "1"}}, "PMIx", 1, -1, -1},
    {"no number", {{"OMPI_COMM_WORLD_RANK", "1x"}}, nullptr},
    {"a negative number", {{"OMPI_COMM_WORLD_RANK", "-1"}}, nullptr},
    {"PMIx's undefined rank", {{"PMIX_RANK", "4294967295"}}, nullptr},
    {"more digits than a number has", {{"PMIX_RANK", "99999999999999999999999999"}}, nullptr},
};

TEST(JobRank, EveryLauncher) {
  std::set<std::string> seen;
  for (const Case& each : kCases) {
    SCOPED_TRACE(each.what);
    g_variables = each.variables;
    const JobRank job = job_rank(lookup);
    ASSERT_EQ(job.known(), each.launcher != nullptr);
    EXPECT_EQ(job.rank, each.rank);
    EXPECT_EQ(job.size, each.size);
    EXPECT_EQ(job.local_rank, each.local_rank);
    if (each.launcher == nullptr) continue;
    EXPECT_STREQ(job.launcher, each.launcher);
    seen.insert(each.launcher);
  }
  for (const JobLauncher& launcher : job_launchers()) EXPECT_TRUE(seen.contains(launcher.name)) << launcher.name;
}

TEST(JobRank, EveryRankVariableAloneOrWithWhatItNeeds) {
  for (const JobLauncher& launcher : job_launchers())
    for (const char* name : launcher.rank) {
      if (name == nullptr) break;
      SCOPED_TRACE(name);
      g_variables = {{name, "3"}};
      if (launcher.condition == RankCondition::kWithSize) g_variables[launcher.size[0]] = "4";
      if (launcher.condition == RankCondition::kWithMarker) g_variables[launcher.marker] = "1";
      const JobRank job = job_rank(lookup);
      EXPECT_EQ(job.rank, 3);
      EXPECT_STREQ(job.launcher, launcher.name);
    }
}

TEST(JobRank, VariablesThatTheUserNamesCountAlone) {
  g_variables = {{"ROCPROF_MPI_RANK_VAR", "MINE"},
                 {"ROCPROF_MPI_SIZE_VAR", "ALL"},
                 {"MINE", "2"},
                 {"ALL", "4"},
                 {"PMI_RANK", "0"},
                 {"PMI_SIZE", "8"}};
  EXPECT_EQ(job_rank(lookup).rank, 2);
  EXPECT_EQ(job_rank(lookup).size, 4);
  g_variables["ALL"] = "2";
  EXPECT_EQ(job_rank(lookup).size, -1) << "of another job";
  g_variables["MINE"] = "first";
  EXPECT_EQ(job_rank(lookup).rank, 0) << "no number: the launcher's";
}

}  // namespace
}  // namespace tacho

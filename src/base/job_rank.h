// Finds this process's rank in a parallel job. One table lists the variables in which launchers put rank, size and
// local rank. libtacho.so calls this inside traced programs, so it allocates nothing, uses no locale and calls nothing
// but getenv.
#pragma once

#include <cstdint>
#include <span>

namespace tacho {

/// When to believe a launcher's rank variable.
enum class RankCondition : uint8_t {
  kAlways,
  kWithSize,    ///< only together with a size: other tools set the rank variable too
  kWithMarker,  ///< only if the launcher's marker variable is set
  kInSlurmStep  ///< only in a task of srun: Slurm also sets SLURM_PROCID=0 for the batch script itself
};

/// The variables of one launcher. The first of several names that holds a number counts; nullptr ends a list.
struct JobLauncher {
  const char* name;
  RankCondition condition;
  const char* marker;  ///< for kWithMarker, else nullptr
  const char* rank[2];
  const char* size[3];
  const char* local_rank[2];
};

/// All launchers by precedence: those that start processes come before those that start only their daemons.
std::span<const JobLauncher> job_launchers();

/// A process's place in its job. Unknown facts are -1.
struct JobRank {
  const char* launcher = nullptr;  ///< JobLauncher::name; nullptr = not part of a parallel job
  int64_t rank = -1;
  int64_t size = -1;        ///< number of processes in the job
  int64_t local_rank = -1;  ///< rank among the job's processes on this machine
  bool known() const { return launcher != nullptr; }
};

/// The rank that the environment gives. Facts that the first launcher leaves out come from the next in the table that
/// gives the same rank: PMIx knows no size, but the srun that started it does.
JobRank job_rank();

/// The same with `lookup` instead of getenv; it returns nullptr for a variable that is not set.
JobRank job_rank(const char* (*lookup)(const char* name));

}  // namespace tacho

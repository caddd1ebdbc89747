// Finds this process's rank in a parallel job, with one table of the variables in which launchers give rank,
// size and local rank. libtacho.so uses it inside targets, so it allocates nothing, uses no locale and calls
// nothing but getenv.
#pragma once

#include <cstdint>
#include <span>

namespace tacho {

/// When a launcher's rank variable counts.
enum class RankCondition : uint8_t {
  kAlways,
  kWithSize,    ///< only together with a size: other tools set the rank variable, too
  kWithMarker,  ///< only where the launcher's marker variable is set
  kInSlurmStep  ///< only in a task of srun: Slurm also sets SLURM_PROCID=0 for the batch script itself
};

/// The variables of one launcher. Of several names the first that holds a number counts; nullptr ends a list early.
struct JobLauncher {
  const char* name;
  RankCondition condition;
  const char* marker;  ///< for kWithMarker, else nullptr
  const char* rank[2];
  const char* size[3];
  const char* local_rank[2];
};

/// All launchers, in the order of precedence: what starts processes comes before what starts its daemons.
std::span<const JobLauncher> job_launchers();

/// A process's place in its job. Unknown facts are -1.
struct JobRank {
  const char* launcher = nullptr;  ///< JobLauncher::name; nullptr = this is no process of a parallel job
  int64_t rank = -1;
  int64_t size = -1;        ///< processes of the job
  int64_t local_rank = -1;  ///< among those of this machine
  bool known() const { return launcher != nullptr; }
};

/// What the environment says. A fact that the launcher itself leaves out comes from the next one in the table that names
/// the same rank: PMIx tells no size, and the srun that started it does.
JobRank job_rank();

/// The same with another source of variables than getenv; `lookup` returns nullptr for a variable that is not set.
JobRank job_rank(const char* (*lookup)(const char* name));

}  // namespace tacho

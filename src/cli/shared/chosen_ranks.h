// --ranks 0,2-3: which ranks of a parallel job are recorded; the others run as they are. And launchers of parallel jobs
// in a command line.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho::cli {

/// Whether this process's rank is in `list` ("0,2-3"). Without a rank every process is recorded, and `warning` says so.
/// An error for a list that is none.
Result<bool> is_chosen_rank(std::string_view list, std::string& warning);

/// Whether this process is the one of its job that prints the whole summary: the lowest rank that is recorded (`list`
/// as above, empty: all ranks). True outside of jobs of several processes.
bool is_first_rank(std::string_view list);

/// Becomes the program, unrecorded. Returns only when that fails: the exit code, after a sentence to stderr.
int run_as_it_is(const std::vector<std::string>& command);

/// How --help and the tables of options call it.
inline constexpr std::string_view kRanksNames = "--ranks,--profile-mpi-ranks";
inline constexpr std::string_view kRanksHelp = "record only these ranks of a parallel job (0,2-3); the others just run";

/// Where in `command` an MPI launcher stands that starts the program: mpirun, mpiexec, srun, orterun, by name or path,
/// also with a suffix (mpirun.openmpi, mpiexec.hydra), behind `env A=1`, nohup, nice, exec or time, and in `bash -c
/// "..."`.
struct FoundLauncher {
  std::vector<std::string> before;  // env A=1
  std::vector<std::string> words;   // the launcher's command line
};
std::optional<FoundLauncher> find_launcher(std::span<const std::string> command);

}  // namespace tacho::cli

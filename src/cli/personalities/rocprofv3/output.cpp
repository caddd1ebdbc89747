// Names of output files (output.h).
#include "cli/personalities/rocprofv3/output.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <span>

#include "base/format.h"

namespace tacho::cli::rocprofv3 {

namespace fs = std::filesystem;
namespace column = event::column;
using event::Table;

PlaceholderFacts facts_before_start(const std::vector<std::string>& command) {
  PlaceholderFacts facts = placeholder_facts(command);
  const auto format = [](const char* variable, std::string& out) {
    if (const char* const value = std::getenv(variable); value != nullptr && *value != '\0') out = value;
  };
  format("ROCPROF_DATE_FORMAT", facts.date_format);
  format("ROCPROF_TIME_FORMAT", facts.time_format);
  return facts;
}

PlaceholderFacts facts_of(const trace::Trace& trace, int64_t process, const std::vector<std::string>& command) {
  PlaceholderFacts facts = facts_before_start(command);
  const auto cell = [&](int at) { return trace.cell(Table::kProcess, process, at); };
  facts.pid = cell(column::Process::pid);
  facts.parent = cell(column::Process::parent_pid);
  if (const int64_t rank = cell(column::Process::rank); rank != event::kUnknown) {
    if (!facts.job.known()) facts.job.launcher = "";
    facts.job.rank = rank;
  }
  return facts;
}

std::string expanded(const std::string& text, const PlaceholderFacts& process) {
  return expand_placeholders(text, PlaceholderDialect::kRocprofv3, process);
}

bool differs_by_process(const std::string& text) {
  return tacho::differs_by_process(text, PlaceholderDialect::kRocprofv3);
}

int64_t missing_rank(const std::string& text, const PlaceholderFacts& process) {
  if (!process.job.known() || process.job.size == 1 || process.job.rank < 0 || differs_by_process(text)) return -1;
  // %env{SLURM_PROCID}% and similar placeholders differ too.
  for (const JobLauncher& launcher : job_launchers())
    for (const std::span<const char* const> names :
         {std::span<const char* const>(launcher.rank), std::span<const char* const>(launcher.local_rank)})
      for (const char* const name : names)
        if (name != nullptr && text.find(std::string("{") + name + "}") != std::string::npos) return -1;
  return process.job.rank;
}

int restarts() {
  const char* const text = std::getenv("SLURM_RESTART_COUNT");
  return text != nullptr ? std::max(0, std::atoi(text)) : 0;
}

OutputPlace place_of(const std::string& directory, const std::string& file, const std::string& pass,
                     const PlaceholderFacts& process) {
  if (directory.empty() && file.empty()) return {pass, fmt::format("{}", process.pid)};
  const fs::path path =
      fs::path(expanded(directory, process)) / pass / expanded(file.empty() ? "%hostname%/%pid%" : file, process);
  return {path.parent_path().string(), path.filename().string()};
}

}  // namespace tacho::cli::rocprofv3

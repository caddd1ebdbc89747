// Placeholders (rocprofv3_output.h).
#include "cli/personalities/rocprofv3/output.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/format.h"

namespace tacho::cli::rocprofv3 {

namespace fs = std::filesystem;
namespace column = event::column;
using event::Table;

namespace {

std::string environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value != nullptr ? value : "";
}

// Words of a command line as a part of a file name.
std::string condensed(const std::vector<std::string>& words, size_t first, bool base_name) {
  std::string out;
  for (size_t i = first; i < words.size(); ++i) {
    std::string word = words[i];
    if (i == 0 && base_name) word = word.substr(word.rfind('/') + 1);
    out += (out.empty() ? "" : "_") + word;
  }
  std::replace(out.begin(), out.end(), '/', '_');
  return out;
}

std::string now_as(const char* variable, const char* otherwise) {
  std::string format = environment(variable);
  if (format.empty()) format = otherwise;
  const time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  char text[256];
  return {text, strftime(text, sizeof text, format.c_str(), &parts)};
}

std::string size_of_job() {
  std::string size = "1";
  for (const char* name : {"MPI_SIZE", "MPI_LOCALNRANKS", "MPI_NRANKS", "MV2_COMM_WORLD_SIZE",
                           "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"})
    if (const std::string value = environment(name); !value.empty()) size = value;
  return size;
}

// How many children our parent has: the siblings of what the user started.
std::string siblings() {
  const pid_t parent = getppid();
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", parent));
  int count = 0;
  for (std::string pid; file >> pid;) ++count;
  return fmt::format("{}", std::max(count, 1));
}

std::optional<std::string> value_of(std::string_view key, const ProcessFacts& process) {
  const auto& words = process.command;
  const auto number = [](int64_t value) { return fmt::format("{}", value); };
  if (key == "argv") return condensed(words, 0, false);
  if (key == "argt") return condensed(words, 0, true);
  if (key == "args") return condensed(words, 1, false);
  if (key == "tag") return words.empty() ? std::string() : words[0].substr(words[0].rfind('/') + 1);
  if (key.starts_with("arg") && key.size() > 3) {
    size_t at = 0;
    const auto [end, error] = std::from_chars(key.data() + 3, key.data() + key.size(), at);
    if (error != std::errc() || end != key.data() + key.size()) return {};
    if (at >= words.size()) return std::string();
    std::string word = words[at];
    std::replace(word.begin(), word.end(), '/', '_');
    return word;
  }
  if (key == "hostname" || key == "h") return process.host;
  if (key == "pid" || key == "p") return number(process.pid);
  if (key == "ppid") return number(process.parent);
  // The program runs in our group and session unless it makes its own.
  if (key == "pgid") return number(getpgrp());
  if (key == "psid") return number(getsid(0));
  if (key == "psize") return siblings();
  if (key == "job" || key == "j")
    return environment("SLURM_JOB_ID").empty() ? "0" : environment("SLURM_JOB_ID");
  if (key == "rank" || key == "r") return number(process.rank);
  if (key == "size" || key == "s") return size_of_job();
  if (key == "nid") return number(process.has_rank ? process.rank : process.pid);
  if (key == "cwd") {
    std::error_code ignored;
    return fs::current_path(ignored).string();
  }
  if (key == "launch_date") return now_as("ROCPROF_DATE_FORMAT", "%F");
  if (key == "launch_time") return now_as("ROCPROF_TIME_FORMAT", "%F_%H.%M");
  return {};
}

constexpr std::string_view kShort = "hpjrs";

// The placeholder that begins at `at`, if one does: what it stands for and how long it is.
struct Found {
  std::string value;
  size_t length;
};
std::optional<Found> placeholder(const std::string& text, size_t at, const ProcessFacts& process) {
  const std::string_view rest = std::string_view(text).substr(at);
  const auto braces = [&](std::string_view head, std::string_view tail) -> std::optional<Found> {
    if (!rest.starts_with(head)) return {};
    const size_t end = rest.find('}', head.size());
    if (end == std::string_view::npos || !rest.substr(end + 1).starts_with(tail)) return {};
    return Found{environment(std::string(rest.substr(head.size(), end - head.size()))),
                 end + 1 + tail.size()};
  };
  if (auto found = braces("%env{", "%")) return found;
  if (auto found = braces("$ENV{", "")) return found;
  if (auto found = braces("%q{", "")) {
    if (rest.substr(found->length).starts_with('%')) ++found->length;  // both %q{X} and %q{X}% are in use
    return found;
  }
  if (rest[0] == '%' || rest[0] == '{') {
    const size_t end = rest.find(rest[0] == '%' ? '%' : '}', 1);
    if (end != std::string_view::npos)
      if (auto value = value_of(rest.substr(1, end - 1), process)) return Found{*value, end + 1};
  }
  if (rest[0] == '%' && rest.size() > 1 && kShort.find(rest[1]) != std::string_view::npos) {
    // %p, but not the beginning of %param%: what follows must not continue a word.
    const bool word = rest.size() > 2 && (std::isalnum(static_cast<unsigned char>(rest[2])) != 0);
    if (!word) return Found{*value_of(rest.substr(1, 1), process), 2};
  }
  return {};
}

}  // namespace

std::string expanded(const std::string& text, const ProcessFacts& process) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '%' || text[at] == '{' || text[at] == '$')
      if (const auto found = placeholder(text, at, process)) {
        out += found->value;
        at += found->length;
        continue;
      }
    out += text[at++];
  }
  return out;
}

bool differs_by_process(const std::string& text) {
  ProcessFacts one, other;
  one.pid = 1;
  one.parent = 2;
  one.rank = 3;
  one.command = {"a"};
  other.pid = 11;
  other.parent = 12;
  other.rank = 13;
  one.has_rank = other.has_rank = true;
  other.command = {"b", "c"};
  return expanded(text, one) != expanded(text, other);
}

ProcessFacts facts_before_start(const std::vector<std::string>& command) {
  ProcessFacts facts;
  facts.command = command;
  facts.parent = getpid();
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) == 0) facts.host = host;
  for (const char* name : {"MPI_RANK", "MPI_LOCALRANKID", "MPI_RANKID", "MV2_COMM_WORLD_RANK",
                           "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    const std::string value = environment(name);
    int64_t rank = 0;
    if (!value.empty() &&
        std::from_chars(value.data(), value.data() + value.size(), rank).ec == std::errc()) {
      facts.rank = rank;
      facts.has_rank = true;
    }
  }
  return facts;
}

ProcessFacts facts_of(const trace::Trace& trace, int64_t process, const std::vector<std::string>& command) {
  ProcessFacts facts = facts_before_start(command);
  const auto cell = [&](int at) { return trace.cell(Table::kProcess, process, at); };
  facts.pid = cell(column::Process::pid);
  facts.parent = cell(column::Process::parent_pid);
  if (const int64_t rank = cell(column::Process::rank); rank != event::kUnknown) {
    facts.rank = rank;
    facts.has_rank = true;
  }
  return facts;
}

Place place_of(const std::string& directory, const std::string& file, const std::string& pass,
               const ProcessFacts& process) {
  if (directory.empty() && file.empty()) return {pass, fmt::format("{}", process.pid)};
  const fs::path path = fs::path(expanded(directory, process)) / pass /
                        expanded(file.empty() ? "%hostname%/%pid%" : file, process);
  return {path.parent_path().string(), path.filename().string()};
}

}  // namespace tacho::cli::rocprofv3

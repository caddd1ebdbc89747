// rocprofv3's options: one table serves its command line, its input files, --help and --output-config.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/options/option_table.h"

namespace tacho::cli::rocprofv3 {

using options::Given;
using options::Option;
using options::OptionKind;

/// The table.
std::span<const Option> options_table();
/// Finds an option by name, with - or _; nullptr if there is none.
const Option* find_option(std::string_view name);

struct CommandLine {
  Given given;
  std::vector<std::vector<std::string>> counter_groups;  // of each --pmc; `given` has the last
  std::vector<std::string> command;
  bool help = false, version = false;
};
/// The counters in the words of --pmc, which may hold several, separated by blanks or commas.
std::vector<std::string> counters_of(const std::vector<std::string>& words);
/// Parses options up to `--` or the first word that is no option; the rest is the command.
Result<CommandLine> parse_command_line(int argc, char** argv);

/// One run of the program: the options from one job of an input file, and where the results go.
struct InputJob {
  Given given;
  std::string folder;                                    // "pass_2", "pmc_1"; empty = the output folder itself
  std::vector<std::vector<std::string>> counter_groups;  // pmc_groups, or each --pmc where kernels are replayed
  bool group_interval = false;                           // pmc_group_interval is given
  bool counts() const { return given.has("pmc") || !counter_groups.empty(); }
};
/// Reads a .txt ("pmc: A B" per line), .yaml, .yml or .json ("jobs": [...]) file. Errors name file and line.
Result<std::vector<InputJob>> read_input_file(const std::string& path);
/// The same for a file's content; `path` tells the kind and appears in the errors.
Result<std::vector<InputJob>> parse_input(const std::string& path, std::string content);

/// The runs that the command line and its input file ask for, each with the options of both. Each --pmc is a run of its
/// own in pass_<n>, before the jobs of the file that count, too, unless kernels are replayed.
Result<std::vector<InputJob>> jobs_of(const CommandLine& line);

std::string help_text();

}  // namespace tacho::cli::rocprofv3

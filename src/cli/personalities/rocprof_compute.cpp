// rocprof-compute (and its old name omniperf): which modes tacho supports, and with which options.
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "cli/analyze/analyze.h"
#include "cli/command.h"
#include "cli/profile/profile.h"
#include "report/output.h"

namespace tacho::cli {

namespace {

// General options that may come before the mode: how much to log, and --experimental.
bool is_general_flag(std::string_view text) {
  return text == "-V" || text == "-VV" || text == "-VVV" || text == "--verbose" || text == "-q" || text == "--quiet" ||
         text == "--experimental";
}

// "-–name", as documents print it that turn two hyphens into a dash, is "--name". Words behind a -- stay.
std::string with_hyphens(std::string_view word) {
  size_t at = 0;
  bool dash = false;
  for (;;) {
    const std::string_view rest = word.substr(at);
    if (rest.starts_with("\u2013") || rest.starts_with("\u2014")) {
      dash = true;
      at += 3;
    } else if (rest.starts_with('-')) {
      ++at;
    } else {
      return dash && !rest.empty() ? "--" + std::string(rest) : std::string(word);
    }
  }
}

}  // namespace

int personality_rocprof_compute(int argc, char** argv) {
  std::string program(argv[0]);
  program = program.substr(program.rfind('/') + 1);
  std::vector<std::string> words(argv, argv + argc);
  std::vector<char*> pointers;
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) words[i] = with_hyphens(words[i]);
  for (std::string& each : words) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  argv = pointers.data();
  int mode = 1;
  while (mode < argc && is_general_flag(argv[mode])) ++mode;
  const std::string_view word = mode < argc ? argv[mode] : "";
  if (word == "-v" || word == "--version") {
    report::print("{} personality of tacho\n", program);
    return kOk;
  }
  if (word == "analyze" || (word.starts_with("--list-") && word != "--list-sets")) {
    // "--list-metrics gfx90a" without a mode is also analyze's list.
    std::string name = program + " analyze";
    std::vector<char*> rest = {name.data()};
    for (int i = 1; i < mode; ++i)
      if (std::string_view(argv[i]) == "--experimental") rest.push_back(argv[i]);
    for (int i = word == "analyze" ? mode + 1 : mode; i < argc; ++i) rest.push_back(argv[i]);
    rest.push_back(nullptr);
    return analyze(static_cast<int>(rest.size()) - 1, rest.data(), AnalyzeFace::kRocprofCompute);
  }
  // Listing this machine's properties and the metric sets does not need the mode either.
  const bool of_profile = word == "-s" || word == "--specs" || word == "--list-sets";
  // The users' documents also write "profiler".
  if (word == "profile" || word == "profiler" || of_profile) {
    std::string name = program + " profile";
    std::vector<char*> rest = {name.data()};
    // General options before the mode that the mode understands.
    for (int i = 1; i < mode; ++i) rest.push_back(argv[i]);
    for (int i = of_profile ? mode : mode + 1; i < argc; ++i) rest.push_back(argv[i]);
    rest.push_back(nullptr);
    return profile(static_cast<int>(rest.size()) - 1, rest.data(), ProfileFace::kRocprofCompute);
  }
  if (word.empty() || word == "-h" || word == "--help") {
    report::print(
        "{0}: tacho in the manner of ROCm Compute Profiler\n\nusage: {0} profile -n NAME [options] -- command\n       "
        "{0} analyze -p DIR [options]\n",
        program);
    return word.empty() ? kBadInput : kOk;
  }
  report::print_error("{}: there is no mode '{}'; the modes are profile and analyze\n", program, word);
  return kBadInput;
}

}  // namespace tacho::cli

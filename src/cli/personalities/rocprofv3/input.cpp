// Reads rocprofv3's input files (options.h); the error for each mistake names its line.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/personalities/rocprofv3/options.h"
#include "cli/shared/suggest.h"

namespace tacho::cli::rocprofv3 {
namespace {

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

Result<std::vector<InputJob>> read_text(const std::string& path, const std::string& content) {
  std::vector<InputJob> jobs;
  std::istringstream lines(content);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t colon = line.find(':');
    const std::string key = trimmed(line.substr(0, colon));
    if (colon == std::string::npos || key != "pmc")
      return fail("{}:{}: a line is 'pmc: COUNTER COUNTER ...' (or a comment after #), not '{}'", path, number,
                  line.substr(0, 60));
    std::istringstream words(line.substr(colon + 1));
    std::vector<std::string> counters;
    for (std::string word; words >> word;) counters.push_back(word);
    if (counters.empty()) return fail("{}:{}: pmc: names no counter", path, number);
    InputJob& job = jobs.emplace_back();
    TACHO_TRY(job.given.set(*find_option("pmc"), std::move(counters), fmt::format("{}:{}: pmc", path, number)));
    job.folder = fmt::format("pmc_{}", jobs.size());
  }
  if (jobs.empty()) return fail("{}: holds no pmc: line", path);
  return jobs;
}

std::string line_of(const std::string& path, const YAML::Node& node) {
  return fmt::format("{}:{}", path, node.Mark().line + 1);
}

Result<std::vector<std::string>> words_of_node(const YAML::Node& node, const std::string& where) {
  if (node.IsScalar()) return std::vector<std::string>{node.Scalar()};
  if (!node.IsSequence()) return fail("{}: a word or a list of words is expected", where);
  std::vector<std::string> words;
  for (const YAML::Node& element : node) {
    if (!element.IsScalar()) return fail("{}: a list of words is expected", where);
    words.push_back(element.Scalar());
  }
  return words;
}

Result<InputJob> read_job(const std::string& path, const YAML::Node& node) {
  if (!node.IsMap()) return fail("{}: a job is a map of options", line_of(path, node));
  InputJob job;
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    const std::string where = fmt::format("{}: {}", line_of(path, entry.first), key);
    if (!seen.insert(key).second) return fail("{}: stands twice in this job", where);
    if (key == "pmc_groups") {
      if (!entry.second.IsSequence()) return fail("{}: a list of lists of counters is expected", where);
      for (const YAML::Node& group : entry.second) {
        TACHO_ASSIGN(const auto words, words_of_node(group, where));
        job.counter_groups.push_back(counters_of(words));
        if (job.counter_groups.back().empty()) return fail("{}: a group names no counter", where);
      }
      continue;
    }
    if (key == "pmc_group_interval") {
      job.group_interval = true;
      continue;
    }
    const Option* const option = find_option(key);
    if (option == nullptr || option->name == "input") {
      std::vector<std::string> names = {"pmc_groups", "pmc_group_interval"};
      for (const Option& known : options_table()) {
        names.emplace_back(known.name);
        std::replace(names.back().begin(), names.back().end(), '-', '_');
      }
      const std::string best = nearest(key, names);
      return fail("{}: there is no such option{}", where, best.empty() ? "" : "; did you mean " + best + "?");
    }
    if (entry.second.IsNull()) return fail("{}: has no value", where);
    TACHO_ASSIGN(auto words, words_of_node(entry.second, where));
    if (option->name == "pmc") words = counters_of(words);
    if (words.empty()) continue;  // [] has no meaning
    TACHO_TRY(job.given.set(*option, std::move(words), where));
  }
  return job;
}

Result<std::vector<InputJob>> read_structured(const std::string& path, std::string content) {
  const bool json = path.ends_with(".json");
  // JSON is YAML except for tabs, which JSON allows between tokens and forbids inside strings.
  if (json) std::replace(content.begin(), content.end(), '\t', ' ');
  try {
    const YAML::Node root = YAML::Load(content);
    const YAML::Node list = root.IsMap() ? root["jobs"] : YAML::Node(YAML::NodeType::Undefined);
    if (!list || !list.IsSequence() || list.size() == 0)
      return fail("{}: has no list 'jobs' with at least one job", path);
    for (const auto& entry : root)
      if (const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : ""; key != "jobs")
        return fail("{}: '{}' does not belong beside 'jobs'", line_of(path, entry.first), key);
    std::vector<InputJob> jobs;
    bool any_counters = false;
    for (const YAML::Node& node : list) {
      TACHO_ASSIGN(InputJob job, read_job(path, node));
      any_counters |= job.counts();
      jobs.push_back(std::move(job));
    }
    if (jobs.size() > 1 || any_counters)
      for (size_t i = 0; i < jobs.size(); ++i) jobs[i].folder = fmt::format("pass_{}", i + 1);
    return jobs;
  } catch (const YAML::Exception& error) {
    return fail("{}:{}: {}", path, error.mark.line + 1, error.msg);
  }
}

}  // namespace

Result<std::vector<InputJob>> read_input_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail("-i {}: {}", path, std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  return parse_input(path, std::move(text).str());
}

Result<std::vector<InputJob>> parse_input(const std::string& path, std::string content) {
  const bool text = path.ends_with(".txt") || path.ends_with(".text");
  if (!text && !path.ends_with(".json") && !path.ends_with(".yaml") && !path.ends_with(".yml"))
    return fail("-i {}: the name must end in .txt, .yaml, .yml or .json", path);
  auto jobs = text ? read_text(path, content) : read_structured(path, std::move(content));
  if (jobs) return jobs;
  // The sentence quotes the file: keep it to one line of readable length.
  std::string message = jobs.error().message;
  constexpr size_t kLongest = 400;
  if (message.size() > path.size() + kLongest) message = message.substr(0, path.size() + kLongest) + " ...";
  for (char& c : message)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  return fail("{}", message);
}

Result<std::vector<InputJob>> jobs_of(const CommandLine& line) {
  const std::string file = line.given.value("input");
  std::vector<InputJob> jobs(1);
  if (!file.empty()) {
    TACHO_ASSIGN(jobs, read_input_file(file));
  }
  const auto& groups = line.counter_groups;
  const bool file_counts = std::any_of(jobs.begin(), jobs.end(), [](const InputJob& job) { return job.counts(); });
  Given given = line.given;
  if (groups.size() > 1 || (groups.size() == 1 && file_counts)) {
    given.remove("pmc");
    // As under rocprofv3, the passes of the command line have the first job's other options.
    InputJob base = jobs.front();
    base.given.remove("pmc");
    base.counter_groups.clear();
    std::vector<InputJob> passes;
    if (given.value("replay-mode") == "kernel") {
      passes.push_back(base);
      passes.back().counter_groups = groups;
    } else {
      for (const std::vector<std::string>& group : groups) {
        passes.push_back(base);
        TACHO_TRY(passes.back().given.set(*find_option("pmc"), group, "--pmc"));
      }
    }
    const size_t own = passes.size();
    if (jobs.size() > 1 || jobs.front().counts())
      for (InputJob& job : jobs) passes.push_back(std::move(job));
    if (passes.size() > 1)
      for (size_t i = 0; i < passes.size(); ++i)
        passes[i].folder =
            fmt::format("{}_{}", i >= own && passes[i].folder.starts_with("pmc") ? "pmc" : "pass", i + 1);
    jobs = std::move(passes);
  } else if (groups.size() == 1 && !file.empty() && jobs.size() == 1) {
    jobs.front().folder = "pass_1";  // as a job that counts
  }
  for (InputJob& job : jobs) {
    Given merged = given;
    TACHO_TRY(merged.merge(job.given, file));
    job.given = std::move(merged);
  }
  return jobs;
}

}  // namespace tacho::cli::rocprofv3

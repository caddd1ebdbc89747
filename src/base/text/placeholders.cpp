// The table of placeholders and its only reader (placeholders.h).
#include "base/text/placeholders.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/format.h"

namespace tacho {
namespace {

using Dialect = PlaceholderDialect;
using Facts = PlaceholderFacts;

std::string environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value != nullptr ? value : "";
}

std::string number(int64_t value) {
  return fmt::format("{}", value);
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string without_slashes(std::string text) {
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

// The command line's words from `first` on, as part of a file name.
std::string condensed(const Facts& facts, size_t first, bool program_by_base_name) {
  std::string out;
  for (size_t i = first; i < facts.command.size(); ++i) {
    const std::string& word = facts.command[i];
    out += (i == first ? "" : "_") + (i == 0 && program_by_base_name ? base_name(word) : word);
  }
  return without_slashes(std::move(out));
}

std::string host(const Facts& facts) {
  if (!facts.host.empty()) return facts.host;
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

std::string now_as(const std::string& format) {
  const time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  char text[256];
  return {text, strftime(text, sizeof text, format.c_str(), &parts)};
}

// The number of our parent's children: the user's processes that started together.
std::string siblings(const Facts&) {
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", getppid()));
  int count = 0;
  for (std::string pid; file >> pid;) ++count;
  return number(std::max(count, 1));
}

std::string rank(const Facts& facts) {
  return number(facts.job.known() ? facts.job.rank : 0);
}

constexpr unsigned bit(Dialect dialect) {
  return 1u << static_cast<unsigned>(dialect);
}
constexpr unsigned kFolders = bit(Dialect::kFolders), kV3 = bit(Dialect::kRocprofv3), kSys = bit(Dialect::kRocprofSys);

// Every placeholder. A name of one letter is written %h, any other %name%, or {name} in a dialect with braces.
// argument() handles %arg<N>%.
struct Placeholder {
  std::string_view name;
  unsigned dialects;
  std::string (*value)(const Facts&);
};
constexpr Placeholder kPlaceholders[] = {
    {"argv", kV3, [](const Facts& f) { return condensed(f, 0, false); }},
    {"argv", kSys, [](const Facts& f) { return condensed(f, 0, true); }},
    {"argt", kV3 | kSys, [](const Facts& f) { return condensed(f, 0, true); }},
    {"args", kV3 | kSys, [](const Facts& f) { return condensed(f, 1, false); }},
    {"tag", kV3 | kSys, [](const Facts& f) { return f.command.empty() ? "" : base_name(f.command[0]); }},
    {"hostname", kFolders | kV3, host},
    {"h", kV3, host},
    {"m", kSys, host},
    {"gpumodel", kFolders, [](const Facts& f) { return f.gpu_model; }},
    {"pid", kV3 | kSys, [](const Facts& f) { return number(f.pid); }},
    {"p", kV3 | kSys, [](const Facts& f) { return number(f.pid); }},
    {"ppid", kV3 | kSys, [](const Facts& f) { return number(f.parent); }},
    // The program runs in our group and session unless it creates its own.
    {"pgid", kV3 | kSys, [](const Facts&) { return number(getpgrp()); }},
    {"psid", kV3 | kSys, [](const Facts&) { return number(getsid(0)); }},
    {"psize", kV3 | kSys, siblings},
    {"job", kV3 | kSys,
     [](const Facts&) { return environment("SLURM_JOB_ID").empty() ? "0" : environment("SLURM_JOB_ID"); }},
    {"j", kV3 | kSys,
     [](const Facts&) { return environment("SLURM_JOB_ID").empty() ? "0" : environment("SLURM_JOB_ID"); }},
    {"rank", kFolders, [](const Facts& f) { return f.job.known() ? number(f.job.rank) : ""; }},
    {"rank", kV3 | kSys, rank},
    {"r", kV3 | kSys, rank},
    {"size", kV3 | kSys, [](const Facts& f) { return number(std::max<int64_t>(f.job.size, 1)); }},
    {"s", kV3 | kSys, [](const Facts& f) { return number(std::max<int64_t>(f.job.size, 1)); }},
    {"nid", kV3, [](const Facts& f) { return number(f.job.known() ? f.job.rank : f.pid); }},
    {"nid", kSys, rank},
    {"cwd", kV3,
     [](const Facts&) {
       std::error_code ignored;
       return std::filesystem::current_path(ignored).string();
     }},
    {"launch_date", kV3, [](const Facts& f) { return now_as(f.date_format); }},
    {"launch_time", kV3 | kSys, [](const Facts& f) { return now_as(f.time_format); }},
};

// Placeholders with a name in braces: an environment variable or a setting.
struct Braces {
  std::string_view opening, closing;
  unsigned dialects;
  bool setting;
};
constexpr Braces kBraces[] = {
    {"%env{", "}%", kFolders | kV3 | kSys, false},
    {"$ENV{", "}", kV3, false},
    {"$env{", "}", kSys, false},
    {"%q{", "}%", kV3, false},  // users write both %q{X}% and %q{X}
    {"%q{", "}", kV3, false},
    {"%cfg{", "}%", kSys, true},
    {"$cfg{", "}", kSys, true},
};

struct Found {
  std::string value;
  size_t length;
  bool is_rank = false;
};

// %arg0%, %arg1% ...: one word of the command line. nullopt for anything else.
std::optional<std::string> argument(std::string_view name, Dialect dialect, const Facts& facts) {
  if (dialect == Dialect::kFolders || !name.starts_with("arg") || name.size() == 3) return {};
  size_t at = 0;
  const auto [end, error] = std::from_chars(name.data() + 3, name.data() + name.size(), at);
  if (error != std::errc() || end != name.data() + name.size()) return {};
  if (at < facts.command.size())
    return at == 0 && dialect == Dialect::kRocprofSys ? base_name(facts.command[0])
                                                      : without_slashes(facts.command[at]);
  if (dialect == Dialect::kRocprofSys) return {};  // the text stays as it is
  return std::string();
}

const Placeholder* find(std::string_view name, Dialect dialect) {
  for (const Placeholder& each : kPlaceholders)
    if (each.name == name && (each.dialects & bit(dialect)) != 0) return &each;
  return nullptr;
}

std::string expand(std::string_view text, Dialect dialect, const Facts& facts, int depth, bool* rank_used);

// The placeholder that begins at `at`, if there is one.
std::optional<Found> placeholder(std::string_view text, size_t at, Dialect dialect, const Facts& facts, int depth) {
  const std::string_view rest = text.substr(at);
  for (const Braces& form : kBraces) {
    if ((form.dialects & bit(dialect)) == 0 || !rest.starts_with(form.opening)) continue;
    const size_t end = rest.find('}', form.opening.size());
    if (end == std::string_view::npos || !rest.substr(end).starts_with(form.closing)) continue;
    const std::string name(rest.substr(form.opening.size(), end - form.opening.size()));
    std::string value = !form.setting ? environment(name) : facts.setting ? facts.setting(name) : "";
    // rocprof-sys's settings and variables may contain placeholders; a setting may even name itself.
    if (dialect == Dialect::kRocprofSys && depth < 4) value = expand(value, dialect, facts, depth + 1, nullptr);
    return Found{std::move(value), end + form.closing.size()};
  }
  const bool braces = rest[0] == '{' && dialect == Dialect::kRocprofv3;
  if (rest[0] != '%' && !braces) return {};
  if (const size_t end = rest.find(braces ? '}' : '%', 1); end != std::string_view::npos) {
    const std::string_view name = rest.substr(1, end - 1);
    const Placeholder* const known = find(name, dialect);
    if (known != nullptr && (name.size() > 1 || dialect == Dialect::kRocprofv3))
      return Found{known->value(facts), end + 1, name == "rank" || name == "r"};
    if (auto word = argument(name, dialect, facts)) return Found{std::move(*word), end + 1};
  }
  if (braces || rest.size() < 2) return {};
  const Placeholder* const known = find(rest.substr(1, 1), dialect);
  if (known == nullptr) return {};
  // rocprofv3 takes %p, but not the start of %param%.
  if (dialect == Dialect::kRocprofv3 && rest.size() > 2 && std::isalnum(static_cast<unsigned char>(rest[2])) != 0)
    return {};
  return Found{known->value(facts), 2, rest[1] == 'r'};
}

std::string expand(std::string_view text, Dialect dialect, const Facts& facts, int depth, bool* rank_used) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '%' || text[at] == '{' || text[at] == '$')
      if (const auto found = placeholder(text, at, dialect, facts, depth)) {
        out += found->value;
        at += found->length;
        if (found->is_rank && rank_used != nullptr) *rank_used = true;
        continue;
      }
    out += text[at++];
  }
  return out;
}

}  // namespace

PlaceholderFacts placeholder_facts(std::vector<std::string> command) {
  PlaceholderFacts facts;
  facts.parent = getpid();
  facts.command = std::move(command);
  facts.host = host(facts);
  facts.job = job_rank();
  return facts;
}

std::string expand_placeholders(std::string_view text, PlaceholderDialect dialect, const PlaceholderFacts& facts) {
  return expand(text, dialect, facts, 0, nullptr);
}

bool uses_rank(std::string_view text, PlaceholderDialect dialect) {
  bool used = false;
  expand(text, dialect, {}, 0, &used);
  return used;
}

bool differs_by_process(std::string_view text, PlaceholderDialect dialect) {
  PlaceholderFacts one, other;
  one.pid = 1;
  one.parent = 2;
  one.job = {"", 3, 8, 3};
  one.command = {"a"};
  other.pid = 11;
  other.parent = 12;
  other.job = {"", 13, 14, 13};
  other.command = {"b", "c"};
  return expand_placeholders(text, dialect, one) != expand_placeholders(text, dialect, other);
}

}  // namespace tacho

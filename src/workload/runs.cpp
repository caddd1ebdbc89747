// The runs of a folder (runs.h). A run is one line of YAML in flow style, which is JSON: strings, lists of strings,
// numbers and true/false, no nesting beyond that. yaml-cpp reads it, and its exceptions end in this file.
#include "workload/runs.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/text/csv.h"
#include "report/value.h"

namespace tacho::workload {

namespace {

constexpr size_t kMostInList = 100000;
constexpr size_t kLongestConfig = size_t{4} << 20;

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_list(std::string& out, const std::vector<std::string>& list) {
  out += '[';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ", ";
    append_string(out, list[i]);
  }
  out += ']';
}

// Values of YAML as JSON. `left` bounds how many there may be: an alias can stand for many others.
report::JsonValue json_of(const YAML::Node& node, int depth, size_t& left) {
  if (left == 0 || depth > 20 || !node.IsDefined() || node.IsNull()) return {};
  --left;
  if (node.IsSequence()) {
    report::JsonValue list = report::JsonValue::list();
    for (const YAML::Node& each : node) list.add(json_of(each, depth + 1, left));
    return list;
  }
  if (node.IsMap()) {
    report::JsonValue object = report::JsonValue::object({});
    for (const auto& member : node)
      if (member.first.IsScalar()) object.set(member.first.Scalar(), json_of(member.second, depth + 1, left));
    return object;
  }
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  if (text == "true" || text == "True" || text == "false" || text == "False") return text[0] == 't' || text[0] == 'T';
  if (const CellNumber number = parse_number(text); number.ok && !text.empty()) {
    const auto whole = static_cast<int64_t>(number.value);
    if (std::abs(number.value) < 9e15 && static_cast<double>(whole) == number.value) return whole;
    return number.value;
  }
  return text;
}

// The members of an entry; false if one is unknown or has the wrong type.
bool read_entry(const YAML::Node& entry, RunEntry& run) {
  const auto list = [](const YAML::Node& value, std::vector<std::string>& out) {
    if (!value.IsSequence() || value.size() > kMostInList) return false;
    for (const YAML::Node& item : value) out.push_back(item.as<std::string>());
    return true;
  };
  if (!entry.IsMap()) return false;
  for (const auto& member : entry) {
    const auto key = member.first.as<std::string>();
    const YAML::Node& value = member.second;
    bool ok = true;
    if (key == "run")
      run.number = value.as<int>();
    else if (key == "exit_code")
      run.exit_code = value.as<int>();
    else if (key == "seen")
      run.seen = value.as<int>();
    else if (key == "measured")
      run.measured = value.as<int>();
    else if (key == "command")
      ok = list(value, run.command);
    else if (key == "kernels")
      ok = list(value, run.kernels);
    else if (key == "dispatches")
      ok = list(value, run.dispatches);
    else if (key == "blocks")
      ok = list(value, run.blocks);
    else if (key == "files")
      ok = list(value, run.files);
    else if (key == "set")
      run.set = value.as<std::string>();
    else if (key == "device")
      run.device = value.as<std::string>();
    else if (key == "replay")
      run.replay = value.as<std::string>();
    else if (key == "multiplexing")
      run.multiplexing = value.as<std::string>();
    else if (key == "tool")
      run.tool = value.as<std::string>();
    else if (key == "timestamp")
      run.timestamp = value.as<std::string>();
    else if (key == "estimated")
      run.estimated = value.as<bool>();
    else if (key == "roofline_only")
      run.roofline_only = value.as<bool>();
    else
      ok = false;
    if (!ok) return false;
  }
  return run.number > 0;
}

bool lists_runs(std::string_view text) {
  return text.starts_with("runs:") || text.find("\nruns:") != std::string_view::npos;
}

}  // namespace

Result<std::vector<RunEntry>> parse_runs(std::string_view text, std::string_view file) {
  std::vector<RunEntry> runs;
  if (!lists_runs(text)) return runs;  // somebody else's file, whatever it is
  const auto damaged = [&](const YAML::Mark& mark) {
    return fail("{}: line {}, column {}: this entry of a run cannot be read; the file is damaged", file, mark.line + 1,
                mark.column + 1);
  };
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    const YAML::Node list = root.IsMap() ? root["runs"] : YAML::Node();
    if (!list.IsDefined() || list.IsNull()) return runs;
    if (!list.IsSequence()) return damaged(list.Mark());
    if (list.size() > kMostInList) return fail("{}: more than {} runs", file, kMostInList);
    for (const YAML::Node& entry : list) {
      RunEntry run;
      if (!read_entry(entry, run)) return damaged(entry.Mark());
      runs.push_back(std::move(run));
    }
  } catch (const YAML::Exception& error) {
    return damaged(error.mark);
  }
  return runs;
}

std::vector<std::string> parse_recorded_blocks(std::string_view text) {
  std::vector<std::string> blocks;
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    const YAML::Node list = root.IsMap() ? root["filter_blocks"] : YAML::Node();
    if (!list.IsDefined() || list.size() > kMostInList) return blocks;
    for (const auto& item : list)
      blocks.push_back(list.IsMap() ? item.first.as<std::string>() : item.as<std::string>());
  } catch (const YAML::Exception&) {
    blocks.clear();  // not what Python's yaml writes
  }
  return blocks;
}

Result<std::string> read_config(const std::string& folder) {
  const std::string path = folder + "/profiling_config.yaml";
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::string();
  std::string text(kLongestConfig + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kLongestConfig) return fail("{}: larger than such a file can be", path);
  return text;
}

Result<std::string> config_as_json(const std::string& folder) {
  TACHO_ASSIGN(const std::string text, read_config(folder));
  if (text.empty()) return std::string();
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) return fail("{}/profiling_config.yaml: holds no options", folder);
    size_t left = kMostInList;
    return json_of(root, 0, left).text();
  } catch (const YAML::Exception& error) {
    return fail("{}/profiling_config.yaml:{}: {}", folder, error.mark.line + 1, error.msg);
  }
}

Result<std::vector<RunEntry>> read_runs(const std::string& folder) {
  TACHO_ASSIGN(const std::string text, read_config(folder));
  return parse_runs(text, folder + "/profiling_config.yaml");
}

std::string config_text(const std::vector<RunEntry>& runs) {
  std::string out =
      "# Written by tacho profile. The keys of rocprof-compute describe the newest run; `runs` lists all of them.\n";
  if (!runs.empty()) {
    const RunEntry& newest = runs.back();
    const auto line = [&](std::string_view key, const std::vector<std::string>& list) {
      out += fmt::format("{}: ", key);
      append_list(out, list);
      out += '\n';
    };
    line("remaining", newest.command);
    line("kernel", newest.kernels);
    line("dispatch", newest.dispatches);
    line("filter_blocks", newest.blocks);
    out += fmt::format("set_selected: {}\n", newest.set.empty() ? "null" : newest.set);
    out += fmt::format("roof_only: {}\n", newest.roofline_only);
    out += fmt::format("iteration_multiplexing: {}\n", newest.multiplexing.empty() ? "null" : newest.multiplexing);
  }
  out += "runs:\n";
  for (const RunEntry& run : runs) {
    out += fmt::format("  - {{\"run\": {}, ", run.number);
    const auto text = [&](std::string_view key, std::string_view value) {
      out += fmt::format("\"{}\": ", key);
      append_string(out, value);
      out += ", ";
    };
    const auto list = [&](std::string_view key, const std::vector<std::string>& value) {
      out += fmt::format("\"{}\": ", key);
      append_list(out, value);
      out += ", ";
    };
    text("timestamp", run.timestamp);
    list("command", run.command);
    list("kernels", run.kernels);
    list("dispatches", run.dispatches);
    list("blocks", run.blocks);
    text("set", run.set);
    text("device", run.device);
    text("tool", run.tool);
    text("replay", run.replay);
    text("multiplexing", run.multiplexing);
    list("files", run.files);
    if (run.seen != 0) out += fmt::format("\"seen\": {}, \"measured\": {}, ", run.seen, run.measured);
    out += fmt::format("\"estimated\": {}, \"roofline_only\": {}, \"exit_code\": {}}}\n", run.estimated,
                       run.roofline_only, run.exit_code);
  }
  return out;
}

std::string describe(const RunEntry& run) {
  std::string text = fmt::format("run {}:", run.number);
  for (const std::string& word : run.command) text += " " + word;
  std::string filters;
  const auto add = [&](std::string_view option, const std::vector<std::string>& values) {
    if (values.empty()) return;
    filters += fmt::format("{}{}", filters.empty() ? "" : ", ", option);
    for (const std::string& value : values) filters += " " + value;
  };
  add("-k", run.kernels);
  add("-d", run.dispatches);
  add("-b", run.blocks);
  return filters.empty() ? text : fmt::format("{} ({})", text, filters);
}

Result<std::vector<size_t>> choose_runs(const std::vector<RunEntry>& runs, int wanted, std::string_view folder) {
  std::vector<size_t> chosen;
  if (runs.empty()) {
    if (wanted > 0) return fail("{}: its runs are not numbered (it was not written by tacho profile)", folder);
    return chosen;
  }
  const RunEntry* like = nullptr;
  for (const RunEntry& run : runs)
    if (wanted > 0 ? run.number == wanted : !run.files.empty()) like = &run;
  if (like == nullptr && wanted > 0)
    return fail("{}: there is no run {}; it has runs {} to {}", folder, wanted, runs.front().number,
                runs.back().number);
  if (like == nullptr) return fail("{}: none of its {} runs measured anything", folder, runs.size());
  chosen.push_back(static_cast<size_t>(like - runs.data()));
  for (size_t i = runs.size(); i-- > 0;)
    if (&runs[i] != like && runs[i].same_target(*like) && !runs[i].files.empty()) chosen.push_back(i);
  return chosen;
}

}  // namespace tacho::workload

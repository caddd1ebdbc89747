// The runs of a folder (runs.h). A run is one line of YAML in flow style, which is JSON: strings, lists of strings,
// numbers and true/false, no nesting beyond that.
#include "workload/runs.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace tacho::workload {

namespace {

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

// Reads one line of ours; anything else is an error at a column.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}
  bool take(char c) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool string(std::string& out) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != '"') return false;
    out.clear();
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c != '\\') {
        out += c;
        continue;
      }
      if (++at_ >= text_.size()) return false;
      if (text_[at_] != 'u') {
        out += text_[at_];
        continue;
      }
      unsigned code = 0;
      if (at_ + 4 >= text_.size()) return false;
      const auto [end, error] = std::from_chars(text_.data() + at_ + 1, text_.data() + at_ + 5, code, 16);
      if (error != std::errc() || end != text_.data() + at_ + 5 || code > 0x7f) return false;
      out += static_cast<char>(code);
      at_ += 4;
    }
    return false;
  }
  bool list(std::vector<std::string>& out) {
    out.clear();
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      std::string item;
      if (!string(item) || out.size() > 100000) return false;
      out.push_back(std::move(item));
    } while (take(','));
    return take(']');
  }
  bool number(int& out) {
    blanks();
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), out);
    if (error != std::errc()) return false;
    at_ = static_cast<size_t>(end - text_.data());
    return true;
  }
  bool boolean(bool& out) {
    blanks();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "true" : "false";
      if (text_.substr(at_).starts_with(word)) {
        out = value;
        at_ += word.size();
        return true;
      }
    }
    return false;
  }
  size_t column() const { return at_ + 1; }

 private:
  void blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  std::string_view text_;
  size_t at_ = 0;
};

bool read_entry(LineReader& reader, RunEntry& run) {
  if (!reader.take('{')) return false;
  do {
    std::string key;
    if (!reader.string(key) || !reader.take(':')) return false;
    bool ok = true;
    if (key == "run")
      ok = reader.number(run.number);
    else if (key == "exit_code")
      ok = reader.number(run.exit_code);
    else if (key == "seen")
      ok = reader.number(run.seen);
    else if (key == "measured")
      ok = reader.number(run.measured);
    else if (key == "command")
      ok = reader.list(run.command);
    else if (key == "kernels")
      ok = reader.list(run.kernels);
    else if (key == "dispatches")
      ok = reader.list(run.dispatches);
    else if (key == "blocks")
      ok = reader.list(run.blocks);
    else if (key == "files")
      ok = reader.list(run.files);
    else if (key == "set")
      ok = reader.string(run.set);
    else if (key == "device")
      ok = reader.string(run.device);
    else if (key == "replay")
      ok = reader.string(run.replay);
    else if (key == "multiplexing")
      ok = reader.string(run.multiplexing);
    else if (key == "tool")
      ok = reader.string(run.tool);
    else if (key == "timestamp")
      ok = reader.string(run.timestamp);
    else if (key == "estimated")
      ok = reader.boolean(run.estimated);
    else if (key == "roofline_only")
      ok = reader.boolean(run.roofline_only);
    else
      return false;
    if (!ok) return false;
  } while (reader.take(','));
  return reader.take('}') && run.number > 0;
}

}  // namespace

Result<std::vector<RunEntry>> parse_runs(std::string_view text, std::string_view file) {
  std::vector<RunEntry> runs;
  bool inside = false;
  size_t line_number = 0;
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find('\n', from), text.size());
    std::string_view line = text.substr(from, to - from);
    from = to + 1;
    ++line_number;
    if (line.starts_with("runs:")) {
      inside = true;
      continue;
    }
    if (!inside) continue;
    const size_t dash = line.find_first_not_of(' ');
    if (dash == std::string_view::npos || line[dash] == '#') continue;
    if (line[dash] != '-') break;
    LineReader reader(line.substr(dash + 1));
    RunEntry run;
    if (!read_entry(reader, run))
      return fail("{}: line {}, column {}: this entry of a run cannot be read; the file is damaged", file,
                  line_number, dash + 1 + reader.column());
    if (runs.size() >= 100000) return fail("{}: more than 100000 runs", file);
    runs.push_back(std::move(run));
  }
  return runs;
}

Result<std::vector<RunEntry>> read_runs(const std::string& folder) {
  const std::string path = folder + "/profiling_config.yaml";
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::vector<RunEntry>();
  std::ostringstream text;
  text << file.rdbuf();
  if (text.view().size() > size_t{16} << 20) return fail("{}: larger than such a file can be", path);
  return parse_runs(text.view(), path);
}

std::string config_text(const std::vector<RunEntry>& runs) {
  std::string out =
      "# Written by tacho profile. The keys of rocprof-compute describe the newest run; `runs` lists all of "
      "them.\n";
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
    out += fmt::format("iteration_multiplexing: {}\n",
                       newest.multiplexing.empty() ? "null" : newest.multiplexing);
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

Result<std::vector<size_t>> choose_runs(const std::vector<RunEntry>& runs, int wanted,
                                        std::string_view folder) {
  std::vector<size_t> chosen;
  if (runs.empty()) {
    if (wanted > 0)
      return fail("{}: its runs are not numbered (it was not written by tacho profile)", folder);
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

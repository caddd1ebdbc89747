// Resources, scopes and numbers (parts.h), and the two files (otlp.h).
#include "format/otlp/parts.h"

#include <charconv>
#include <filesystem>
#include <utility>

#include "base/files/output_file.h"
#include "format/otlp/otlp.h"

namespace tacho::format::otlp {

namespace column = event::column;
using event::kUnknown;
using event::Table;

Parts::Parts(const trace::Trace& trace, walk::OutputClock clock, walk::Span run)
    : trace_(trace), unix_(std::move(clock)), run_(run) {
  if (const auto told = trace.property(Table::kEnd, 0, "kineto.baseTimeNanoseconds"))
    if (std::from_chars(told->data(), told->data() + told->size(), zero_).ec != std::errc()) zero_ = kUnknown;
}

Result<Parts> Parts::make(const trace::Trace& trace) {
  TACHO_ASSIGN(walk::OutputClock clock, walk::OutputClock::make(trace, walk::OutputClock::Clock::kRealtime));
  TACHO_ASSIGN(const walk::Span run, walk::run_span(trace));
  return Parts(trace, std::move(clock), run);
}

void Parts::put_process(JsonFileWriter& json, int64_t process) const {
  using P = column::Process;
  json.name("resource").begin_object().name("attributes").begin_array();
  int64_t host = process;
  for (int64_t row = 1; host == 0 && row < trace_.rows(Table::kProcess); ++row) host = row;
  if (const auto name = trace_.text(Table::kProcess, host, P::host); host != 0 && !name.empty())
    put_attribute(json, "host.name", name);
  if (process != 0) {
    const std::string_view name = trace_.text(Table::kProcess, process, P::name);
    put_attribute(json, "service.name", fmt::format("unknown_service{}{}", name.empty() ? "" : ":", name));
    put_attribute(json, "process.pid", trace_.cell(Table::kProcess, process, P::pid));
    if (const int64_t parent = trace_.cell(Table::kProcess, process, P::parent_pid); parent > 0)
      put_attribute(json, "process.parent_pid", parent);
    if (!name.empty()) put_attribute(json, "process.executable.name", name);
    if (const auto command = trace_.text(Table::kProcess, process, P::command); !command.empty())
      put_attribute(json, "process.command_line", command);
    if (const int64_t rank = trace_.cell(Table::kProcess, process, P::rank); rank != kUnknown)
      put_attribute(json, "tacho.rank", rank);
  }
  json.end_array().end_object();
}

void Parts::put_pid(JsonFileWriter& json, int64_t pid) const {
  for (int64_t row = 1; row < trace_.rows(Table::kProcess); ++row)
    if (trace_.cell(Table::kProcess, row, column::Process::pid) == pid) return put_process(json, row);
  json.name("resource").begin_object().name("attributes").begin_array();
  put_attribute(json, "process.pid", pid);
  json.end_array().end_object();
}

void Parts::put_scope(JsonFileWriter& json) {
  json.name("scope").begin_object().member("name", "tacho").member("version", TACHO_PROGRAM_VERSION).end_object();
}

void Parts::put_time(JsonFileWriter& json, JsonLiteral name, int64_t time) const {
  if (!knows_time()) return;
  const int64_t at = zero_ != kUnknown ? walk::time_after(time, zero_) : unix_(time);
  if (at > 0) put_integer(json, name, at);
}

void put_integer(JsonFileWriter& json, JsonLiteral name, int64_t value) {
  json.name(name).ready(fmt::format("\"{}\"", value));
}

void put_attribute(JsonFileWriter& json, std::string_view key, std::string_view value) {
  json.begin_object().member("key", key).name("value").begin_object().member("stringValue", value);
  json.end_object().end_object();
}

void put_attribute(JsonFileWriter& json, std::string_view key, int64_t value) {
  json.begin_object().member("key", key).name("value").begin_object();
  put_integer(json, "intValue", value);
  json.end_object().end_object();
}

std::string profiles_name(const std::string& metrics) {
  constexpr std::string_view kEnding = ".otlp.jsonl", kMark = ".profiles";
  if (metrics.ends_with(kEnding))
    return fmt::format("{}{}{}", std::string_view(metrics).substr(0, metrics.size() - kEnding.size()), kMark, kEnding);
  std::filesystem::path path(metrics);
  path.replace_filename(fmt::format("{}{}{}", path.stem().string(), kMark, path.extension().string()));
  return path.string();
}

Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written) {
  TACHO_ASSIGN(const Parts parts, Parts::make(trace));
  if (!parts.knows_time())
    options.remark("the trace does not know the time of day: its metrics and profiles have no times");
  std::vector<OutputFile> files;  // both or none
  const auto open = [&](const std::string& path) -> Status {
    TACHO_ASSIGN(OutputFile file, OutputFile::create(path, options.overwrite));
    files.push_back(std::move(file));
    return {};
  };
  TACHO_TRY(open(target.file));
  TACHO_TRY(write_metrics(parts, options, files.back()));
  std::vector<std::string> names = {target.file};
  if (!trace.aggregated()) {
    if (is_standard_output(target.file)) {
      options.remark("standard output holds metrics alone; -o FILE also writes profiles");
    } else {
      names.push_back(profiles_name(target.file));
      TACHO_TRY(open(names.back()));
      TACHO_ASSIGN(const bool any, write_profiles(parts, options, files.back()));
      if (!any) {
        files.pop_back();
        names.pop_back();
      }
    }
  }
  TACHO_TRY(OutputFile::commit_all(files));
  written.insert(written.end(), names.begin(), names.end());
  return {};
}

}  // namespace tacho::format::otlp

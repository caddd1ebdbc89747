// Converts outputs to the format of their name (convert.h).
#include "cli/files/convert.h"

#include <filesystem>

#include "analysis/trim.h"
#include "base/files/output_file.h"
#include "cli/command.h"
#include "cli/files/open_trace.h"
#include "cli/files/writer_names.h"
#include "format/format.h"
#include "format/rpd/rpd.h"
#include "format/source/source.h"

namespace tacho::cli {

Result<std::string> output_format(const std::string& path, const std::string& format) {
  if (format == "tacho") return format;
  if (!format.empty()) {
    TACHO_ASSIGN(const format::Writer* const writer, writer_of(format));
    if (writer->folder) return fail("--format {}: writes a folder, not a file; use tacho export", format);
    return std::string(writer->name);
  }
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".tacho") return std::string("tacho");
  std::string known = ".tacho";
  const format::Writer* const of_ending = writer_of_ending(path);
  if (of_ending != nullptr && !of_ending->folder) return std::string(of_ending->name);
  for (const format::Writer& writer : format::writers())
    if (!writer.folder && writer.extension.starts_with('.')) known += ", " + std::string(writer.extension);
  if (is_standard_output(path))
    return fail("{}: standard output has no ending that says a format ({}); add --format", path, known);
  return fail("{}: its ending does not say a format ({}); choose one of those or add --format", path, known);
}

Status write_converted(const std::string& path, const std::string& format, bool overwrite,
                       const std::function<Status(trace::TraceWriter&)>& fill) {
  TACHO_ASSIGN(const std::string name, output_format(path, format));
  if (name == "tacho") {
    trace::WriterOptions options;
    options.overwrite = overwrite;
    TACHO_ASSIGN(const auto writer, trace::TraceWriter::create(path, options));
    TACHO_TRY(fill(*writer));
    return writer->finish();
  }
  TACHO_ASSIGN(const format::Writer* const target, writer_of(name));
  std::error_code error;
  if (!overwrite && !is_standard_output(path) && std::filesystem::exists(path, error))
    return fail("{}: exists already; choose another name or add --overwrite", path);
  TACHO_ASSIGN(const auto writer, trace::TraceWriter::create_temporary());
  TACHO_TRY(fill(*writer));
  TACHO_ASSIGN(const auto trace, writer->finish_and_open());
  format::ExportOptions options;
  options.overwrite = overwrite;
  std::vector<std::string> written, remarks;
  options.remarks = &remarks;
  TACHO_TRY(target->write(*trace, {path, {}, {}}, options, written));
  if (std::string sentence = format::left_out(*target, *trace, options); !sentence.empty())
    options.remark(std::move(sentence));
  for (const std::string& remark : remarks) complain(kOk, remark);
  return {};
}

Status copy_trace(const std::string& path, trace::TraceWriter& writer) {
  TACHO_ASSIGN(const bool read, format::read_foreign(path, writer));
  if (read) return {};
  TACHO_ASSIGN(auto trace, open_trace(path));
  std::vector<analysis::MergeInput> traces;
  traces.push_back({std::move(trace), path});
  std::vector<std::string> none;  // its notes concern the clocks of several traces
  return analysis::merge_into(traces, writer, none);
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::exists(b, error) && std::filesystem::equivalent(a, b, error);
}

bool is_rpd(const std::string& path) {
  return format::rpd::accepts(path, format::source::peek(path).text, false);
}

}  // namespace tacho::cli

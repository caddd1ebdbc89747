// Names files by their first bytes, their endings and their headers (strangers.h).
#include "format/source/strangers.h"

#include <algorithm>

#include "base/format.h"
#include "base/text/utf8.h"
#include "format/source/names.h"

namespace tacho::format::source {
namespace {

struct Known {
  std::string_view mark;  // an ending, or first bytes
  const char* says;
};

constexpr Known kEndings[] = {
    {".nsys-rep", "a report of Nsight Systems: write its tables with nsys export --type sqlite, which tacho reads"},
    {".qdrep", "a report of Nsight Systems: write its tables with nsys export --type sqlite, which tacho reads"},
    {".qdstrm",
     "an unfinished report of Nsight Systems: open it with Nsight Systems first, then write its tables with nsys "
     "export --type sqlite, which tacho reads"},
    {".ncu-rep", "a report of Nsight Compute, which holds no events over time: read it with ncu --import"},
    {".xplane.pb", "a profile of XLA: write it as Chrome JSON (in JAX: create_perfetto_trace=True), which tacho reads"},
    {".otf2", "a trace of OTF2, which tacho does not read"},
};

constexpr Known kFirstBytes[] = {
    {std::string_view("NVR\0", 4),
     "a report of Nsight Compute, which holds no events over time: read it with ncu --import"},
    {"PAR1", "a Parquet file: ask DuckDB or the like about it, and tacho about the trace that it was made from"},
    {"PERFILE2", "a recording of perf: read it with perf script"},
    {"\x7f"
     "ELF",
     "a program or a library, no trace: tacho trace -- PROGRAM records what it does"},
    {"# tracer:", "a trace of the Linux kernel (ftrace), which tacho does not read"},
    {"packet {",
     "a Perfetto trace written as text: tacho reads the binary form (protoc --encode=perfetto.protos.Trace)"},
    {"packet{",
     "a Perfetto trace written as text: tacho reads the binary form (protoc --encode=perfetto.protos.Trace)"},
    {"%PDF", "a PDF, no trace"},
    {"<?xml", "XML, no trace: perhaps the answer of a server that refused the file"},
    {"\x89PNG", "a picture, no trace"},
};

// What only one tool writes, anywhere in a text's first bytes.
constexpr Known kWords[] = {
    {"[pytorch|profiler|execution_trace",
     "an execution trace of PyTorch, which has no times: tacho reads what torch.profiler writes about the same run"},
    {"Self CPU %", "a table that torch.profiler printed: tacho reads what its export_chrome_trace() writes"},
};

// Words of one header line that tell whose table it is.
struct KnownTable {
  std::string_view first, second;
  const char* says;
};
constexpr KnownTable kTables[] = {
    {"Total Time", "Instances", "sums by nsys stats, without the events: write these with nsys export --type sqlite"},
    {"Total Time", "Num Calls", "sums by nsys stats, without the events: write these with nsys export --type sqlite"},
    {"Start (ns)", "Duration (ns)",
     "a table by nsys stats: write the events with nsys export --type sqlite, which tacho reads"},
    {"Metric Name", "Metric Value", "metrics by Nsight Compute, no trace"},
    {"TotalDurationNs", "AverageNs", "sums by rocprof, without the events: read the trace beside it"},
};

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_text(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x20 || is_space(c); });
}

std::string of_csv(std::string_view line) {
  for (const KnownTable& table : kTables)
    if (line.find(table.first) != std::string_view::npos && line.find(table.second) != std::string_view::npos)
      return table.says;
  constexpr size_t kMost = 60;
  return fmt::format("a table whose header ({}{}) is none of rocprofv3's or rocprof's traces",
                     valid_utf8(line.substr(0, kMost)), line.size() > kMost ? "..." : "");
}

// "null", "42" or "text": whole JSON, but nothing that holds events.
bool is_json_value(std::string_view text) {
  if (text == "null" || text == "true" || text == "false") return true;
  if (text.size() > 1 && text.starts_with('"') && text.ends_with('"')) return text.find('\n') == std::string_view::npos;
  return !text.empty() && text.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
}

// "main;run;step 42": frames and a count, as scripts for flame graphs read them.
bool is_folded_stack(std::string_view line) {
  const size_t count = line.rfind(' ');
  return count != std::string_view::npos && line.find(';') < count && count + 1 < line.size() &&
         line.find_first_not_of("0123456789", count + 1) == std::string_view::npos &&
         line.find_first_of(",\"{") == std::string_view::npos;
}

}  // namespace

std::string stranger_by_name(std::string_view path) {
  const std::string_view name = without_packing(path);
  for (const Known& known : kEndings)
    if (name.ends_with(known.mark)) return known.says;
  return {};
}

std::string stranger(std::string_view path, std::string_view head) {
  const std::string_view name = without_packing(path);
  for (const Known& known : kFirstBytes)
    if (head.starts_with(known.mark)) return known.says;
  if (head.find_first_not_of('\0') == std::string_view::npos)
    return "it begins with zeros alone: it was not written, or not copied to its end";
  std::string_view text = head;
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  if (text.empty()) return "it holds nothing but white space";
  if (!is_text(text)) return {};
  if (is_json_value(text)) return "JSON without events: not a trace";
  for (const Known& known : kWords)
    if (text.find(known.mark) != std::string_view::npos) return known.says;
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  if (is_folded_stack(line)) return "call stacks with counts, for flame graphs: they have no times";
  constexpr size_t kShown = 40;
  if (name.ends_with(".json") && text.front() != '{' && text.front() != '[')
    return fmt::format("no JSON: it begins with \"{}{}\"", valid_utf8(line.substr(0, kShown)),
                       line.size() > kShown ? "..." : "");
  if (name.ends_with(".csv") || name.ends_with(".tsv") || std::ranges::count(line, ',') >= 2) return of_csv(line);
  return {};
}

}  // namespace tacho::format::source

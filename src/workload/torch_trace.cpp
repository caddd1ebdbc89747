// Reading and joining the files of profile --torch-trace (torch_trace.h).
#include "workload/torch_trace.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>
#include <unordered_map>

#include "base/files/output_file.h"
#include "base/format.h"
#include "base/text/csv.h"

namespace tacho::workload {

namespace fs = std::filesystem;

namespace {

struct Pair {
  fs::path marker, collection, graphs;
};

// What rocprof-compute calls the files: the second name is of 3.8 and later.
constexpr std::array kPrefixes = {kTorchPrefix, std::string_view("ml_api_trace")};

// "torch_trace_0_marker_api_trace.csv" beside "torch_trace_0_counter_collection.csv".
std::vector<Pair> pairs_of(const std::string& folder, const std::vector<std::string>& pass_files) {
  std::vector<Pair> pairs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const auto prefix =
        std::find_if(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view each) { return name.starts_with(each); });
    if (prefix == kPrefixes.end() || !name.ends_with(kMarkerSuffix)) continue;
    const std::string stem = name.substr(0, name.size() - kMarkerSuffix.size());
    const fs::path collection = entry.path().parent_path() / (stem + std::string(kCollectionSuffix));
    if (!fs::exists(collection, error)) continue;
    const bool wanted =
        pass_files.empty() || std::any_of(pass_files.begin(), pass_files.end(), [&](const std::string& pass) {
          return stem == std::string(*prefix) + "_" + pass.substr(0, pass.rfind(".csv")) + "_";
        });
    if (wanted)
      pairs.push_back({entry.path(), collection, entry.path().parent_path() / (stem + std::string(kGraphSuffix))});
  }
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.marker < b.marker; });
  return pairs;
}

// Columns by name, whatever their case: rocprofv3 and rocprof-compute write Correlation_Id and Correlation_ID.
class TorchHeader {
 public:
  explicit TorchHeader(const std::vector<std::string_view>& fields) {
    for (size_t i = 0; i < fields.size(); ++i) at_.emplace(small(fields[i]), i);
  }
  Result<size_t> find(std::string_view name, const CsvReader& reader) const {
    const auto found = at_.find(small(name));
    if (found == at_.end())
      return fail("{}: it has no column {}; profile anew with --torch-trace", reader.name(), name);
    return found->second;
  }

 private:
  static std::string small(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
    return out;
  }
  std::map<std::string, size_t> at_;
};

struct OperatorRange {
  std::string name, context, start, end;
};
struct Row {
  std::string function, counter;  // sorted by these
  std::string text;
};

Status read_pair(const Pair& pair, std::map<std::string, TorchOperator>& operators, std::vector<Row>& rows) {
  std::unordered_map<std::string, OperatorRange> calls;  // by correlation
  std::vector<std::string_view> fields;
  {
    TACHO_ASSIGN(CsvReader reader, CsvReader::open(pair.marker.string()));
    TACHO_ASSIGN(const bool any, reader.next(fields));
    if (!any) return {};
    const TorchHeader header(fields);
    TACHO_ASSIGN(const size_t function, header.find("Function", reader));
    TACHO_ASSIGN(const size_t correlation, header.find("Correlation_Id", reader));
    TACHO_ASSIGN(const size_t start, header.find("Start_Timestamp", reader));
    TACHO_ASSIGN(const size_t end, header.find("End_Timestamp", reader));
    const size_t most = std::max({function, correlation, start, end});
    for (;;) {
      TACHO_ASSIGN(const bool more, reader.next(fields));
      if (!more) break;
      if (fields.size() <= most) return fail("{}, row {}: it has too few columns", reader.name(), reader.row());
      // "nn.Module.Net.forward/torch.nn.functional.relu:#1@train.py:31"
      const std::string_view text = fields[function];
      const size_t mark = text.rfind(":#");
      OperatorRange& call = calls[std::string(fields[correlation])];
      call.name = text.substr(0, mark);
      call.context = mark == std::string_view::npos ? std::string_view() : text.substr(mark + 2);
      call.start = fields[start];
      call.end = fields[end];
    }
  }
  TACHO_ASSIGN(CsvReader reader, CsvReader::open(pair.collection.string()));
  TACHO_ASSIGN(const bool any, reader.next(fields));
  if (!any) return {};
  const TorchHeader header(fields);
  TACHO_ASSIGN(const size_t correlation, header.find("Correlation_Id", reader));
  TACHO_ASSIGN(const size_t dispatch, header.find("Dispatch_Id", reader));
  TACHO_ASSIGN(const size_t kernel, header.find("Kernel_Name", reader));
  TACHO_ASSIGN(const size_t counter, header.find("Counter_Name", reader));
  TACHO_ASSIGN(const size_t value, header.find("Counter_Value", reader));
  TACHO_ASSIGN(const size_t start, header.find("Start_Timestamp", reader));
  TACHO_ASSIGN(const size_t end, header.find("End_Timestamp", reader));
  const size_t most = std::max({correlation, dispatch, kernel, counter, value, start, end});
  std::set<std::string> counted;  // calls that launched something, by correlation
  for (;;) {
    TACHO_ASSIGN(const bool more, reader.next(fields));
    if (!more) break;
    if (fields.size() <= most) return fail("{}, row {}: it has too few columns", reader.name(), reader.row());
    const auto found = calls.find(std::string(fields[correlation]));
    if (found == calls.end()) continue;  // launched outside of every operator
    const OperatorRange& call = found->second;
    int64_t id = 0;
    const std::string_view number = fields[dispatch];
    if (std::from_chars(number.data(), number.data() + number.size(), id).ec != std::errc())
      return fail("{}, row {}: '{}' is not the number of a dispatch", reader.name(), reader.row(), number);
    TorchOperator& of = operators[call.name];
    of.name = call.name;
    if (counted.insert(found->first).second) ++of.calls;
    of.kernels.emplace(fields[kernel]);
    if (const size_t at = call.context.find('@'); at != std::string::npos)
      of.contexts.insert(call.context.substr(at + 1));
    if (of.dispatches.insert(id).second) {
      int64_t begin = 0, stop = 0;
      double part = 0, rest = 0;
      if (parse_timestamp(fields[start], begin, part) && parse_timestamp(fields[end], stop, rest))
        of.kernel_ns += static_cast<double>(stop - begin) + (rest - part);
    }
    rows.push_back({call.name + ":#" + call.context, std::string(fields[counter]),
                    fmt::format("{},{},{},{},{},{},{},{},{}\n", csv_field(call.name), csv_field(call.context),
                                csv_field(fields[kernel]), csv_field(fields[counter]), fields[value], call.start,
                                call.end, fields[start], fields[end])});
  }
  return {};
}

// The parts of the CUDA graphs of a run.
Status read_graphs(const fs::path& file, std::vector<TorchGraphPart>& parts) {
  TACHO_ASSIGN(CsvReader reader, CsvReader::open(file.string()));
  std::vector<std::string_view> fields;
  TACHO_ASSIGN(const bool any, reader.next(fields));
  if (!any) return {};
  const TorchHeader header(fields);
  TACHO_ASSIGN(const size_t graph, header.find("Graph_Name", reader));
  TACHO_ASSIGN(const size_t id, header.find("Graph_Id", reader));
  TACHO_ASSIGN(const size_t launches, header.find("Launches", reader));
  TACHO_ASSIGN(const size_t name, header.find("Operator_Name", reader));
  TACHO_ASSIGN(const size_t kernels, header.find("Kernels", reader));
  TACHO_ASSIGN(const size_t duration, header.find("Duration_Ns", reader));
  const size_t most = std::max({graph, id, launches, name, kernels, duration});
  for (;;) {
    TACHO_ASSIGN(const bool more, reader.next(fields));
    if (!more) return {};
    if (fields.size() <= most) return fail("{}, row {}: it has too few columns", reader.name(), reader.row());
    TorchGraphPart& part = parts.emplace_back();
    part.graph = fields[graph];
    part.name = fields[name];
    for (const auto& [at, into] :
         {std::pair{id, &part.number}, {launches, &part.launches}, {kernels, &part.kernels}, {duration, &part.ns}})
      if (const std::string_view text = fields[at];
          std::from_chars(text.data(), text.data() + text.size(), *into).ec != std::errc() || *into < 0)
        return fail("{}, row {}: '{}' is not a count", reader.name(), reader.row(), text);
  }
}

Status write_consolidated(const fs::path& file, std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.function != b.function ? a.function < b.function : a.counter < b.counter;
  });
  std::error_code error;
  fs::create_directory(file.parent_path(), error);
  TACHO_ASSIGN(OutputFile out, OutputFile::create(file.string(), true));
  out.write(
      "Operator_Name,Context_Id,Kernel_Name,Counter_Name,Counter_Value,Start_Timestamp_function,End_Timestamp_function,Start_Timestamp_kernel,End_Timestamp_kernel\n"
      "");
  for (const Row& row : rows) out.write(row.text);
  return out.commit();
}

// One part of a name against one of a pattern, as fnmatch: case counts.
bool part_matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
      continue;
    }
    bool same = false;
    size_t next = p + 1;
    if (p < pattern.size() && pattern[p] == '[') {
      const size_t first = p + 1 + (p + 1 < pattern.size() && pattern[p + 1] == '!' ? 1 : 0);
      const size_t close = first < pattern.size() ? pattern.find(']', first + 1) : std::string_view::npos;
      if (close == std::string_view::npos) {
        same = text[t] == '[';
      } else {
        for (size_t i = first; i < close; ++i) {
          if (i + 2 < close && pattern[i + 1] == '-') {
            same = same || (pattern[i] <= text[t] && text[t] <= pattern[i + 2]);
            i += 2;
          } else {
            same = same || pattern[i] == text[t];
          }
        }
        if (first != p + 1) same = !same;
        next = close + 1;
      }
    } else if (p < pattern.size()) {
      same = pattern[p] == '?' || pattern[p] == text[t];
    }
    if (same) {
      p = next;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin && path.substr(begin, end - begin) != ".") parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

Result<TorchTrace> read_torch_trace(const std::string& folder, const std::vector<std::string>& pass_files) {
  const std::vector<Pair> pairs = pairs_of(folder, pass_files);
  if (pairs.empty()) return fail("{}: it has no operators of PyTorch; profile the program with --torch-trace", folder);
  TorchTrace trace;
  std::map<std::string, TorchOperator> operators;
  std::vector<Row> rows;
  for (const Pair& pair : pairs) {
    TACHO_TRY(read_pair(pair, operators, rows));
    if (fs::exists(pair.graphs)) TACHO_TRY(read_graphs(pair.graphs, trace.graph_parts));
  }
  for (auto& [name, each] : operators) trace.operators.push_back(std::move(each));

  const fs::path file = fs::path(folder) / kTorchPrefix / "consolidated.csv";
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  bool stale = static_cast<bool>(error);
  for (const Pair& pair : pairs)
    for (const fs::path& source : {pair.marker, pair.collection})
      stale = stale || fs::last_write_time(source, error) > written;
  if (!stale) return trace;
  if (access(folder.c_str(), W_OK) != 0)
    trace.notes.push_back(fmt::format("{} cannot be written to, so the operators are not kept in {}", folder,
                                      (fs::path(kTorchPrefix) / "consolidated.csv").string()));
  else if (const Status done = write_consolidated(file, rows); !done)
    trace.notes.push_back("the operators are not kept: " + done.error().message);
  return trace;
}

bool torch_operator_matches(std::string_view pattern, std::string_view name) {
  if (pattern == "all" || pattern == "*" || pattern == "**") return true;
  const auto wanted = parts_of(pattern), parts = parts_of(name);
  if (wanted.empty() || pattern.starts_with('/') || wanted.size() > parts.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (!part_matches(wanted[wanted.size() - 1 - i], parts[parts.size() - 1 - i])) return false;
  return true;
}

}  // namespace tacho::workload

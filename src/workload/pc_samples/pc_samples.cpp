// Reading and adding up PC samples.
#include "workload/pc_samples/pc_samples.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "base/text/csv.h"
#include "workload/layout/layout.h"
#include "workload/pc_samples/sample_counts.h"
#include "workload/pc_samples/sample_json.h"

namespace tacho::workload {

namespace {

constexpr size_t kNowhere = static_cast<size_t>(-1);

size_t position(const std::vector<std::string>& header, std::string_view name) {
  const auto found = std::find(header.begin(), header.end(), name);
  return found == header.end() ? kNowhere : static_cast<size_t>(found - header.begin());
}

Result<std::vector<std::string>> read_names(CsvReader& reader) {
  std::vector<std::string_view> fields;
  TACHO_ASSIGN(const bool any, reader.next(fields));
  if (!any) return fail("{}: the file is empty", reader.name());
  return std::vector<std::string>(fields.begin(), fields.end());
}

// Dispatch_Id -> kernel, from the kernel trace beside the samples; empty if there is none.
Result<StringMap<std::string>> kernels_of_dispatches(const std::string& path) {
  StringMap<std::string> kernels;
  if (access(path.c_str(), R_OK) != 0) return kernels;
  TACHO_ASSIGN(CsvReader reader, CsvReader::open(path));
  TACHO_ASSIGN(const std::vector<std::string> header, read_names(reader));
  const size_t id = position(header, "Dispatch_Id"), name = position(header, "Kernel_Name");
  if (id == kNowhere || name == kNowhere)
    return fail("{}: the header has no Dispatch_Id or no Kernel_Name; this is not a kernel trace of rocprofv3", path);
  std::vector<std::string_view> fields;
  for (;;) {
    TACHO_ASSIGN(const bool more, reader.next(fields));
    if (!more) return kernels;
    if (fields.size() == header.size()) kernels.emplace(std::string(fields[id]), std::string(fields[name]));
  }
}

Status read_file(const std::string& path, const std::string& kernel_trace, SampleCounts& counts_of,
                 std::vector<std::string>& warnings) {
  TACHO_ASSIGN(const StringMap<std::string> kernels, kernels_of_dispatches(kernel_trace));
  TACHO_ASSIGN(CsvReader reader, CsvReader::open(path));
  TACHO_ASSIGN(const std::vector<std::string> header, read_names(reader));
  const size_t instruction = position(header, "Instruction"), source = position(header, "Instruction_Comment"),
               dispatch = position(header, "Dispatch_Id"), issued = position(header, "Wave_Issued_Instruction"),
               stall = position(header, "Stall_Reason"),
               counts = position(header, "Samples");  // ours: a row counts as this many
  if (instruction == kNowhere || dispatch == kNowhere)
    return fail("{}: the header has no Instruction or no Dispatch_Id; these are not PC samples of rocprofv3", path);
  FaultLog log(path);
  std::vector<std::string_view> fields;
  for (;;) {
    TACHO_ASSIGN(const bool more, reader.next(fields));
    if (!more) break;
    if (fields.size() != header.size()) {
      log.add(reader.unterminated() ? "row is cut off at the end of the file"
                                    : "row has another number of fields than the header",
              "left out", reader.row(), fmt::format("{} of {} fields", fields.size(), header.size()));
      continue;
    }
    uint64_t count = 1;
    if (counts != kNowhere) {
      const std::string_view text = fields[counts];
      if (std::from_chars(text.data(), text.data() + text.size(), count).ec != std::errc() ||
          count > (uint64_t{1} << 48)) {
        log.add("row has no number of samples", "left out", reader.row(), std::string(text));
        continue;
      }
    }
    const auto kernel = kernels.find(fields[dispatch]);
    const std::string_view kernel_name = kernel == kernels.end() ? std::string_view() : kernel->second;
    const std::string_view comment = source == kNowhere ? std::string_view() : fields[source];
    const size_t place = counts_of.place(kernel_name, fields[instruction], comment);
    if (place == SampleCounts::kFull) {
      log.add("there are more than a million different instructions", "the rest was left out", reader.row(), "");
      continue;
    }
    const bool was_issued =
        issued != kNowhere && (fields[issued] == "1" || fields[issued] == "True" || fields[issued] == "true");
    counts_of.add(place, count, was_issued, stall == kNowhere ? std::string_view() : fields[stall]);
  }
  log.report(warnings);
  return {};
}

// The files of one kind in the folder, by name.
std::vector<std::string> files_called(const std::string& folder, std::string_view name) {
  std::vector<std::string> found;
  std::error_code error;
  for (auto entries = std::filesystem::directory_iterator(folder, error);
       !error && entries != std::filesystem::directory_iterator(); entries.increment(error))
    if (const std::string file = entries->path().filename().string(); is_sample_file(file, name)) found.push_back(file);
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

bool is_sample_file(std::string_view file, std::string_view name) {
  if (!file.ends_with(name)) return false;
  file.remove_suffix(name.size());
  return file.empty() ||
         (file.size() > 1 && file.back() == '_' && file.find_first_not_of("0123456789") == file.size() - 1);
}

Result<std::optional<PcSamples>> read_pc_samples(const std::string& folder, std::vector<std::string>& warnings) {
  SampleCounts counts;
  std::string first;
  bool stochastic = false;
  for (const std::string_view method : {"stochastic", "host_trap"}) {
    const std::string name = fmt::format("ps_file_pc_sampling_{}.csv", method);
    for (const std::string& file : files_called(folder, name)) {
      const std::string process = file.substr(0, file.size() - name.size());
      if (first.empty()) first = fmt::format("{}/{}", folder, file);
      TACHO_TRY(read_file(fmt::format("{}/{}", folder, file),
                          fmt::format("{}/{}ps_file_kernel_trace.csv", folder, process), counts, warnings));
    }
    stochastic = method == "stochastic";
    if (!first.empty()) break;
  }
  if (first.empty()) {
    // From 3.9 on rocprof-compute leaves the samples in JSON alone.
    stochastic = false;
    for (const std::string& file : files_called(folder, "ps_file_results.json")) {
      const std::string path = fmt::format("{}/{}", folder, file);
      if (const uint64_t found = read_sample_json(path, counts, stochastic, warnings); found > 0 && first.empty())
        first = path;
    }
    if (first.empty()) return std::optional<PcSamples>();
  }
  PcSamples result = std::move(counts).take();
  result.file = first;
  result.stochastic = stochastic;
  TACHO_ASSIGN(result.sources, read_pc_sources(folder));
  if (result.samples == 0) return fail("{}: there is not one sample in it", result.file);
  return std::optional<PcSamples>(std::move(result));
}

void sort_by_source(PcSamples& samples) {
  // "file.cpp:42" -> ("file.cpp", 42)
  const auto place = [](const SampledInstruction& each) {
    const std::string_view text = each.source;
    const size_t colon = text.rfind(':');
    uint64_t line = 0;
    if (colon != std::string_view::npos) std::from_chars(text.data() + colon + 1, text.data() + text.size(), line);
    return std::tuple(std::string_view(each.kernel), text.substr(0, colon), line);
  };
  std::stable_sort(samples.instructions.begin(), samples.instructions.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
}

}  // namespace tacho::workload

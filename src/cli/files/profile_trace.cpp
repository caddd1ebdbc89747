// Makes traces of profile folders (profile_trace.h).
#include "cli/files/profile_trace.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "event/times.h"
#include "trace/write/writer.h"
#include "workload/workload.h"

namespace tacho::cli {

namespace row = event::row;
using event::kUnknown;
using event::Table;

namespace {

// A column of counters: "TCC_HIT[3]" is instance 3 of TCC_HIT.
struct Column {
  int64_t counter = 0, instance = 0;
  std::span<const double> values;
};

class Rows {
 public:
  Rows(trace::TraceWriter& writer, const workload::Workload& workload) : writer_(writer), workload_(workload) {
    host_ = writer.string(workload.sysinfo.get("hostname"));
    process_ = writer.dimension(row::Process{.name = writer.string(workload.sysinfo.get("workload_name")),
                                             .command = writer.string(workload.sysinfo.get("command")),
                                             .host = host_});
    const workload::CounterTable& counters = workload.passes.front().counters;
    for (const std::string& name : counters.names()) {
      if (workload::is_id_column(name)) continue;
      std::string_view base = name;
      Column column{.values = counters.column(name)};
      if (const size_t bracket = base.find('['); bracket != std::string_view::npos && base.ends_with(']')) {
        std::from_chars(base.data() + bracket + 1, base.data() + base.size(), column.instance);
        base = base.substr(0, bracket);
      }
      column.counter = writer.dimension(row::Counter{.name = writer.string(base)});
      columns_.push_back(column);
    }
  }

  void add(size_t at) {
    const workload::Dispatch& dispatch = workload_.dispatches[at];
    const auto begin = whole(workload::kStart, at), end = whole(workload::kEnd, at);
    const bool timed = begin && end && *end >= *begin;
    const int64_t track = track_of(dispatch.gpu);
    const int64_t start = timed ? *begin : static_cast<int64_t>(at);
    const auto number = [&](std::string_view name) { return whole(name, at).value_or(kUnknown); };
    const int64_t kernel = writer_.dimension(row::Kernel{.name = writer_.string(workload_.kernel_name(at)),
                                                         .grid_x = number("Grid_Size"),
                                                         .grid_y = 1,
                                                         .grid_z = 1,
                                                         .group_x = number("Workgroup_Size"),
                                                         .group_y = 1,
                                                         .group_z = 1,
                                                         .registers = number("Arch_VGPR"),
                                                         .accum_registers = number("Accum_VGPR"),
                                                         .scalar_registers = number("SGPR"),
                                                         .shared_static = number("LDS_Per_Workgroup"),
                                                         .private_bytes = number("Scratch_Per_Workitem")});
    writer_.add(row::Dispatch{.track = track,
                              .start = start,
                              .duration = timed ? *end - *begin : kUnknown,
                              .dim = kernel,
                              .ordinal = static_cast<int64_t>(at)});
    for (const Column& column : columns_)
      if (const double value = column.values[at]; !std::isnan(value))
        writer_.add(row::CounterValue{.track = track,
                                      .start = start,
                                      .ordinal = static_cast<int64_t>(at),
                                      .dim = column.counter,
                                      .instance = column.instance,
                                      .value = std::bit_cast<int64_t>(value)});
  }

 private:
  std::optional<int64_t> whole(std::string_view name, size_t at) const {
    const std::span<const double> values = workload_.passes.front().counters.column(name);
    if (values.empty() || std::isnan(values[at]) || std::abs(values[at]) > 9e15) return std::nullopt;
    return static_cast<int64_t>(values[at]);
  }

  int64_t track_of(int64_t gpu) {
    const auto [found, fresh] = tracks_.try_emplace(gpu, 0);
    if (!fresh) return found->second;
    const workload::SysInfo& machine = workload_.sysinfo;
    const std::string_view model = machine.get("gpu_model");
    const int64_t device =
        writer_.dimension(row::Device{.kind = event::DeviceKind::kGpu,
                                      .index = std::max<int64_t>(gpu, 0),
                                      .name = writer_.string(model.empty() ? machine.get("gpu_arch") : model),
                                      .architecture = writer_.string(machine.get("gpu_arch"))});
    return found->second = writer_.dimension(
               row::Track{.kind = event::TrackKind::kQueue, .process = process_, .device = device, .native = 0});
  }

  trace::TraceWriter& writer_;
  const workload::Workload& workload_;
  int64_t host_ = 0, process_ = 0;
  std::vector<Column> columns_;
  std::map<int64_t, int64_t> tracks_;  // by GPU
};

}  // namespace

Result<std::shared_ptr<const trace::Trace>> trace_of_profile(const std::string& folder) {
  TACHO_ASSIGN(const std::string found, workload::find_workload(folder));
  TACHO_ASSIGN(workload::SysInfo machine, workload::read_sysinfo(found));
  TACHO_ASSIGN(const workload::Workload workload, workload::read_workload(found, std::move(machine), {}));
  TACHO_ASSIGN(const std::unique_ptr<trace::TraceWriter> writer, trace::TraceWriter::create_temporary());
  Rows rows(*writer, workload);
  for (size_t at = 0; at < workload.dispatches.size(); ++at) rows.add(at);
  for (const std::string& warning : workload.warnings) writer->note(0, event::NoteSeverity::kWarning, warning);
  writer->property(Table::kEnd, 0, "source", "profile folder");
  writer->property(Table::kEnd, 0, "source_file", found);
  return writer->finish_and_open(folder);
}

}  // namespace tacho::cli

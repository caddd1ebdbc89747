// Dispatches and counter values as rows of a trace (to_trace.h).
#include "counter/to_trace.h"

#include <unistd.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "trace/write/writer.h"

namespace tacho::counter {

namespace {

using event::kUnknown;
namespace row = event::row;
using event::Table;

class Rows {
 public:
  Rows(trace::TraceWriter& writer, const Device& device, const std::vector<std::string>& command)
      : writer_(writer), now_(sample_clocks()) {
    for (const std::string& word : command) command_ += (command_.empty() ? "" : " ") + word;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    host_ = host;
    int index = 0;
    std::from_chars(device.id.data(), device.id.data() + device.id.size(), index);
    device_ =
        writer.dimension(row::Device{.kind = device.id == "cpu" ? event::DeviceKind::kCpu : event::DeviceKind::kGpu,
                                     .index = index,
                                     .name = writer.string(device.name),
                                     .vendor = writer.string(device.vendor),
                                     .architecture = writer.string(device.architecture)});
    writer.add(
        row::Clock{.raw = now_.raw, .monotonic = now_.monotonic, .boottime = now_.boottime, .realtime = now_.realtime});
  }

  void add(const ObservedDispatch& dispatch, const std::vector<std::pair<std::string_view, double>>& values,
           size_t pass) {
    const int64_t process = process_of(dispatch);
    const int64_t thread = writer_.dimension(row::Thread{.process = process, .tid = dispatch.tid});
    const int64_t track = writer_.dimension(row::Track{.kind = event::TrackKind::kQueue,
                                                       .process = process,
                                                       .thread = thread,
                                                       .device = device_,
                                                       .native = dispatch.queue});
    const auto size = [](uint64_t value) { return static_cast<int64_t>(value); };
    const int64_t group = dispatch.workgroup[0] == 0 ? kUnknown : size(dispatch.workgroup[0]);
    const int64_t kernel = writer_.dimension(row::Kernel{.name = writer_.string(dispatch.kernel),
                                                         .grid_x = size(dispatch.grid[0]),
                                                         .grid_y = size(dispatch.grid[1]),
                                                         .grid_z = size(dispatch.grid[2]),
                                                         .group_x = group,
                                                         .group_y = size(dispatch.workgroup[1]),
                                                         .group_z = size(dispatch.workgroup[2]),
                                                         .registers = dispatch.arch_vgpr,
                                                         .accum_registers = dispatch.accum_vgpr,
                                                         .scalar_registers = dispatch.sgpr,
                                                         .shared_static = size(dispatch.lds),
                                                         .shared_dynamic = 0,
                                                         .private_bytes = size(dispatch.scratch)});
    const bool timed = dispatch.end > dispatch.start;
    // A dispatch without a time keeps its place in the order, with no duration.
    const int64_t start = timed ? dispatch.start - (now_.boottime - now_.raw) : now_.raw + size(dispatch.index);
    const auto ordinal = static_cast<int64_t>(dispatch.index);
    if (written_.try_emplace(dispatch.index, start).second)
      writer_.add(row::Dispatch{.track = track,
                                .start = start,
                                .duration = timed ? dispatch.end - dispatch.start : kUnknown,
                                .dim = kernel,
                                .correlation = ordinal + 1,
                                .ordinal = ordinal});
    for (const auto& [name, value] : values) {
      // "L2_HIT[3]" is instance 3 of L2_HIT.
      std::string_view base = name;
      int64_t instance = 0;
      if (const size_t bracket = name.find('['); bracket != std::string_view::npos && name.ends_with(']')) {
        base = name.substr(0, bracket);
        std::from_chars(name.data() + bracket + 1, name.data() + name.size(), instance);
      }
      const int64_t counter = writer_.dimension(row::Counter{.name = writer_.string(base)});
      writer_.add(row::CounterValue{.track = track,
                                    .start = written_[dispatch.index],
                                    .ordinal = ordinal,
                                    .dim = counter,
                                    .instance = instance,
                                    .pass = size(pass),
                                    .value = std::bit_cast<int64_t>(value)});
    }
  }

 private:
  int64_t process_of(const ObservedDispatch& dispatch) {
    int64_t& row = processes_[dispatch.pid];
    if (row == 0)
      row = writer_.dimension(row::Process{.pid = dispatch.pid,
                                           .parent_pid = 0,
                                           .start = now_.raw,
                                           .name = writer_.string(command_.substr(0, command_.find(' '))),
                                           .command = writer_.string(command_),
                                           .host = writer_.string(host_)});
    return row;
  }

  trace::TraceWriter& writer_;
  ClockTuple now_;
  std::string command_, host_;
  int64_t device_ = 0;
  std::map<uint32_t, int64_t> processes_;
  std::map<uint64_t, int64_t> written_;
};

}  // namespace

Status write_counter_trace(const std::string& path, const Device& device, const std::vector<std::string>& command,
                           std::span<const PassResult> passes) {
  trace::WriterOptions options;
  options.overwrite = true;
  TACHO_ASSIGN(const auto writer, trace::TraceWriter::create(path, options));
  Rows rows(*writer, device, command);
  for (const PassResult& pass : passes)
    for (size_t row = 0; row < pass.dispatches.size(); ++row) {
      std::vector<std::pair<std::string_view, double>> values;
      for (size_t c = 0; c < pass.counters.size(); ++c) {
        const double value = pass.values[row * pass.counters.size() + c];
        if (!std::isnan(value)) values.emplace_back(pass.counters[c], value);
      }
      rows.add(pass.dispatches[row], values, pass.pass);
    }
  return writer->finish();
}

}  // namespace tacho::counter

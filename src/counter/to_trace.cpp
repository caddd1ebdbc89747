// Dispatches and counter values as rows of a trace (to_trace.h).
#include "counter/to_trace.h"

#include <unistd.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "trace/writer.h"

namespace tacho::counter {

namespace {

using event::kUnknown;
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
    device_ = writer.dimension(
        Table::kDevice,
        {0, static_cast<int64_t>(device.id == "cpu" ? event::DeviceKind::kCpu : event::DeviceKind::kGpu),
         index, writer.string(device.name), writer.string(device.vendor), writer.string(device.architecture),
         0, 0, kUnknown});
    writer.add(Table::kClock, {0, now_.raw, now_.monotonic, now_.boottime, now_.realtime, kUnknown, 0});
  }

  void add(const Dispatch& dispatch, const std::vector<std::pair<std::string_view, double>>& values,
           size_t pass) {
    const int64_t process = process_of(dispatch);
    const int64_t thread = writer_.dimension(Table::kThread, {process, dispatch.tid, 0});
    const int64_t track =
        writer_.dimension(Table::kTrack, {static_cast<int64_t>(event::TrackKind::kQueue), process, thread,
                                          device_, dispatch.queue, 0, 0, 0, 0});
    const auto size = [](uint64_t value) { return static_cast<int64_t>(value); };
    const int64_t group = dispatch.workgroup[0] == 0 ? kUnknown : size(dispatch.workgroup[0]);
    const int64_t kernel = writer_.dimension(Table::kKernel, {writer_.string(dispatch.kernel),
                                                              0,
                                                              size(dispatch.grid[0]),
                                                              size(dispatch.grid[1]),
                                                              size(dispatch.grid[2]),
                                                              group,
                                                              size(dispatch.workgroup[1]),
                                                              size(dispatch.workgroup[2]),
                                                              0,
                                                              0,
                                                              0,
                                                              0,
                                                              0,
                                                              0,
                                                              dispatch.arch_vgpr,
                                                              dispatch.accum_vgpr,
                                                              dispatch.sgpr,
                                                              size(dispatch.lds),
                                                              0,
                                                              size(dispatch.scratch),
                                                              kUnknown,
                                                              kUnknown,
                                                              0});
    const bool timed = dispatch.end > dispatch.start;
    // A dispatch that was not timed stands in its place, without a duration.
    const int64_t start =
        timed ? dispatch.start - (now_.boottime - now_.raw) : now_.raw + size(dispatch.index);
    const auto ordinal = static_cast<int64_t>(dispatch.index);
    if (written_.try_emplace(dispatch.index, start).second)
      writer_.add(Table::kDispatch, {track, start, timed ? dispatch.end - dispatch.start : kUnknown, kernel,
                                     ordinal + 1, kUnknown, kUnknown, ordinal, 0});
    for (const auto& [name, value] : values) {
      // "L2_HIT[3]" is instance 3 of L2_HIT.
      std::string_view base = name;
      int64_t instance = 0;
      if (const size_t bracket = name.find('['); bracket != std::string_view::npos && name.ends_with(']')) {
        base = name.substr(0, bracket);
        std::from_chars(name.data() + bracket + 1, name.data() + name.size(), instance);
      }
      const int64_t counter = writer_.dimension(Table::kCounter, {writer_.string(base), 0, 0, 0});
      writer_.add(Table::kCounterValue, {track, written_[dispatch.index], ordinal, counter, instance,
                                         size(pass), std::bit_cast<int64_t>(value)});
    }
  }

 private:
  int64_t process_of(const Dispatch& dispatch) {
    int64_t& row = processes_[dispatch.pid];
    if (row == 0)
      row = writer_.dimension(
          Table::kProcess, {dispatch.pid, 0, now_.raw, writer_.string(command_.substr(0, command_.find(' '))),
                            writer_.string(command_), writer_.string(host_), kUnknown, 0});
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

Status write_counter_trace(const std::string& path, const Device& device,
                           const std::vector<std::string>& command, std::span<const PassResult> passes) {
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

// Device work as Perfetto's model of GPUs has it: GPUs, contexts, queues, stages, kernels, launches and counters.
//
//   GpuInfo             the GPUs of the machine; the place in the list is the gpu_id of everything below
//   GpuRenderStageEvent a kernel, copy or fill: its id, duration, GPU, queue, stage, context; of kernels the name,
//                       grid, workgroup and arguments of the launch
//   GpuCounterEvent     hardware counters at the start of their kernel, 0 at its end; telemetry of the GPU
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "format/perfetto/packets.h"
#include "format/perfetto/work_ids.h"
#include "format/shared/options.h"
#include "trace/trace.h"
#include "walk/hash_ids.h"
#include "walk/names/names.h"
#include "walk/names/tracks.h"
#include "walk/timeline.h"

namespace tacho::format::perfetto {

/// Collects the arguments of launches (ExtraComputeArg), encoded and ready to copy.
class LaunchArguments {
 public:
  explicit LaunchArguments(Packets& packets) : packets_(packets) {}
  /// `name` must stay valid.
  void add(std::string_view name, int64_t value);
  void add_real(std::string_view name, double value);
  void add_text(std::string_view name, std::string_view text);
  /// A text that comes back again and again; must stay valid.
  void add_repeated(std::string_view name, std::string_view text);
  void clear() { bytes_.clear(); }
  std::string& bytes() { return bytes_; }

 private:
  uint32_t name_of(std::string_view name) { return packets_.intern(interned_argument_names, name); }
  void put(std::string_view message);
  Packets& packets_;
  std::string bytes_;
};

class GpuModel {
 public:
  /// What the model is made of; must outlive it.
  struct Scene {
    const trace::Trace& trace;
    const ExportOptions& options;
    const walk::Agents& agents;
    const walk::Tracks& tracks;
    walk::KernelNames& kernels;
    WorkIds& ids;
    const std::vector<int64_t>& pids;  // of the rows of table process that ran on the machine; 0 for others
  };
  GpuModel(Scene scene, Packets& packets);

  /// Writes the machine's GPUs and finds its counters. Call it before anything else. Errors: bad data.
  Status describe();
  /// Writes a kernel, copy or fill at `time`. `line`: the row that stands for its queue (Timeline::track_of).
  /// `renamed`: a name to show instead of the kernel's; "" = none.
  void work(const walk::Happening& what, int64_t time, int64_t line, std::string_view renamed);
  WorkIds& ids() { return scene_.ids; }
  /// Whether work of this table is the model's.
  static bool takes(event::Table table) {
    return table == event::Table::kDispatch || table == event::Table::kCopy || table == event::Table::kFill;
  }
  /// Writes the counters of a kernel that began at `time`, and 0 at `end` (event::kUnknown = not known) once fall()
  /// gets there. `values`: rows of table counter with their sums.
  void kernel_counters(int64_t track, int64_t time, int64_t end, const std::vector<std::pair<int64_t, double>>& values);
  /// Whether a line of telemetry is a GPU's; reading() writes one of its values.
  bool reads(int64_t track) const { return readings_.contains(track); }
  void reading(int64_t track, int64_t time, double value);
  /// When counters of kernels fall to 0 next.
  int64_t next_fall() const { return falls_.empty() ? INT64_MAX : falls_.top().time; }
  /// Writes those that fall before `until`.
  void fall(int64_t until);

 private:
  struct Place {  // of a queue's row
    bool made = false;
    std::string head, arguments;  // fields of the event, and of its launch
    size_t architecture = 0;
  };
  struct Counters {             // of a GPU
    uint32_t descriptor = 0;    // its iid, once written
    std::vector<int64_t> rows;  // of table counter, or of table track for telemetry; the place is the counter's id
    std::map<int64_t, uint32_t> ids;
    std::vector<int64_t> written;  // when, by id
  };
  struct Fall {
    int64_t time, since, gpu;
    std::vector<uint32_t> ids;
    bool operator<(const Fall& other) const { return time > other.time; }  // earliest on top
  };
  int64_t pid(int64_t process) const { return scene_.pids[static_cast<size_t>(process)]; }
  void number_devices();
  std::string gpu_message(int64_t device, bool several_of_name) const;
  Status find_counters();
  int64_t gpu_of(int64_t device) const;
  Place& place(int64_t track, int64_t line);
  uint32_t queue(int64_t line);
  uint32_t context(int64_t process, int64_t device, int64_t number);
  uint32_t stage(event::Table table);
  uint32_t kernel(int64_t dim, size_t architecture);
  std::string_view shape(int64_t dim);
  std::string_view copy(int64_t dim);
  void name(int64_t dim, std::string_view renamed, event::Table table);
  void describe_counters(Counters& counters, int64_t gpu, bool of_kernels);
  void put_counters(int64_t time, Counters& counters, const std::vector<std::pair<uint32_t, double>>& values);
  std::string_view device_word(int64_t device);
  std::string_view keep(std::string text) { return *kept_.insert(std::move(text)).first; }

  Scene scene_;
  Packets& packets_;
  std::vector<bool> processes_;  // whether they ran on the machine
  bool several_processes_ = false;
  std::vector<int64_t> gpus_;           // by row of table device; event::kUnknown = of another machine
  std::vector<int64_t> device_of_gpu_;  // 0 = none
  std::vector<Place> places_;           // by row of table track
  std::map<int64_t, uint32_t> queues_;  // by line
  std::map<std::array<int64_t, 3>, uint32_t> contexts_;
  std::map<int64_t, uint32_t> stages_;  // by table
  uint32_t specifications_ = 0, kernel_entries_ = 0, descriptors_ = 0;
  std::vector<std::string_view> architectures_;
  std::vector<walk::RowNumbers> kernels_;     // by architecture: iids by row of the name's string
  walk::RowNumbers names_;                    // of kernels: iids by row of the string
  std::vector<std::string> shapes_, copies_;  // by row of tables kernel and copy_shape
  std::string scratch_, head_, launch_;
  LaunchArguments arguments_;
  std::map<int64_t, Counters> kernel_counters_, telemetry_;   // by GPU
  std::map<int64_t, std::pair<int64_t, uint32_t>> readings_;  // by track: GPU and counter
  std::map<int64_t, std::string> reading_names_;              // by track
  std::priority_queue<Fall> falls_;
  std::vector<std::pair<uint32_t, double>> values_;
  std::set<std::string> kept_;
};

}  // namespace tacho::format::perfetto

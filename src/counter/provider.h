// What a source of hardware counters is: its devices, which counters they have, in which passes those are read, and
// running a program so that every dispatch of it and of its descendants gets its values. Each provider has a folder in
// provider/; the rest of tacho knows only this interface.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "launch/launcher.h"
#include "metric/catalog/architecture.h"

namespace tacho::counter {

struct Device {
  std::string id;              ///< what --device takes: "0", "1" for GPUs of the machine, "virtual", "cpu"
  std::string vendor;          ///< of the catalog: "nvidia", "amd", "virtual", "cpu"
  std::string architecture;    ///< of the catalog: "sm_90", "gfx942", "virtual", "cpu"
  metric::Architecture facts;  ///< what the catalog says of it
  std::string model;  ///< marketing name without the vendor, [A-Za-z0-9_-] only: "H200"; names the folder
  std::string name;   ///< for people: "NVIDIA H200"
  /// Columns of sysinfo.csv that describe the device (wave_size, lds_banks_per_cu, max_sclk in MHz, ...), in order.
  std::vector<std::pair<std::string, std::string>> sysinfo;
};

/// One counter that a device offers. Names are what formulas of its catalog use.
struct CounterInfo {
  std::string name;
  std::string description;  ///< one sentence
};

/// Counters whose values come into one file.
struct Pass {
  std::string name;  ///< of its files: "pmc_perf_0"; a level pass is called after its level: "SQ_LEVEL_WAVES"
  std::vector<std::string> counters;  ///< sorted; as columns of <name>.csv are called
  std::string definitions;            ///< text of perfmon/<name>.yaml, "" = none
  size_t executions = 1;              ///< of a kernel, until all of them are read
};

struct Plan {
  std::vector<Pass> passes;  ///< deterministic: the same counters give the same plan
  /// Counters that were asked for and that the device does not have; a warning to the user, no error.
  std::vector<std::string> unavailable;

  /// How often a kernel runs until everything is read.
  size_t executions() const {
    size_t sum = 0;
    for (const Pass& pass : passes) sum += pass.executions;
    return sum;
  }
};

/// Which dispatches are wanted (-k, -d): a kernel passes when one of `kernels` is part of its name, a dispatch when its
/// 0-based index over all dispatches of the run is in one of `dispatches`. Empty lists let everything pass.
struct Filter {
  struct Range {
    uint64_t first = 0, last = 0;  ///< inclusive
  };
  std::vector<std::string> kernels;
  std::vector<Range> dispatches;

  bool kernel(std::string_view name) const;
  bool dispatch(uint64_t index) const;
};

/// How passes are spread when one execution of a kernel cannot hold them all.
enum class Replay : uint8_t {
  kDefault,      ///< kernel where the provider can, else application
  kKernel,       ///< each kernel is run again with its memory put back
  kVendor,       ///< the same by the vendor's library, one kernel at a time (Provider::own_replay)
  kApplication,  ///< the program is run once a pass
};
enum class Multiplex : uint8_t {
  kNone,
  kKernel,        ///< dispatch i of a kernel reads pass i mod n
  kLaunchParams,  ///< the same, counted for each (kernel, grid, workgroup, LDS)
};

/// What is in the caches when a measured kernel starts.
enum class Caches : uint8_t {
  kDefault,  ///< All where kernels are replayed, else None
  kAll,      ///< nothing of the kernel's own, nothing to write back
  kNone,     ///< what the program left there
};

/// One dispatch as a pass saw it.
struct Dispatch {
  uint64_t index = 0;  ///< 0-based over all dispatches of the run, filtered ones counted
  uint32_t pid = 0, tid = 0;
  int64_t queue = 0;
  int64_t gpu = 0;                                ///< GPU_ID
  std::string kernel;                             ///< demangled name
  std::array<uint64_t, 3> grid = {1, 1, 1};       ///< work-items, not groups
  std::array<uint64_t, 3> workgroup = {1, 1, 1};  ///< work-items
  uint64_t lds = 0;                               ///< bytes of a workgroup
  uint64_t scratch = 0;                           ///< bytes of a work-item
  uint32_t arch_vgpr = 0, accum_vgpr = 0, sgpr = 0;
  int64_t start = 0, end = 0;  ///< ns, CLOCK_BOOTTIME or the device's own; equal: not timed
};

/// What one pass measured: values[row * counters.size() + column] of dispatches[row]. NaN = not measured there.
struct PassResult {
  size_t pass = 0;                    ///< index into Plan::passes
  std::vector<std::string> counters;  ///< columns; with instances "L2_HIT[3]"
  std::vector<Dispatch> dispatches;   ///< in the order of index; only those that passed the filter
  std::vector<double> values;
  /// Standard deviations of the values where repeats allow them: empty, or as many as `values`.
  std::vector<double> deviations;

  double& value(size_t row, size_t column) { return values[row * counters.size() + column]; }
};

/// What happens meanwhile, for the terminal, log.txt and the progress bar. Called from the thread that called
/// collect(), except target_writes() and target_output(), which come from another one.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Execution `number` of `total` of the program begins; `passes` are indices into Plan::passes.
  virtual void run_begins(std::span<const size_t> passes, size_t number, size_t total) = 0;
  /// A line for the user and the log. Warnings are shown with --quiet too.
  virtual void note(std::string_view line) = 0;
  virtual void warn(std::string_view sentence) = 0;
  /// The target runs. Once for each execution.
  virtual void target_started() {}
  /// Bytes of the target are about to be passed on: nothing of ours may stand in the line that they go to.
  virtual void target_writes() {}
  /// Bytes that the target wrote, already passed on to tacho's own stdout (1) or stderr (2).
  virtual void target_output(int stream, std::string_view bytes) = 0;
  /// Dispatches measured so far of those expected (0 = unknown).
  virtual void progress(uint64_t done, uint64_t total) = 0;
  /// A pass is complete: written to the folder at once, so that a crash in a later one loses nothing.
  virtual Status pass_done(const PassResult& result) = 0;
};

/// The architecture that lists show where no device is: that of the device that every machine can have.
inline constexpr std::string_view kEverywhere = "virtual";

struct CollectRequest {
  std::vector<std::string> command;
  Filter filter;
  Replay replay = Replay::kDefault;
  Multiplex multiplex = Multiplex::kNone;
  Caches caches = Caches::kDefault;
  bool pc_samples =
      false;              ///< one more run, in which the program counter is sampled (Provider::can_sample_pc)
  double max_time_s = 0;  ///< longest interpretation wanted; 0 = no limit (Provider::simulates)
  std::string folder;  ///< of the workload: temporary files may lie in it under names that begin with a dot
};

/// Samples of the program counter at one instruction for one reason.
struct PcSample {
  std::string kernel;       ///< demangled
  std::string instruction;  ///< "/*0120*/ LDG.E R2, [R4.64]"
  std::string source;       ///< "gemm.cu:42", "" when not known
  std::string reason;       ///< why the warp did not issue it, "" when it did
  bool issued = false;
  uint64_t count = 0;
};

struct Outcome {
  int exit_code = 0;  ///< the target's, of the first execution that failed, else 0
  int signal = 0;     ///< that ended it
  size_t runs = 0;
  uint64_t seen = 0;              ///< dispatches of the first execution, before the filter
  uint64_t measured = 0;          ///< that passed it
  uint64_t left_out = 0;          ///< that passed it too, and have no values (multiplexing, a crash)
  bool estimated = false;         ///< values were extrapolated from some of the work-groups
  std::vector<PcSample> samples;  ///< where they were asked for
  static constexpr size_t kMostNames = 1000;
  std::vector<std::string> seen_kernels;  ///< distinct names before the filter, at most kMostNames
};

class Provider {
 public:
  virtual ~Provider() = default;
  /// "virtual", "cpu", "cuda".
  virtual std::string_view name() const = 0;
  /// Of the catalog and of Device::vendor: "nvidia", "amd", "virtual", "cpu".
  virtual std::string_view vendor() const = 0;
  /// What header lines call the tool behind it: "Oclgrind", "perf_event", "CUPTI".
  virtual std::string_view tool() const = 0;
  /// Devices present. Empty with a sentence in `why` when there are none ("no NVIDIA driver").
  virtual std::vector<Device> devices(std::string& why) const = 0;
  /// The device of an architecture that need not be present, for lists and plans (--arch).
  virtual std::optional<Device> device_for(const metric::Architecture& architecture) const = 0;
  /// All counters of the device, sorted by name.
  virtual std::vector<CounterInfo> counters(const Device& device) const = 0;
  /// Fewest passes for these counters. Errors: a counter that no device of this kind has, one that fits in no pass.
  virtual Result<Plan> plan(const Device& device, std::span<const std::string> counters) const = 0;
  /// Each kernel can be run again with its memory put back.
  virtual bool can_replay_kernels() const { return false; }
  /// What --replay calls replay by the vendor's own library, and what a device is that has it: {"cupti", "NVIDIA GPU", ...}.
  struct OwnReplay {
    std::string_view name, device, text;
  };
  virtual std::optional<OwnReplay> own_replay() const { return std::nullopt; }
  /// CollectRequest::pc_samples is possible.
  virtual bool can_sample_pc() const { return false; }
  /// Caches::kAll is possible.
  virtual bool can_empty_caches() const { return false; }
  /// Kernels are interpreted: counts are exact, part of the work-groups may stand for all, and there is no hardware.
  virtual bool simulates() const { return false; }
  /// Used when the user names no device.
  virtual bool by_default() const { return true; }
  /// An error where collect() would fail on this machine whatever the program: a permission or a file of ours is missing.
  virtual Status ready() const { return {}; }
  /// Runs the program as often as needed and hands every finished pass to the observer; to be asked after ready(). An error
  /// is one before the first start (exit codes 125, 126, 127); what goes wrong later is told through the observer and the Outcome.
  virtual tl::expected<Outcome, launch::LaunchError> collect(const Device& device, const Plan& plan,
                                                             const CollectRequest& request,
                                                             Observer& observer) const = 0;
};

/// All providers of this build (providers.def), in the order in which a default device is looked for: GPUs, then others.
std::span<const std::unique_ptr<Provider>> providers();

/// The provider of a catalog's vendor, nullptr when there is none.
const Provider* provider_of(std::string_view vendor);

/// "0", "1", "virtual", "cpu", "" (the first GPU, else virtual). The error lists what there is and why not more.
struct Chosen {
  const Provider* provider = nullptr;
  Device device;
};
Result<Chosen> choose_device(std::string_view wanted);

/// "NVIDIA H200" -> "H200": the vendor left out, characters other than [A-Za-z0-9_-] as "_".
std::string folder_model(std::string_view marketing_name);

}  // namespace tacho::counter

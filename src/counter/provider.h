// The interface of a source of hardware counters. A provider lists its devices and their counters, plans passes, and
// runs a program so that every dispatch of it and of its descendants gets its values. Each provider has a folder in
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
#include "launch/run/device_samples.h"
#include "metric/catalog/architecture.h"

namespace tacho::counter {

struct Device {
  std::string id;              ///< for --device: "0", "1" for GPUs of the machine, "virtual", "cpu"
  std::string vendor;          ///< the catalog's name: "nvidia", "amd", "virtual", "cpu"
  std::string architecture;    ///< the catalog's name: "sm_90", "gfx942", "virtual", "cpu"
  metric::Architecture facts;  ///< the catalog's entry
  std::string model;           ///< marketing name without the vendor, [A-Za-z0-9_-] only: "H200"; names the folder
  std::string name;            ///< for people: "NVIDIA H200"
  /// Columns of sysinfo.csv that describe the device (wave_size, lds_banks_per_cu, max_sclk in MHz, ...), in order.
  std::vector<std::pair<std::string, std::string>> sysinfo;
};

/// One counter of a device, named as the formulas of its catalog name it.
struct CounterInfo {
  std::string name;
  std::string description;  ///< one sentence
};

/// Counters whose values go into one file.
struct PlannedPass {
  std::string name;                   ///< of its files: "pmc_perf_0"; "SQ_LEVEL_WAVES" for a level pass
  std::vector<std::string> counters;  ///< sorted; the column names of <name>.csv
  std::string definitions;            ///< text of perfmon/<name>.yaml, "" = none
  size_t executions = 1;              ///< of each kernel, to read all these counters
};

struct PassPlan {
  std::vector<PlannedPass> passes;  ///< deterministic: the same counters give the same plan
  /// Requested counters that the device does not have. The user gets a warning, not an error.
  std::vector<std::string> unavailable;

  /// How often each kernel runs to read everything.
  size_t executions() const {
    size_t sum = 0;
    for (const PlannedPass& pass : passes) sum += pass.executions;
    return sum;
  }
};

/// What runs while the program lets recording be on. It is off when the program starts.
struct Regions {
  std::string option;        ///< by which the user asked for them, for messages
  std::string resume_calls;  ///< "no vendorResume()": what a program that never let it be on did not call
};

/// Selects dispatches (-k, -d). A kernel passes when its name contains one of `kernels`; a dispatch passes when one of
/// `dispatches` contains its 0-based index over all dispatches of the run. Empty lists let everything pass. Who decides
/// is spool::LaunchFilter.
struct Filter {
  struct Range {
    uint64_t first = 0, last = 0;  ///< inclusive
  };
  std::vector<std::string> kernels;
  std::vector<Range> dispatches;
  std::optional<Regions> regions;  ///< only within these (Provider::obeys_regions)

  /// What a spool::LaunchFilter reads, at the beginning of a spool's config.
  std::string lines() const;
};

/// How to collect passes when one execution of a kernel cannot hold them all.
enum class Replay : uint8_t {
  kDefault,      ///< kKernel if the provider prefers it (replays_by_default), else kApplication
  kKernel,       ///< restore memory and run each kernel again
  kVendor,       ///< the same by the vendor's library, one kernel at a time (Provider::own_replay)
  kApplication,  ///< run the program once for each pass
};
enum class Multiplex : uint8_t {
  kNone,
  kKernel,        ///< dispatch i of a kernel reads pass i mod n
  kLaunchParams,  ///< the same, counting i for each (kernel, grid, workgroup, LDS)
};

/// Which caches to empty before a measured kernel starts.
enum class Caches : uint8_t {
  kDefault,  ///< kAll where kernels are replayed, else kNone
  kAll,      ///< all: they hold no data of the kernel and no dirty lines
  kNone,     ///< none: they hold the data that the program left there
};

/// One dispatch as a pass saw it.
struct ObservedDispatch {
  uint64_t index = 0;  ///< 0-based over all dispatches of the run, including those filtered out
  uint32_t pid = 0, tid = 0;
  int64_t queue = 0;
  int64_t gpu = 0;                                ///< GPU_ID
  std::string kernel;                             ///< demangled name
  std::array<uint64_t, 3> grid = {1, 1, 1};       ///< work-items, not groups
  std::array<uint64_t, 3> workgroup = {1, 1, 1};  ///< work-items
  uint64_t lds = 0;                               ///< bytes for each workgroup
  uint64_t scratch = 0;                           ///< bytes for each work-item
  uint32_t arch_vgpr = 0, accum_vgpr = 0, sgpr = 0;
  int64_t start = 0, end = 0;  ///< ns, CLOCK_BOOTTIME or the device's clock; equal = not timed
};

/// The measurements of one pass: values[row * counters.size() + column] belongs to dispatches[row]. NaN = not measured.
struct PassResult {
  size_t pass = 0;                           ///< index into PassPlan::passes
  std::vector<std::string> counters;         ///< columns; with instances "L2_HIT[3]"
  std::vector<ObservedDispatch> dispatches;  ///< ordered by index; only those that passed the filter
  std::vector<double> values;
  /// Counts that were taken on a part of the GPU's units and extrapolated, as far as the values show it.
  std::vector<std::string> extrapolated;
  /// Values as the hardware's units counted them, where CollectRequest::instances asks for them.
  struct InstanceOfCounter {
    uint64_t index = 0;  ///< of the dispatch
    std::string counter;
    std::array<int16_t, 6>
        position{};  ///< die (XCC), AID, shader engine, shader array, WGP, instance; -1 = it has none
    double value = 0;
  };
  std::vector<InstanceOfCounter> instances;
  /// Standard deviations of the values: as many as `values`, or empty if there were no repeats.
  std::vector<double> deviations;

  double& value(size_t row, size_t column) { return values[row * counters.size() + column]; }
};

/// Receives progress for the terminal, log.txt and the progress bar. All calls come from the thread that called
/// collect(), except target_writes() and target_output(), which come from another one.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Execution `number` of `total` of the program begins; `passes` are indices into Plan::passes.
  virtual void run_begins(std::span<const size_t> passes, size_t number, size_t total) = 0;
  /// A line for the user and the log. Warnings are shown with --quiet too.
  virtual void note(std::string_view line) = 0;
  virtual void warn(std::string_view sentence) = 0;
  /// The target has started. Called once for each execution.
  virtual void target_started() {}
  /// The target's output is about to be passed on: clear tacho's own text, such as a progress bar, from the line.
  virtual void target_writes() {}
  /// The target wrote `bytes`, which have already gone to tacho's stdout (1) or stderr (2).
  virtual void target_output(int stream, std::string_view bytes) = 0;
  /// Dispatches measured so far of those expected (0 = unknown).
  virtual void progress(uint64_t done, uint64_t total) = 0;
  /// A pass is complete. Write it to the folder at once, so that a crash in a later pass loses nothing.
  virtual Status pass_done(const PassResult& result) = 0;
};

/// The architecture that lists show on a machine without a device. Every machine can have the virtual GPU.
inline constexpr std::string_view kEverywhere = "virtual";

/// How to sample the program counter, if the provider leaves a choice (Provider::chooses_pc_sampling).
struct PcSampling {
  std::string method;     ///< "stochastic" or "host_trap"; "" = the device's better one
  std::string unit;       ///< "instructions", "cycles" or "time" (us); "" = the method's
  uint64_t interval = 0;  ///< between two samples, in that unit; 0 = a default
};

struct SampledRun;     // sampled_run.h
struct SampleRequest;  // device_samples.h

struct CollectRequest {
  std::vector<std::string> command;
  Filter filter;
  Replay replay = Replay::kDefault;
  Multiplex multiplex = Multiplex::kNone;
  Caches caches = Caches::kDefault;
  bool operators = false;     ///< records PyTorch's operators, in a run of their own where needed (Outcome::operators)
  bool pc_samples = false;    ///< adds a run that samples the program counter (Provider::can_sample_pc)
  bool only_samples = false;  ///< with pc_samples: only these were requested
  PcSampling pc_sampling;
  bool instances = false;  ///< keep the value of every unit (Provider::counts_instances)
  double max_time_s = 0;   ///< upper limit of the time for interpretation; 0 = no limit (Provider::simulates)
  std::string folder;      ///< the workload's; temporary files go here under names that begin with a dot
};

/// PC samples of one instruction with one stall reason.
struct PcSample {
  std::string kernel;       ///< demangled
  std::string instruction;  ///< "/*0120*/ LDG.E R2, [R4.64]"
  std::string source;       ///< "gemm.cu:42", "" when unknown
  std::string path;         ///< of that file, as the compiler noted it; "" when unknown
  std::string reason;       ///< why the warp did not issue the instruction, "" when it did
  bool issued = false;
  uint64_t count = 0;
};

struct Outcome {
  int exit_code = 0;  ///< the target's, from the first execution that failed; 0 when none did
  int signal = 0;     ///< that ended the target
  size_t runs = 0;
  uint64_t seen = 0;        ///< dispatches of the first execution, before the filter
  uint64_t measured = 0;    ///< dispatches that passed the filter and have values
  uint64_t left_out = 0;    ///< dispatches that passed it but have no values (multiplexing, a crash)
  bool estimated = false;   ///< values were extrapolated from some of the work-groups
  bool called_mpi = false;  ///< an execution called MPI_Init
  bool explained = false;   ///< the observer has heard why nothing was measured
  std::string operators;    ///< trace with PyTorch's operators and all kernels, in the workload's folder; "" = none
  std::vector<PcSample> samples;              ///< empty unless CollectRequest::pc_samples
  std::shared_ptr<const SampledRun> sampled;  ///< of a provider with single samples, in place of `samples`
  static constexpr size_t kMostNames = 1000;
  std::vector<std::string> seen_kernels;  ///< distinct names before the filter, at most kMostNames
};

/// The first eight kernels that the program launched, for a sentence; long names are cut: "vecCopy, reduce, ...".
std::string launched_kernels(const Outcome& outcome);

class Provider {
 public:
  virtual ~Provider() = default;
  /// "virtual", "cpu", "cuda".
  virtual std::string_view name() const = 0;
  /// As in the catalog and in Device::vendor: "nvidia", "amd", "virtual", "cpu".
  virtual std::string_view vendor() const = 0;
  /// The tool that counts, for header lines: "Oclgrind", "perf_event", "CUPTI".
  virtual std::string_view tool() const = 0;
  /// Devices present. When there are none, `why` gets the reason ("no NVIDIA driver").
  virtual std::vector<Device> devices(std::string& why) const = 0;
  /// A device of the architecture, which need not be present, for lists and plans (--arch).
  virtual std::optional<Device> device_for(const metric::Architecture& architecture) const = 0;
  /// All counters of the device, sorted by name.
  virtual std::vector<CounterInfo> counters(const Device& device) const = 0;
  /// The fewest passes that read these counters. Errors: no device of this kind has a counter, or it fits in no pass.
  virtual Result<PassPlan> plan(const Device& device, std::span<const std::string> counters) const = 0;
  /// True if the provider may extrapolate counts from a part of the units, and exact_plan() avoids that.
  virtual bool can_count_exactly() const { return false; }
  /// plan() with counts that depend on neither time nor caches placed so that they are counted whole, in further
  /// passes.
  virtual Result<PassPlan> exact_plan(const Device& device, std::span<const std::string> counters) const {
    return plan(device, counters);
  }
  /// True if the provider supports Replay::kKernel: it restores memory and runs each kernel again.
  virtual bool can_replay_kernels() const { return false; }
  /// True if that is what Replay::kDefault means.
  virtual bool replays_by_default() const { return can_replay_kernels(); }
  /// Replay::kVendor for --replay: its name, the kind of device that has it, and its help: {"cupti", "NVIDIA GPU",
  /// ...}.
  struct OwnReplay {
    std::string_view name, device, text;
  };
  virtual std::optional<OwnReplay> own_replay() const { return std::nullopt; }
  /// True if the provider supports CollectRequest::pc_samples.
  virtual bool can_sample_pc() const { return false; }
  /// True if it heeds CollectRequest::pc_sampling.
  virtual bool chooses_pc_sampling() const { return false; }
  /// True if the provider supports CollectRequest::instances.
  virtual bool counts_instances() const { return false; }
  /// True if the provider supports Filter::regions.
  virtual bool obeys_regions() const { return false; }
  /// True if the provider supports Caches::kAll.
  virtual bool can_empty_caches() const { return false; }
  /// True if kernels are interpreted, without hardware: counts are exact, or extrapolated from some of the work-groups.
  virtual bool simulates() const { return false; }
  /// True if choose_device() may pick this provider when the user names no device.
  virtual bool by_default() const { return true; }
  /// An error where collect() would fail whatever the program: a permission or one of tacho's own files is missing.
  virtual Status ready() const { return {}; }
  /// Runs the program as often as needed and hands every finished pass to the observer. Call ready() first. Returns an
  /// error only when the first start fails (exit codes 125, 126, 127); later problems go to the observer and the
  /// Outcome.
  virtual tl::expected<Outcome, launch::LaunchError> collect(const Device& device, const PassPlan& plan,
                                                             const CollectRequest& request,
                                                             Observer& observer) const = 0;
  /// Whether `counter` is written as the counters that sample() reads, by its form alone.
  virtual bool samples(std::string_view counter) const {
    static_cast<void>(counter);
    return false;
  }
  /// Sets up sampling of whole devices beside programs (device_samples.h). nullptr where the provider cannot, or has no
  /// device here: `none` then gets the reason, if there is one that people should know.
  virtual Result<std::unique_ptr<launch::DeviceSamples>> sample(const SampleRequest& request, std::string& none) const {
    static_cast<void>(request);
    static_cast<void>(none);
    return nullptr;
  }
};

/// All providers of this build (providers.def), in the order in which choose_device() tries them: GPUs first.
std::span<const std::unique_ptr<Provider>> providers();

/// The provider of a catalog's vendor, nullptr when there is none.
const Provider* provider_of(std::string_view vendor);

struct Chosen {
  const Provider* provider = nullptr;
  Device device;
};
/// `wanted` is "0", "1", "virtual", "cpu" or "" (the first GPU, else virtual). The error lists the devices that exist
/// and why others are missing.
Result<Chosen> choose_device(std::string_view wanted);

/// "NVIDIA H200" -> "H200": drops the vendor, replaces characters other than [A-Za-z0-9_-] by "_".
std::string folder_model(std::string_view marketing_name);

}  // namespace tacho::counter

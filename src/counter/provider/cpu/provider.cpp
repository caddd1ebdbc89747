// The CPU as an OpenCL device. A layer in the target (capture/plugin/perf) reads perf_event counters around each kernel
// that PoCL runs: hardware events if the machine has them, software events everywhere.
#include "counter/provider.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <set>

#include "base/format.h"
#include "counter/opencl_icd.h"
#include "counter/spool.h"
#include "counter/target_run.h"
#include "metric/catalog/builtin/builtin.h"
#include "tape/layout.h"
#include "vendor/cpu/perf_events.h"

namespace tacho::counter {

namespace {

using vendor::kPerfEventCount;
using vendor::kPerfEvents;

// Every CPU has at least this many hardware counters; more events than that take several passes.
constexpr size_t kHardwareCounters = 4;

std::string_view name_of(unsigned event) {
  return event == vendor::kPerfWallIndex      ? std::string_view(vendor::kPerfWall)
         : event == vendor::kPerfThreadsIndex ? std::string_view(vendor::kPerfThreads)
                                              : std::string_view(kPerfEvents[event].name);
}

std::optional<unsigned> event_named(std::string_view name) {
  for (unsigned event = 0; event <= vendor::kPerfThreadsIndex; ++event)
    if (name_of(event) == name) return event;
  return std::nullopt;
}

// Opens the event as a test; 0 or the errno.
int probe(unsigned event) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = kPerfEvents[event].type;
  attributes.config = kPerfEvents[event].config;
  attributes.disabled = 1;
  attributes.exclude_hv = 1;
  attributes.exclude_kernel = 1;
  const long file = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (file < 0) return errno;
  close(static_cast<int>(file));
  return 0;
}

Result<std::string> find_layer() {
  TACHO_ASSIGN(std::string library, launch::find_library());
  library = library.substr(0, library.rfind('/')) + "/libtacho-perf.so";
  if (access(library.c_str(), R_OK) != 0) return fail("{} is missing: reinstall tacho", library);
  return library;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const size_t colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "CPU";
}

Device cpu_device() {
  Device device;
  device.id = device.vendor = device.architecture = device.model = "cpu";
  device.name = fmt::format("{} as an OpenCL device (PoCL)", cpu_model());
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  device.facts = metric::built_in_architecture("cpu").value();
  device.sysinfo = {{"gpu_series", "cpu"},
                    {"gpu_model", "cpu"},
                    {"gpu_arch", "cpu"},
                    {"cu_per_gpu", fmt::format("{}", cores)},
                    {"num_xcd", "1"}};
  return device;
}

class CpuProvider : public Provider {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string_view vendor() const override { return "cpu"; }
  bool by_default() const override { return false; }
  std::string_view tool() const override { return "perf_event"; }

  std::vector<Device> devices(std::string& why) const override {
    if (find_pocl().empty()) {
      why = "the cpu device needs PoCL, which is not installed (Debian: pocl-opencl-icd)";
      return {};
    }
    if (const int error = probe(0); error != 0) {
      why = fmt::format("perf_event is not permitted ({}): sysctl kernel.perf_event_paranoid=2, or run as root",
                        strerror(error));
      return {};
    }
    return {cpu_device()};
  }
  std::optional<Device> device_for(const metric::Architecture& architecture) const override {
    if (architecture.vendor == "cpu") return cpu_device();
    return std::nullopt;
  }

  std::vector<CounterInfo> counters(const Device&) const override {
    std::vector<CounterInfo> list;
    for (const vendor::PerfEvent& event : kPerfEvents) list.push_back({event.name, event.text});
    list.push_back({vendor::kPerfWall, "Wall time of the kernel with its launch, ns."});
    list.push_back({vendor::kPerfThreads, "Threads of the process."});
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return list;
  }

  Result<PassPlan> plan(const Device&, std::span<const std::string> counters) const override {
    const std::set<std::string> wanted(counters.begin(), counters.end());
    PassPlan plan;
    PlannedPass software{"", {}, ""};
    std::vector<std::string> hardware;
    for (const std::string& counter : wanted) {
      const auto event = event_named(counter);
      if (!event) return fail("the cpu device has no counter '{}'", counter);
      if (*event >= kPerfEventCount) {
        software.counters.push_back(counter);
      } else if (probe(*event) != 0) {
        plan.unavailable.push_back(counter);
      } else {
        (kPerfEvents[*event].type == PERF_TYPE_HARDWARE ? hardware : software.counters).push_back(counter);
      }
    }
    const size_t passes = std::max<size_t>(1, (hardware.size() + kHardwareCounters - 1) / kHardwareCounters);
    for (size_t i = 0; i < passes; ++i) {
      PlannedPass pass{fmt::format("pmc_perf_{}", i), {}, ""};
      if (i == 0) pass.counters = software.counters;
      for (size_t k = i * kHardwareCounters; k < std::min(hardware.size(), (i + 1) * kHardwareCounters); ++k)
        pass.counters.push_back(hardware[k]);
      std::sort(pass.counters.begin(), pass.counters.end());
      plan.passes.push_back(std::move(pass));
    }
    return plan;
  }

  Status ready() const override {
    TACHO_TRY(find_layer());
    return {};
  }

  tl::expected<Outcome, launch::LaunchError> collect(const Device&, const PassPlan& plan, const CollectRequest& request,
                                                     Observer& observer) const override {
    Outcome outcome;
    const bool multiplexed = request.multiplex != Multiplex::kNone && plan.passes.size() > 1;
    const size_t runs = multiplexed ? 1 : plan.passes.size();
    std::vector<std::string> kernels_before;
    if (request.operators) {
      TACHO_ASSIGN(const SpoolFolder spool, SpoolFolder::create(request.folder, {}, {}));
      TACHO_ASSIGN(const std::string vendors, vendor_folder(spool.folder(), "pocl", find_pocl()));
      if (const auto status =
              record_operators(request, {{"OCL_ICD_VENDORS", vendors}, {"OCL_ICD_FILENAMES", ""}}, observer, outcome);
          !status)
        return launch::fail_with(status);
    }
    for (size_t run = 0; run < runs; ++run) {
      std::vector<size_t> passes;
      if (multiplexed)
        for (size_t i = 0; i < plan.passes.size(); ++i) passes.push_back(i);
      else
        passes = {run};
      observer.run_begins(passes, run + 1, runs);
      auto done = one_run(plan, request, multiplexed, run, observer, outcome, kernels_before);
      if (!done) return launch::fail_with(done);
      if (outcome.exit_code != 0) {
        observer.warn(run + 1 < runs ? fmt::format("the program ended with code {} in run {} of {}: what it had "
                                                   "finished is kept, the rest is not made",
                                                   outcome.exit_code, run + 1, runs)
                                     : fmt::format("the program ended with code {}; what it had finished is kept",
                                                   outcome.exit_code));
        break;
      }
      if (mpi_ends_replay(outcome, run, runs, observer)) break;
    }
    return outcome;
  }

 private:
  tl::expected<void, launch::LaunchError> one_run(const PassPlan& plan, const CollectRequest& request, bool multiplexed,
                                                  size_t number, Observer& observer, Outcome& outcome,
                                                  std::vector<std::string>& kernels_before) const {
    auto layer = find_layer();
    if (!layer) return fail_with(std::move(layer));
    std::vector<std::pair<std::string, std::string>> settings;
    for (const PlannedPass& pass : plan.passes) {
      std::string events;
      for (const std::string& counter : pass.counters)
        events += fmt::format("{}{}", events.empty() ? "" : ",", *event_named(counter));
      settings.emplace_back("pass", events);
    }
    settings.emplace_back("policy", !multiplexed                              ? fmt::format("{}", number)
                                    : request.multiplex == Multiplex::kKernel ? "kernel"
                                                                              : "launch");
    auto spool = SpoolFolder::create(request.folder, request.filter, settings);
    if (!spool) return fail_with(std::move(spool));
    auto vendors = vendor_folder(spool->folder(), "pocl", find_pocl());
    if (!vendors) return fail_with(std::move(vendors));
    TargetRunOptions options;
    options.command = request.command;
    std::string layers = *layer;
    // libtacho.so, which times the dispatches, goes in front of these.
    if (const char* others = std::getenv("OPENCL_LAYERS"); others != nullptr && *others != '\0')
      layers += std::string(":") + others;
    auto library = launch::find_library();
    if (!library) return fail_with(std::move(library));
    options.environment = {{"OCL_ICD_VENDORS", *vendors},
                           {"OCL_ICD_FILENAMES", ""},
                           {"OPENCL_LAYERS", *library + ":" + layers},
                           {spool::kSpoolVariable, spool->folder()}};
    options.sources = tape::source_bit::kDispatch;
    options.folder = request.folder;
    options.tick = [&] { observer.progress(spool->state().dispatches_done.load(), outcome.seen); };
    auto run = run_target(options, observer);
    if (!run) return launch::fail_with(run);
    ++outcome.runs;
    outcome.called_mpi = run->called_mpi;
    outcome.exit_code = run->result.exit_code;
    outcome.signal = run->result.signal;
    size_t cut = 0;
    auto records = spool->read(cut);
    if (!records) return fail_with(std::move(records));
    if (cut > 0) observer.warn("a record was cut off where the program was killed; it is left out");
    const uint64_t lost = spool->state().failures.load();
    if (lost > 0)
      observer.warn(fmt::format("{} dispatch{} could not be recorded (disk full?)", lost, lost == 1 ? "" : "es"));
    if (spool->state().attached.load() == 0 && run->result.exit_code == 0)
      observer.warn("the program opened no OpenCL device: nothing was counted (the cpu device counts OpenCL kernels)");
    if (outcome.runs == 1) outcome.seen = records->size() + lost;

    std::vector<std::string> kernels;
    std::vector<ObservedDispatch> dispatches;
    std::set<std::string> names;
    for (const SpooledDispatch& record : *records) {
      kernels.push_back(record.dispatch.kernel);
      if (names.size() < Outcome::kMostNames) names.insert(record.dispatch.kernel);
      dispatches.push_back(record.dispatch);
    }
    if (outcome.seen_kernels.empty()) outcome.seen_kernels.assign(names.begin(), names.end());
    if (number > 0 && kernels != kernels_before && run->result.exit_code == 0 && lost == 0) {
      const auto [now, before] =
          std::mismatch(kernels.begin(), kernels.end(), kernels_before.begin(), kernels_before.end());
      observer.warn(fmt::format("run {} launched other kernels than the one before: dispatch {} was {}, now {}",
                                number + 1, now - kernels.begin(),
                                before != kernels_before.end() ? *before : "not there",
                                now != kernels.end() ? *now : "not there"));
    }
    kernels_before = std::move(kernels);
    join_times(dispatches, run->dispatches);
    if (multiplexed) warn_of_missing(*records, plan, request.multiplex, observer);

    uint64_t measured = 0;
    for (size_t i = 0; i < plan.passes.size(); ++i) {
      if (!multiplexed && i != number) continue;
      PassResult result;
      result.pass = i;
      result.counters = plan.passes[i].counters;
      for (size_t row = 0; row < records->size(); ++row) {
        const SpooledDispatch& record = (*records)[row];
        if (!record.selected) continue;
        ++measured;
        result.dispatches.push_back(dispatches[row]);
        // Keep dispatches that read another pass, without values, so that all passes have the same rows.
        const bool here = record.pass == i && record.values.size() == result.counters.size();
        for (size_t c = 0; c < result.counters.size(); ++c)
          result.values.push_back(here ? record.values[c] : std::numeric_limits<double>::quiet_NaN());
      }
      if (!result.dispatches.empty())
        if (const Status done = observer.pass_done(result); !done) observer.warn(done.error().message);
    }
    outcome.measured = std::max(outcome.measured, multiplexed ? measured / plan.passes.size() : measured);
    return {};
  }

  static void warn_of_missing(const std::vector<SpooledDispatch>& records, const PassPlan& plan, Multiplex policy,
                              Observer& observer) {
    const size_t passes = plan.passes.size();
    std::map<std::string, size_t> seen;
    for (const SpooledDispatch& record : records) {
      if (!record.selected) continue;
      std::string key = record.dispatch.kernel;
      if (policy == Multiplex::kLaunchParams)
        key += fmt::format(" (grid {}, workgroup {}, local memory {})", fmt::join(record.dispatch.grid, "x"),
                           fmt::join(record.dispatch.workgroup, "x"), record.dispatch.lds);
      ++seen[key];
    }
    for (const auto& [key, count] : seen) {
      if (count >= passes) continue;
      std::string lost;
      for (size_t i = count; i < passes; ++i)
        for (const std::string& counter : plan.passes[i].counters) lost += (lost.empty() ? "" : ", ") + counter;
      observer.warn(fmt::format("{}: {} dispatches of the {} that all counters need; metrics are lost that need {}",
                                key, count, passes, lost));
    }
  }
};

}  // namespace

std::unique_ptr<Provider> make_cpu_provider() {
  return std::make_unique<CpuProvider>();
}

}  // namespace tacho::counter

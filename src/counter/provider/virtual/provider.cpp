// The virtual GPU: Oclgrind interprets the kernels, and our plugin counts exactly. Their times come from a run on PoCL.
// The two runs are joined by kernel, launch shape and running number.
#include "counter/provider.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "base/format.h"
#include "base/job_rank.h"
#include "counter/opencl_icd.h"
#include "counter/spool.h"
#include "counter/target_run.h"
#include "event/spool/spool.h"
#include "metric/catalog/builtin/builtin.h"
#include "tape/layout.h"

namespace tacho::counter {

namespace {

constexpr std::string_view kName = "virtual";

struct Named {
  std::string_view name, text;
};
constexpr std::array kCounters = {
#define TACHO_VIRTUAL_COUNTER(name, text) Named{#name, text},
#include "vendor/virtual/counters.def"
#undef TACHO_VIRTUAL_COUNTER
};

size_t index_of(std::string_view counter) {
  for (size_t i = 0; i < kCounters.size(); ++i)
    if (kCounters[i].name == counter) return i;
  return kCounters.size();
}

Result<std::string> find_plugin() {
  TACHO_ASSIGN(std::string library, launch::find_library());
  library = library.substr(0, library.rfind('/')) + "/libtacho-oclgrind.so";
  if (access(library.c_str(), R_OK) != 0)
    return fail(
        "the virtual GPU is not part of this build: {} is missing (building it needs liboclgrind-dev and llvm-14-dev)",
        library);
  return library;
}

Device virtual_device() {
  Device device;
  device.id = device.vendor = device.architecture = device.model = kName;
  device.name = "virtual GPU (Oclgrind)";
  device.facts = metric::built_in_architecture(kName).value();
  device.sysinfo = {{"gpu_series", "virtual"}, {"gpu_model", "virtual"},       {"gpu_arch", "virtual"},
                    {"wave_size", "32"},       {"lds_banks_per_cu", "32"},     {"lds_bank_bytes", "4"},
                    {"sector_bytes", "32"},    {"line_bytes", "128"},          {"cu_per_gpu", "1"},
                    {"simd_per_cu", "1"},      {"workgroup_max_size", "1024"}, {"num_xcd", "1"}};
  return device;
}

// Estimates the seconds that interpretation takes. Oclgrind works one element after the other on one core, so both the
// time that PoCL needed on all cores and the number of work-items are lower bounds. Factors measured on vcopy. Oclgrind
// also interprets the kernels that a filter excludes; it only does not count them.
double estimate_seconds(const std::vector<ObservedDispatch>& dispatches) {
  constexpr double kPerWorkItem = 1.5e-6, kAgainstOneCore = 1700;
  const double cores = static_cast<double>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  double seconds = 0;
  for (const ObservedDispatch& each : dispatches) {
    double items = 1;
    for (const uint64_t size : each.grid) items *= static_cast<double>(std::max<uint64_t>(1, size));
    const double native = static_cast<double>(each.end - each.start) * 1e-9;
    seconds += std::max(items * kPerWorkItem, std::min(native * cores * kAgainstOneCore, items * kPerWorkItem * 200));
  }
  return seconds;
}

std::string duration_text(double seconds) {
  if (seconds < 1) return "less than a second";
  if (seconds < 90) return fmt::format("about {:.0f} s", seconds);
  if (seconds < 5400) return fmt::format("about {:.0f} min", seconds / 60);
  return fmt::format("about {:.1f} h", seconds / 3600);
}

// One collection: the program runs on PoCL, which times its kernels, and on Oclgrind, which counts.
class Collection {
 public:
  Collection(const PassPlan& plan, const CollectRequest& request, Observer& observer)
      : plan_(plan), request_(request), observer_(observer) {}

  tl::expected<Outcome, launch::LaunchError> run() {
    auto plugin = find_plugin();
    if (!plugin) return fail_with(std::move(plugin));
    if (!counts_first_) {
      const auto goes_on = time_kernels();
      if (!goes_on) return launch::fail_with(goes_on);
      if (!*goes_on) return outcome_;
    }
    auto spool = SpoolFolder::create(request_.folder, request_.filter, {{"fraction", fmt::format("{}", fraction_)}});
    if (!spool) return fail_with(std::move(spool));
    auto vendors = vendor_folder(spool->folder(), "oclgrind", find_oclgrind());
    if (!vendors) return fail_with(std::move(vendors));
    TargetRunOptions options;
    options.command = request_.command;
    std::string plugins = *plugin;
    if (const char* others = std::getenv("OCLGRIND_PLUGINS"); others != nullptr && *others != '\0')
      plugins += std::string(":") + others;
    options.environment = {{"OCL_ICD_VENDORS", *vendors},
                           {"OCL_ICD_FILENAMES", ""},
                           {"OCLGRIND_PLUGINS", plugins},
                           {spool::kSpoolVariable, spool->folder()}};
    options.inject = false;
    if (request_.filter.regions) obey_regions(options);
    options.folder = request_.folder;
    options.tick = [&] {
      const spool::SpoolState& state = spool->state();
      const uint64_t done = state.dispatches_done.load(), total = state.groups_total.load();
      // Count steps within a dispatch, so that one long kernel shows progress too.
      const uint64_t within = total > 0 ? 1000 * std::min(state.groups_done.load(), total) / total : 0;
      const bool running = state.dispatches.load() > done;
      observer_.progress(done * 1000 + (running ? within : 0), std::max<uint64_t>(timed_.size(), done) * 1000);
    };
    const size_t number = timed_.empty() && outcome_.runs == 0 ? 1 : 2;
    const size_t all[] = {0};
    observer_.run_begins(all, number, counts_first_ ? 2 : number);
    auto run = run_target(options, observer_);
    if (!run) return launch::fail_with(run);
    ++outcome_.runs;
    const bool ended_well = outcome_.exit_code == 0;
    if (outcome_.exit_code == 0) outcome_.exit_code = run->result.exit_code;
    if (outcome_.signal == 0) outcome_.signal = run->result.signal;

    size_t cut = 0;
    auto records = spool->read(cut);
    if (!records) {
      observer_.warn(records.error().message);
      return outcome_;
    }
    if (run->result.exit_code != 0 && ended_well) tell_end(run->result, records->size());
    tell_never_began(*run, outcome_, observer_);
    if (cut > 0) observer_.warn("a record was cut off where the program was killed; it is left out");
    const uint64_t lost = spool->state().failures.load();
    if (lost > 0)
      observer_.warn(fmt::format("{} dispatch{} could not be recorded (disk full?)", lost, lost == 1 ? "" : "es"));
    if (spool->state().attached.load() == 0) {
      if (run->result.exit_code == 0)
        observer_.warn("the program opened no OpenCL device: nothing was counted (the virtual GPU runs OpenCL only)");
      return outcome_;
    }
    outcome_.seen = records->size() + lost;
    if (counts_first_ && run->result.exit_code == 0) {
      if (access((spool->folder() + "/" + spool::kMpiFile).c_str(), F_OK) == 0) {
        outcome_.called_mpi = true;
        observer_.warn(
            "the program called MPI_Init, which a rank can do once in its job: the run that times its kernels is not "
            "made, so they have counts and no times");
      } else if (const auto done = time_kernels(); !done) {
        return launch::fail_with(done);
      }
      outcome_.seen = records->size() + lost;
    }
    if (run->result.exit_code == timed_code_ && lost == 0) check_against(*records);

    pass_on(*records);
    return outcome_;
  }

 private:
  // The program's calls that pause and resume recording reach libtacho.so, which the plugin asks.
  void obey_regions(TargetRunOptions& options) const {
    options.inject = true;
    options.sources = tape::source_bit::kMarker;
    options.regions = request_.filter.regions;
    // The kernels are not traced in this run.
    const char* const others = std::getenv("OPENCL_LAYERS");
    options.environment.emplace_back("OPENCL_LAYERS", others != nullptr ? others : "");
  }

  // The counted run ended with an error and `launched` kernels. If the one before it went well, it is no fault of the
  // program's alone.
  void tell_end(const launch::RunResult& result, size_t launched) {
    const std::string end = fmt::format("code {}{}", result.exit_code,
                                        result.signal != 0 ? fmt::format(" ({})", strsignal(result.signal)) : "");
    if (timed_.empty() || launched > 0 || counts_first_) {
      observer_.warn(fmt::format("the program ended with {} on the virtual GPU; what it had finished is kept", end));
      return;
    }
    observer_.warn(fmt::format(
        "the first run of the program, which times its kernels, launched {} and ended with code 0; the second run, which "
        "counts, ended with {} before it had finished one, so nothing was counted: it may not run on the virtual GPU, or "
        "not twice in one place (a lock, a port, files of the first run)",
        timed_.size() == 1 ? "1 kernel" : fmt::format("{} kernels", timed_.size()), end));
    outcome_.explained = true;
  }

  // PoCL times the kernels. False: the program was interrupted, or cannot run once more.
  tl::expected<bool, launch::LaunchError> time_kernels() {
    auto spool = SpoolFolder::create(request_.folder, {}, {});
    if (!spool) return fail_with(std::move(spool));
    const std::string pocl = find_pocl();
    if (pocl.empty()) {
      observer_.warn("PoCL is not installed (Debian: pocl-opencl-icd), so kernels are counted but not timed");
      return true;
    }
    observer_.run_begins({}, counts_first_ ? 2 : 1, 2);
    observer_.note(counts_first_ ? "Timing the kernels on PoCL"
                                 : "Timing the kernels on PoCL; their counts come from a second run");
    auto vendors = vendor_folder(spool->folder(), "pocl", pocl);
    if (!vendors) return fail_with(std::move(vendors));
    TargetRunOptions options;
    options.command = request_.command;
    options.environment = {{"OCL_ICD_VENDORS", *vendors}, {"OCL_ICD_FILENAMES", ""}};
    options.sources = tape::source_bit::kDispatch;
    options.folder = request_.folder;
    if (request_.operators) {
      options.torch_trace = true;
      options.keep = operators_file(request_.folder);
    }
    auto run = run_target(options, observer_);
    if (!run) return launch::fail_with(run);
    ++outcome_.runs;
    timed_ = std::move(run->dispatches);
    if (request_.operators && access(options.keep.c_str(), R_OK) == 0) outcome_.operators = options.keep;
    timed_code_ = run->result.exit_code;
    if (outcome_.exit_code == 0) {
      outcome_.exit_code = timed_code_;
      outcome_.signal = run->result.signal;
    }
    if (interrupted(run->result.signal)) {
      outcome_.seen = timed_.size();
      observer_.warn(fmt::format("the program ended with code {} ({}) in the run that times it{}", timed_code_,
                                 strsignal(run->result.signal), counts_first_ ? "" : ": nothing was counted"));
      return false;
    }
    const bool asked_opencl = std::any_of(run->result.processes.begin(), run->result.processes.end(),
                                          [](const auto& each) { return each.sees(event::Domain::kOpenCL); });
    if (timed_code_ != 0 && !asked_opencl && !counts_first_) {
      observer_.warn(
          fmt::format("the program ended with code {} before it asked for an OpenCL device: there is nothing to "
                      "count, and it is not run again",
                      timed_code_));
      outcome_.explained = true;
      return false;
    }
    if (timed_code_ != 0)
      observer_.warn(fmt::format("the program ended with code {} in the run that times it{}", timed_code_,
                                 timed_.empty() ? ", before it launched a kernel" : ""));
    if (run->called_mpi && job_rank().known() && !counts_first_) {
      outcome_.seen = timed_.size();
      observer_.warn("the program called MPI_Init, which a rank can do once in its job, in the run that times it for "
                     "--max-time: nothing was counted; leave --max-time out");
      return false;
    }
    if (!counts_first_ && !timed_.empty()) choose_fraction();
    return true;
  }

  // How much of each kernel is interpreted, so that --max-time suffices.
  void choose_fraction() {
    const double seconds = estimate_seconds(timed_);
    observer_.note(fmt::format("Interpreting {} {} on the virtual GPU will take {}", timed_.size(),
                               timed_.size() == 1 ? "dispatch" : "dispatches", duration_text(seconds)));
    if (request_.max_time_s > 0 && seconds > request_.max_time_s) {
      fraction_ = request_.max_time_s / seconds;
      outcome_.estimated = true;
      observer_.warn(fmt::format(
          "that is more than --max-time {:g} s: only {:.2g} % of the work-groups are interpreted, so the counts are "
          "estimates and the program finds its own results incomplete",
          request_.max_time_s, 100 * fraction_));
    }
  }

  // Hands the counts to the observer, with the times of the other run.
  void pass_on(const std::vector<SpooledDispatch>& records) {
    PassResult result;
    result.counters = plan_.passes.front().counters;
    std::vector<size_t> columns;
    for (const std::string& counter : result.counters) columns.push_back(index_of(counter));
    std::set<std::string> names;
    // Join times before filtering, so that running numbers mean the same in both runs.
    std::vector<ObservedDispatch> dispatches;
    for (const SpooledDispatch& record : records) dispatches.push_back(record.dispatch);
    const size_t untimed = join_times(dispatches, timed_);
    if (untimed > 0 && !timed_.empty()) {
      const auto first = std::find_if(dispatches.begin(), dispatches.end(),
                                      [](const ObservedDispatch& each) { return each.end == each.start; });
      observer_.warn(
          fmt::format("{} of {} dispatches of the counted run have no counterpart in the timed one (first: {} of {} "
                      "work-items): they have counts and no time",
                      untimed, records.size(), first->kernel,
                      first->grid[0] * std::max<uint64_t>(1, first->grid[1]) * std::max<uint64_t>(1, first->grid[2])));
    }
    for (size_t i = 0; i < records.size(); ++i) {
      const SpooledDispatch& record = records[i];
      if (names.size() < Outcome::kMostNames) names.insert(record.dispatch.kernel);
      if (!record.selected || record.values.size() != kCounters.size()) continue;
      if (record.groups_run < record.groups) outcome_.estimated = true;
      result.dispatches.push_back(dispatches[i]);
      for (const size_t column : columns) result.values.push_back(record.values[column]);
    }
    outcome_.seen_kernels.assign(names.begin(), names.end());
    outcome_.measured = result.dispatches.size();
    if (!result.dispatches.empty())
      if (const Status done = observer_.pass_done(result); !done) observer_.warn(done.error().message);
  }

  static bool interrupted(int signal) {
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
  }

  // Warns if the two runs launched different kernels.
  void check_against(const std::vector<SpooledDispatch>& counted) const {
    if (timed_.empty()) return;
    std::map<std::string, std::pair<size_t, size_t>> launches;
    for (const ObservedDispatch& each : timed_) ++launches[each.kernel].first;
    for (const SpooledDispatch& each : counted) ++launches[each.dispatch.kernel].second;
    std::string differing;
    size_t count = 0;
    for (const auto& [kernel, numbers] : launches)
      if (numbers.first != numbers.second && ++count <= 3)
        differing += fmt::format("{}{} ({}, then {})", differing.empty() ? "" : ", ", kernel, times(numbers.first),
                                 times(numbers.second));
    if (count > 0)
      observer_.warn(fmt::format(
          "the program runs twice, on PoCL, which times its kernels, and on Oclgrind, which counts them, and the two "
          "runs launched different kernels: {}{}; tacho changed only the device{}, so the program chooses by "
          "device, by time, or by what its first run left behind",
          differing, count > 3 ? fmt::format(" and {} more", count - 3) : "",
          fraction_ < 1 ? ", which ran a part of the work-groups (--max-time)" : ""));
  }

  static std::string times(size_t count) {
    return count == 0 ? "never" : count == 1 ? "once" : count == 2 ? "twice" : fmt::format("{} times", count);
  }

  const PassPlan& plan_;
  const CollectRequest& request_;
  Observer& observer_;
  Outcome outcome_;
  std::vector<ObservedDispatch> timed_;
  int timed_code_ = 0;
  double fraction_ = 1;
  // A rank of a job can call MPI_Init once, and whether it does shows in the first run: that one counts, then.
  const bool counts_first_ = job_rank().known() && request_.max_time_s <= 0;
};

class VirtualProvider : public Provider {
 public:
  std::string_view name() const override { return kName; }
  std::string_view vendor() const override { return "virtual"; }
  bool simulates() const override { return true; }
  bool obeys_regions() const override { return true; }
  std::string_view tool() const override { return "oclgrind"; }

  std::vector<Device> devices(std::string& why) const override {
    if (const auto plugin = find_plugin(); !plugin) {
      why = plugin.error().message;
      return {};
    }
    if (find_oclgrind().empty()) {
      why = "the virtual GPU needs Oclgrind, which is not installed (Debian: oclgrind)";
      return {};
    }
    return {virtual_device()};
  }

  std::optional<Device> device_for(const metric::Architecture& architecture) const override {
    if (architecture.vendor == kName) return virtual_device();
    return std::nullopt;
  }

  std::vector<CounterInfo> counters(const Device&) const override {
    std::vector<CounterInfo> list;
    for (const Named& each : kCounters) list.push_back({std::string(each.name), std::string(each.text)});
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return list;
  }

  // One interpretation counts everything.
  Result<PassPlan> plan(const Device&, std::span<const std::string> counters) const override {
    const std::set<std::string> wanted(counters.begin(), counters.end());
    for (const std::string& counter : wanted)
      if (index_of(counter) == kCounters.size()) return fail("the virtual GPU has no counter '{}'", counter);
    PassPlan plan;
    plan.passes.push_back({"pmc_perf_0", {wanted.begin(), wanted.end()}, ""});
    return plan;
  }

  tl::expected<Outcome, launch::LaunchError> collect(const Device&, const PassPlan& plan, const CollectRequest& request,
                                                     Observer& observer) const override {
    return Collection(plan, request, observer).run();
  }
};

}  // namespace

std::unique_ptr<Provider> make_virtual_provider() {
  return std::make_unique<VirtualProvider>();
}

}  // namespace tacho::counter

// AMD's GPUs: counters through rocprofiler-sdk, which calls libtacho.so for every dispatch
// (capture/source/rocm/counting.cpp). This side plans the passes and makes columns of the units' counts. It runs the
// program once for each pass, or once in all if dispatches take turns or launches run once for each pass
// (capture/source/rocm/replay/replay.h).
//
// A hardware block has a few counter slots. A level counter (SQ_LEVEL_WAVES, ...) and its accumulator get their own
// pass, together with the counters of the metrics that use the level. All other counters go into the first pass with
// room, in order of name. All channels of a TCC counter take one slot and stay together.
#include "counter/provider.h"

#include <string.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>

#include "base/format.h"
#include "base/job_rank.h"
#include "base/text/how_many.h"
#include "counter/provider/amd/instances.h"
#include "counter/provider/amd/machine.h"
#include "counter/provider/amd/pc_samples.h"
#include "counter/spool.h"
#include "counter/target_run.h"
#include "counter/wanted.h"
#include "metric/catalog/builtin/builtin.h"
#include "tape/layout.h"
#include "vendor/amd/sdk_sampling.h"
#include "vendor/vendor.h"

namespace tacho::counter {

namespace {

// "SQC_ICACHE_HITS" -> SQ: the block whose slots a counter takes, nullptr if the architecture has no such block.
const metric::CounterBlock* block_of(const metric::Architecture& architecture, std::string_view counter) {
  const std::string_view prefix = counter.substr(0, counter.find('_'));
  for (const metric::CounterBlock& block : architecture.counters)
    if (block.prefix == prefix) return &block;
  return nullptr;
}

bool is_level(std::string_view counter) {
  return counter.find("LEVEL") != std::string_view::npos && !counter.ends_with("_sum") &&
         !counter.starts_with("TCC_") && counter.find('[') == std::string_view::npos;
}

struct OpenPass {
  const metric::Architecture& architecture;
  std::string name = {};  // "" unless a level pass
  std::set<std::string> counters = {};
  std::map<std::string_view, int> used = {};

  bool holds(const std::string& counter) const { return counters.contains(counter); }
  bool take(const std::string& counter, int cost) {
    const metric::CounterBlock* const block = block_of(architecture, counter);
    if (block == nullptr) return false;
    int& slots = used[block->block];
    if (slots + cost > block->slots) return false;
    slots += cost;
    counters.insert(counter);
    return true;
  }
};

// Interval between samples if the user gives none: rocprof-compute's for the hardware's method. Its interval for the
// other one would be a second.
constexpr uint64_t kCyclesOfSample = 1 << 20, kMicrosecondsOfSample = 100;

constexpr std::string_view kSdkNotLoaded =
    "rocprofiler-sdk was loaded in no process, so nothing was counted: the program uses no AMD GPU, or its HIP and HSA "
    "are built without rocprofiler-register (Debian's and Ubuntu's are)";

// L2 banks of one die; 0 = unknown.
int banks_of(const metric::Architecture& architecture) {
  const double banks = architecture.number("l2.banks");
  return std::isnan(banks) ? 0 : static_cast<int>(banks);
}
int channels_of(const metric::Architecture& architecture) {
  const double dies = architecture.number("l2.dies");
  return std::isnan(dies) ? 0 : banks_of(architecture) * static_cast<int>(dies);
}

class AmdProvider : public Provider {
 public:
  std::string_view name() const override { return "rocm"; }
  std::string_view vendor() const override { return "amd"; }
  std::string_view tool() const override { return "rocprofiler-sdk"; }
  bool can_replay_kernels() const override { return true; }
  // It copies all of the program's memory for every launch: a program that uses much of it is faster run again.
  bool replays_by_default() const override { return false; }
  bool counts_instances() const override { return true; }
  bool can_sample_pc() const override { return true; }
  bool obeys_regions() const override { return true; }
  bool chooses_pc_sampling() const override { return true; }
  std::vector<Device> devices(std::string& why) const override {
    std::vector<std::string> unknown;
    std::vector<Device> found = amd::devices_of("/sys/class/kfd/kfd/topology/nodes", unknown);
    if (found.empty() && unknown.empty()) return found;
    if (found.empty()) {
      why = fmt::format("AMD GPU ({}): tacho has no metrics for this architecture", fmt::join(unknown, ", "));
    } else if (amd::find_sdk().empty()) {
      why = fmt::format(
          "{}: its counters need AMD's rocprofiler-sdk (librocprofiler-sdk.so.1), which is not in LD_LIBRARY_PATH, "
          "$ROCM_PATH/lib or /opt/rocm/lib; install the package rocprofiler-sdk, or set ROCM_PATH",
          found.front().name);
      found.clear();
    }
    return found;
  }
  std::optional<Device> device_for(const metric::Architecture& architecture) const override {
    if (architecture.vendor != "amd" || !architecture.metrics) return std::nullopt;
    Device device;
    device.id = "0";
    device.vendor = architecture.vendor;
    device.architecture = architecture.name;
    device.facts = architecture;
    device.model = architecture.family;
    device.name = "AMD Instinct " + device.model;
    return device;
  }

  std::vector<CounterInfo> counters(const Device& device) const override {
    std::vector<CounterInfo> list;
    for (const std::string& counter : known_counters(device.facts)) list.push_back({counter, ""});
    return list;
  }

  Result<PassPlan> plan(const Device& device, std::span<const std::string> counters) const override {
    const std::set<std::string> known = known_counters(device.facts);
    std::set<std::string> plain, levels;
    std::map<std::string, std::set<std::string>> with_level;
    for (const std::string& given : counters) {
      const size_t colon = given.find(':');
      const std::string level = colon == std::string::npos ? "" : given.substr(0, colon);
      const std::string counter = colon == std::string::npos ? given : given.substr(colon + 1);
      // The level's pass holds the accumulator.
      if (counter == "SQ_ACCUM_PREV_HIRES") continue;
      for (const std::string& each : {counter, level})
        if (!each.empty() && !known.contains(each))
          return fail("{} has no counter '{}'", device.architecture, each.substr(0, each.find('[')));
      if (!level.empty()) {
        levels.insert(level);
        with_level[level].insert(counter);
      } else if (is_level(counter)) {
        levels.insert(counter);
      } else {
        plain.insert(counter);
      }
    }
    std::vector<OpenPass> open;
    for (const std::string& level : levels) {
      OpenPass& pass = open.emplace_back(OpenPass{device.facts});
      pass.name = level;
      pass.take(level, 2);  // also SQ_ACCUM_PREV_HIRES
      for (const std::string& counter : with_level[level])
        if (counter != level && !pass.take(counter, 1))
          return fail("{}: the counters of the metrics that use {} do not fit into one pass of {}", counter, level,
                      device.architecture);
    }
    for (const std::string& counter : plain) {
      if (block_of(device.facts, counter) == nullptr)
        return fail("{}: no block of {} is known to have this counter", counter, device.architecture);
      // Level passes are joined like all others: counters that they hold need no further pass, and their free slots are
      // filled first.
      bool placed = std::any_of(open.begin(), open.end(), [&](const OpenPass& pass) { return pass.holds(counter); });
      for (OpenPass& pass : open) placed = placed || pass.take(counter, 1);
      if (!placed) {
        OpenPass& pass = open.emplace_back(OpenPass{device.facts});
        if (!pass.take(counter, 1)) return fail("{} does not fit into any pass", counter);
      }
    }
    PassPlan plan;
    int number = 0;
    for (const OpenPass& pass : open) {
      PlannedPass& made = plan.passes.emplace_back();
      made.name = pass.name.empty() ? fmt::format("pmc_perf_{}", number++) : pass.name;
      for (const std::string& counter : pass.counters) {
        if (!counter.ends_with('[')) {
          made.counters.push_back(counter);
          continue;
        }
        for (int i = 0; i < channels_of(device.facts); ++i) made.counters.push_back(fmt::format("{}{}]", counter, i));
      }
      if (!pass.name.empty()) made.counters.push_back("SQ_ACCUM_PREV_HIRES");
      made.definitions = definitions(pass, device.facts);
    }
    return plan;
  }

  Status ready() const override {
    if (amd::find_sdk().empty())
      return fail("librocprofiler-sdk.so.1 is not there any more: install the package rocprofiler-sdk");
    return {};
  }

  Result<std::unique_ptr<launch::DeviceSamples>> sample(const SampleRequest&, std::string& none) const override {
    const vendor::Vendor* const amd = vendor::vendor_named("amd");
    if (amd != nullptr && !amd->installed_gpus().empty())
      none = "counters of whole AMD GPUs are read inside a program that tacho starts (tacho trace --device-counters)";
    return nullptr;
  }

  tl::expected<Outcome, launch::LaunchError> collect(const Device& device, const PassPlan& plan,
                                                     const CollectRequest& request, Observer& observer) const override {
    Outcome outcome;
    const bool multiplexed = request.multiplex != Multiplex::kNone && plan.passes.size() > 1;
    const bool replayed = request.replay == Replay::kKernel && !multiplexed && plan.passes.size() > 1;
    const How how = multiplexed ? How::kMultiplexed : replayed ? How::kReplayed : How::kApplication;
    const size_t runs = multiplexed || replayed ? 1 : plan.passes.size();
    if (runs != 0)
      observer.note(multiplexed ? fmt::format("{} passes, spread over the dispatches of a kernel", plan.passes.size())
                    : replayed  ? fmt::format("{} passes, each launch is run once for each", plan.passes.size())
                    : runs > 1  ? fmt::format("{} passes, the program is run once for each", runs)
                                : std::string("one pass"));
    // A rank whose program calls MPI_Init runs once: if only samples were requested, that run takes them.
    const bool samples_first = request.pc_samples && request.only_samples && job_rank().known();
    if (samples_first) {
      if (auto done = sample(device, request, observer, outcome); !done) return launch::fail_with(done);
      if (outcome.exit_code != 0)
        observer.warn(fmt::format("the program ended with code {}; what it had finished is kept", outcome.exit_code));
      else if (outcome.called_mpi)
        observer.warn("the program called MPI_Init, which a rank can do once in its job: its PC samples were taken, "
                      "its dispatches are not counted");
      if (outcome.exit_code != 0 || outcome.called_mpi) {
        keep_sampled_dispatches(plan, outcome, observer);
        return outcome;
      }
    }
    std::vector<std::string> before;
    std::set<std::string> told;
    for (size_t run = 0; run < runs; ++run) {
      std::vector<size_t> passes;
      for (size_t i = 0; i < plan.passes.size(); ++i)
        if (how != How::kApplication || i == run) passes.push_back(i);
      observer.run_begins(passes, run + 1, runs);
      auto done = one_run(device, plan, request, how, run, observer, outcome, before, told);
      if (!done) return launch::fail_with(done);
      if (outcome.exit_code != 0) {
        observer.warn(run + 1 < runs ? fmt::format("the program ended with code {} in run {} of {}: what it had "
                                                   "finished is kept, the rest is not made",
                                                   outcome.exit_code, run + 1, runs)
                                     : fmt::format("the program ended with code {}; what it had finished is kept",
                                                   outcome.exit_code));
        break;
      }
      if (!*done || mpi_ends_replay(outcome, run, runs, observer)) break;
    }
    if (request.pc_samples && !samples_first && outcome.exit_code == 0 && !mpi_ends_sampling(outcome, observer))
      if (auto done = sample(device, request, observer, outcome); !done) return launch::fail_with(done);
    return outcome;
  }

 private:
  // How several passes come about.
  enum class How : uint8_t { kApplication, kMultiplexed, kReplayed };

  static tl::expected<void, launch::LaunchError> sample(const Device& device, const CollectRequest& request,
                                                        Observer& observer, Outcome& outcome) {
    using vendor::sdk::SamplingMethod, vendor::sdk::SamplingUnit;
    const PcSampling& wanted = request.pc_sampling;
    // The hardware samples from MI300 on.
    const bool has_hardware = device.architecture.starts_with("gfx94") || device.architecture.starts_with("gfx95");
    const bool stochastic = wanted.method.empty() ? has_hardware : wanted.method == "stochastic";
    const SamplingUnit unit = wanted.unit == "instructions" ? SamplingUnit::kInstructions
                              : wanted.unit == "cycles"     ? SamplingUnit::kCycles
                              : wanted.unit == "time"       ? SamplingUnit::kTime
                              : stochastic                  ? SamplingUnit::kCycles
                                                            : SamplingUnit::kTime;
    const uint64_t interval = wanted.interval != 0 ? wanted.interval
                              : stochastic         ? kCyclesOfSample
                                                   : kMicrosecondsOfSample;
    const auto method = stochastic ? SamplingMethod::kStochastic : SamplingMethod::kHostTrap;
    auto spool = SpoolFolder::create(
        request.folder, request.filter,
        {{"sampling", fmt::format("{} {} {}", static_cast<int>(method), static_cast<int>(unit), interval)}});
    if (!spool) return fail_with(std::move(spool));
    observer.note(fmt::format("PC sampling: one more run of the program, in which kernels run as "
                              "they would; a sample of each busy unit every {} {}",
                              interval,
                              unit == SamplingUnit::kTime     ? "us"
                              : unit == SamplingUnit::kCycles ? "cycles"
                                                              : "instructions"));
    TargetRunOptions options;
    options.command = request.command;
    options.environment = {{vendor::sdk::kSamplingGate, "1"}};
    options.target.counter_folder = spool->folder();
    options.sources = tape::source_bit::kCounter;
    options.folder = request.folder;
    observer.run_begins({}, 1, 1);
    auto run = run_target(options, observer);
    if (!run) return launch::fail_with(run);
    ++outcome.runs;
    outcome.called_mpi = outcome.called_mpi || run->called_mpi;
    outcome.exit_code = run->result.exit_code;
    outcome.signal = run->result.signal;
    std::vector<std::string> notes;
    auto sampled = amd::read_sampled(spool->folder(), request.filter, notes);
    if (!sampled) return fail_with(std::move(sampled));
    for (const std::string& note : notes) observer.warn(note);
    if (const uint64_t failures = spool->state().failures.load(); failures > 0)
      observer.warn(how_many(failures, "record", "records") + " of samples could not be written (disk full?)");
    outcome.seen = std::max<uint64_t>(outcome.seen, sampled->dispatches.size());
    if (spool->state().attached.load() == 0 && spool->state().refused.load() == 0 && outcome.exit_code == 0)
      observer.warn(std::string(kSdkNotLoaded));
    else if (sampled->samples.empty() && spool->state().refused.load() == 0)
      observer.warn("there is not one PC sample: the kernels may be too short for this interval, or none was launched");
    observer.note(
        fmt::format("{} PC samples at {} instructions", sampled->samples.size(), sampled->instructions.size()));
    sampled->command = request.command;
    if (!sampled->samples.empty()) outcome.sampled = std::make_shared<const SampledRun>(std::move(*sampled));
    return {};
  }

  // The dispatches of the run that sampled, in place of those that a run would have counted: with their times, without
  // values.
  static void keep_sampled_dispatches(const PassPlan& plan, const Outcome& outcome, Observer& observer) {
    if (!outcome.sampled || plan.passes.empty()) return;
    PassResult result;
    result.counters = plan.passes.front().counters;
    for (const SampledRun::Ran& each : outcome.sampled->dispatches) result.dispatches.push_back(each.dispatch);
    result.values.resize(result.dispatches.size() * result.counters.size(), std::numeric_limits<double>::quiet_NaN());
    if (!result.dispatches.empty())
      if (const Status done = observer.pass_done(result); !done) observer.warn(done.error().message);
  }

  // The settings by which the SDK counts the passes, and the columns that the counters become.
  struct Requests {
    std::vector<std::pair<std::string, std::string>> settings;
    std::vector<amd::Columns> columns;  // by pass
    std::vector<std::string> names;     // of the counters
  };

  static Requests requests_of(const PassPlan& plan) {
    Requests made;
    std::map<std::string, size_t> known;
    const auto index_of = [&](const std::string& counter, const std::string& expression) {
      const auto [at, fresh] = known.try_emplace(counter, made.names.size());
      if (fresh) {
        made.names.push_back(counter);
        made.settings.emplace_back(expression.empty() ? "counter" : "define",
                                   expression.empty() ? counter : counter + " " + expression);
      }
      return at->second;
    };
    std::vector<std::string> pass_lines;
    for (const PlannedPass& pass : plan.passes) {
      amd::Columns& columns = made.columns.emplace_back();
      std::set<size_t> wanted;
      for (const std::string& counter : pass.counters) {
        const size_t bracket = counter.find('[');
        // A level's accumulator is the hardware's next counter; the SDK pairs the two in an expression.
        const bool accumulated = counter == "SQ_ACCUM_PREV_HIRES";
        const size_t index = accumulated
                                 ? index_of(pass.name + "_ACCUM", fmt::format("accumulate({}, HIGH_RES)", pass.name))
                                 : index_of(counter.substr(0, bracket), "");
        columns.add(index, bracket == std::string::npos ? -1 : std::atoi(counter.c_str() + bracket + 1));
        wanted.insert(index);
      }
      pass_lines.push_back(fmt::format("{}", fmt::join(wanted, ",")));
    }
    for (std::string& line : pass_lines) made.settings.emplace_back("pass", std::move(line));
    return made;
  }

  // False if further runs are useless.
  tl::expected<bool, launch::LaunchError> one_run(const Device& device, const PassPlan& plan,
                                                  const CollectRequest& request, How how, size_t number,
                                                  Observer& observer, Outcome& outcome,
                                                  std::vector<std::string>& before, std::set<std::string>& told) const {
    Requests requests = requests_of(plan);
    requests.settings.emplace_back("policy", how == How::kApplication                  ? fmt::format("{}", number)
                                             : how == How::kReplayed                   ? "replay"
                                             : request.multiplex == Multiplex::kKernel ? "kernel"
                                                                                       : "launch");
    const int64_t patience = patience_s();
    if (how == How::kReplayed) requests.settings.emplace_back("patience", fmt::format("{}", patience * 1000));
    auto spool = SpoolFolder::create(request.folder, request.filter, requests.settings);
    if (!spool) return fail_with(std::move(spool));
    TargetRunOptions options;
    options.command = request.command;
    options.target.counter_folder = spool->folder();
    options.sources = tape::source_bit::kCounter;
    options.regions = request.filter.regions;
    options.folder = request.folder;
    options.tick = [&] { observer.progress(spool->state().dispatches_done.load(), outcome.seen); };
    auto run = run_target(options, observer);
    if (!run) return launch::fail_with(run);
    tell_never_began(*run, outcome, observer);
    ++outcome.runs;
    outcome.called_mpi = run->called_mpi;
    outcome.exit_code = run->result.exit_code;
    outcome.signal = run->result.signal;

    size_t cut = 0;
    uint64_t unknown = 0;
    auto records = amd::read_instances(spool->folder(), cut, unknown);
    if (!records) return fail_with(std::move(records));
    if (cut > 0) observer.warn("a record was cut off where the program was killed; it is left out");
    if (const uint64_t lost = spool->state().failures.load() + unknown; lost > 0)
      observer.warn(fmt::format("{} values or dispatches could not be recorded (disk full?)", lost));
    warn_of_missing_counters(spool->folder(), device, told, observer);
    if (spool->state().attached.load() == 0 && spool->state().refused.load() == 0 && run->result.exit_code == 0) {
      observer.warn(std::string(kSdkNotLoaded));
      return false;
    }
    // The records of each dispatch, one for each pass in which it ran.
    std::vector<std::span<const amd::CountedDispatch>> dispatches;
    for (size_t at = 0; at < records->size();) {
      size_t end = at + 1;
      while (end < records->size() && (*records)[end].dispatch.index == (*records)[at].dispatch.index) ++end;
      dispatches.emplace_back(records->data() + at, end - at);
      at = end;
    }
    if (number == 0) outcome.seen = std::max<uint64_t>(outcome.seen, dispatches.size());

    std::vector<std::string> kernels;
    std::set<std::string> names;
    for (const auto& ran : dispatches) {
      kernels.push_back(ran.front().dispatch.kernel);
      if (names.size() < Outcome::kMostNames) names.insert(ran.front().dispatch.kernel);
    }
    if (outcome.seen_kernels.empty()) outcome.seen_kernels.assign(names.begin(), names.end());
    if (number > 0 && kernels != before && run->result.exit_code == 0) {
      const auto [now, then] = std::mismatch(kernels.begin(), kernels.end(), before.begin(), before.end());
      observer.warn(fmt::format("run {} launched other kernels than the one before: dispatch {} was {}, now {}",
                                number + 1, now - kernels.begin(), then != before.end() ? *then : "not there",
                                now != kernels.end() ? *now : "not there"));
    }
    before = std::move(kernels);
    if (how == How::kMultiplexed) warn_of_few_dispatches(*records, plan, request.multiplex, observer);
    if (how == How::kReplayed)
      warn_of_single_runs(dispatches, amd::read_broken_off(spool->folder()), plan.passes.size(), patience, observer);

    uint64_t passed = 0, counted = 0;
    for (const auto& ran : dispatches) {
      passed += ran.front().selected ? 1 : 0;
      counted += ran.front().selected &&
                 std::any_of(ran.begin(), ran.end(), [](const auto& record) { return !record.values.empty(); });
    }
    for (size_t i = 0; i < plan.passes.size(); ++i) {
      if (how == How::kApplication && i != number) continue;
      pass_on(device, plan, i, requests, request.instances, dispatches, observer);
    }
    outcome.measured = std::max(outcome.measured, counted);
    outcome.left_out = std::max(outcome.left_out, passed - counted);
    return true;
  }

  // Hands the values of one pass to the observer.
  static void pass_on(const Device& device, const PassPlan& plan, size_t pass, const Requests& requests, bool instances,
                      std::span<const std::span<const amd::CountedDispatch>> dispatches, Observer& observer) {
    PassResult result;
    result.pass = pass;
    result.counters = plan.passes[pass].counters;
    std::vector<double> row(requests.columns[pass].size());
    for (const auto& ran : dispatches) {
      if (!ran.front().selected) continue;
      const auto record = std::find_if(ran.begin(), ran.end(), [&](const auto& each) { return each.pass == pass; });
      // Dispatches that did not count this pass stay, without values, so that all passes have the same rows.
      if (record == ran.end()) {
        result.dispatches.push_back(ran.front().dispatch);
        std::fill(row.begin(), row.end(), std::numeric_limits<double>::quiet_NaN());
      } else {
        result.dispatches.push_back(record->dispatch);
        requests.columns[pass].fill(*record, banks_of(device.facts), row.data());
      }
      result.values.insert(result.values.end(), row.begin(), row.end());
      if (!instances || record == ran.end()) continue;
      for (const amd::UnitValue& value : record->values)
        result.instances.push_back({record->dispatch.index,
                                    value.counter < requests.names.size() ? requests.names[value.counter] : "",
                                    value.position, value.value});
    }
    if (!result.dispatches.empty())
      if (const Status done = observer.pass_done(result); !done) observer.warn(done.error().message);
  }

  // Says once for each counter why a GPU does not count it.
  static void warn_of_missing_counters(const std::string& folder, const Device& device, std::set<std::string>& told,
                                       Observer& observer) {
    std::map<std::string, std::vector<std::string>> by_reason;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      if (entry.path().extension() != ".missing") continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        const size_t first = line.find(' '), second = line.find(' ', first + 1);
        if (second == std::string::npos) continue;
        const std::string counter = line.substr(first + 1, second - first - 1);
        if (told.insert(counter).second) by_reason[line.substr(second + 1)].push_back(counter);
      }
    }
    for (const auto& [reason, counters] : by_reason) {
      std::string some;
      for (size_t i = 0; i < counters.size() && i < 6; ++i) some += (i > 0 ? ", " : "") + counters[i];
      if (counters.size() > 6) some += fmt::format(" and {} more", counters.size() - 6);
      observer.warn(fmt::format("{} does not count {}: {}. Metrics that need {} are not computed", device.name, some,
                                reason, counters.size() == 1 ? "it" : "them"));
    }
  }

  static void warn_of_few_dispatches(const std::vector<amd::CountedDispatch>& records, const PassPlan& plan,
                                     Multiplex policy, Observer& observer) {
    const size_t passes = plan.passes.size();
    std::map<std::string, size_t> seen;
    for (const amd::CountedDispatch& record : records) {
      if (!record.selected) continue;
      std::string key = record.dispatch.kernel;
      if (policy == Multiplex::kLaunchParams)
        key += fmt::format(" (grid {}, workgroup {}, LDS {})", fmt::join(record.dispatch.grid, "x"),
                           fmt::join(record.dispatch.workgroup, "x"), record.dispatch.lds);
      ++seen[key];
    }
    for (const auto& [key, count] : seen)
      if (count < passes)
        observer.warn(fmt::format(
            "{}: {} dispatch{} of the {} that all passes need; the counters of {} are lost for it", key, count,
            count == 1 ? "" : "es", passes,
            count + 1 == passes ? plan.passes.back().name
                                : fmt::format("{} to {}", plan.passes[count].name, plan.passes.back().name)));
  }

  // For how long kernel replay waits for the GPU, in seconds.
  static int64_t patience_s() {
    const char* const text = std::getenv("TACHO_REPLAY_PATIENCE");
    const long long given = text != nullptr ? std::atoll(text) : 0;
    return given > 0 && given <= 86'400 ? given : 30;
  }

  // Says once for each reason which launches were not run again.
  static void warn_of_single_runs(std::span<const std::span<const amd::CountedDispatch>> dispatches,
                                  const std::map<uint64_t, spool::RanOnce>& broken_off, size_t passes, int64_t patience,
                                  Observer& observer) {
    struct Launches {
      size_t count = 0;
      std::set<std::string> names;
    };
    std::map<spool::RanOnce, Launches> found;
    for (const auto& ran : dispatches) {
      if (!ran.front().selected || ran.size() == passes) continue;
      spool::RanOnce once = ran.front().once;
      if (const auto broken = broken_off.find(ran.front().dispatch.index); broken != broken_off.end())
        once = broken->second;
      Launches& launches = found[once];
      ++launches.count;
      launches.names.insert(ran.front().dispatch.kernel);
    }
    for (const auto& [once, launches] : found) {
      std::vector<std::string> some(launches.names.begin(), launches.names.end());
      const size_t more = some.size() > 4 ? some.size() - 4 : 0;
      some.resize(some.size() - more);
      std::string list = fmt::format("{}", fmt::join(some, ", "));
      if (more > 0) list += fmt::format(" and {} more", more);
      const std::string what = fmt::format("{} launch{} ({})", launches.count, launches.count == 1 ? "" : "es", list);
      observer.warn(
          once == spool::RanOnce::kNo
              ? fmt::format("{} did not run once for each pass: the program ended before", what)
              : fmt::format("{} ran once, measured in the first pass only: {}; --iteration-multiplexing and --replay "
                            "application measure all passes",
                            what, amd::sentence_of(once, patience)));
    }
  }

  static std::set<std::string> known_counters(const metric::Architecture& architecture) {
    std::set<std::string> known;
    const auto catalog = metric::load_catalog(architecture);
    if (!catalog) return known;
    std::vector<metric::Selection> everything;
    for (const metric::Block& block : catalog->blocks) everything.push_back({&block, nullptr, nullptr, nullptr});
    const auto wanted = wanted_counters(*catalog, everything);
    if (!wanted) return known;
    for (const std::string& counter : wanted->counters) {
      const size_t colon = counter.find(':');
      known.insert(colon == std::string::npos ? counter : counter.substr(colon + 1));
    }
    known.insert(wanted->levels.begin(), wanted->levels.end());
    return known;
  }

  // perfmon/<pass>.yaml: defines for rocprofiler-sdk the counters that it does not know.
  static std::string definitions(const OpenPass& pass, const metric::Architecture& architecture) {
    std::string out;
    const auto add = [&](const std::string& name, const std::string& expression) {
      out += fmt::format(
          "    - name: {}\n      description: ''\n      properties: []\n      definitions:\n        - architectures: "
          "[{}]\n          expression: {}\n",
          name, architecture.name, expression);
    };
    if (!pass.name.empty()) add(pass.name + "_ACCUM", fmt::format("accumulate({}, HIGH_RES)", pass.name));
    const int banks = banks_of(architecture);
    for (const std::string& counter : pass.counters) {
      if (!counter.ends_with('[')) continue;
      const std::string base = counter.substr(0, counter.size() - 1);
      for (int i = 0; i < channels_of(architecture); ++i)
        add(fmt::format("{}[{}]", base, i),
            fmt::format("select({},[DIMENSION_XCC=[{}],DIMENSION_INSTANCE=[{}]])", base, i / banks, i % banks));
    }
    return out.empty() ? out : "rocprofiler-sdk:\n  counters-schema-version: 1\n  counters:\n" + out;
  }
};

}  // namespace

std::unique_ptr<Provider> make_amd_provider() {
  return std::make_unique<AmdProvider>();
}

}  // namespace tacho::counter

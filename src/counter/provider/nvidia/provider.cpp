// NVIDIA GPUs: counters through CUPTI's range profiler. This side plans and evaluates with the host library; the target
// (capture/source/cuda/counter) gets a finished config image and leaves counter data images.
#include "counter/provider.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "base/format.h"
#include "base/text/how_many.h"
#include "counter/provider/nvidia/exact.h"
#include "counter/provider/nvidia/host.h"
#include "counter/provider/nvidia/images.h"
#include "counter/provider/nvidia/pm_sampler.h"
#include "counter/provider/nvidia/samples.h"
#include "counter/spool.h"
#include "counter/target_run.h"
#include "event/spool/spool_ranges.h"
#include "metric/catalog/builtin/builtin.h"
#include "tape/layout.h"
#include "vendor/collective_kernels.h"
#include "vendor/nvidia/machine.h"
#include "vendor/nvidia/permission.h"

namespace tacho::counter {

namespace {

using nvidia::Host;

// Always read: the kernel's start and duration.
constexpr std::string_view kDuration = "gpu__time_duration.sum";

struct Machine {
  std::vector<vendor::NvidiaDevice> devices;
  std::string driver, problem;
};

// Starts the driver in a child process: it leaves threads behind, and this process must fork targets.
Machine inspect() {
  Machine machine;
  int ends[2];
  if (pipe(ends) != 0) return machine;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const vendor::NvidiaStatus status = vendor::inspect_nvidia();
    std::string text = fmt::format("driver\t{}\nproblem\t{}\n", status.driver, status.problem);
    for (const vendor::NvidiaDevice& d : status.devices)
      text += fmt::format("device\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", d.name, d.uuid,
                          d.multiprocessors, d.capability_major, d.capability_minor, d.memory_bytes, d.warp_size,
                          d.sm_clock_khz, d.memory_clock_khz, d.memory_bus_bits, d.l2_bytes, d.threads_per_sm,
                          d.blocks_per_sm, d.registers_per_sm, d.shared_per_sm, d.shared_reserved);
    for (size_t at = 0; at < text.size();) {
      const ssize_t written = write(ends[1], text.data() + at, text.size() - at);
      if (written <= 0) break;
      at += static_cast<size_t>(written);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t got; child > 0 && (got = read(ends[0], part, sizeof part)) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    text.append(part, static_cast<size_t>(got));
  }
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> words;
    std::istringstream cells(line);
    for (std::string word; std::getline(cells, word, '\t');) words.push_back(word);
    if (words.size() == 2 && words[0] == "driver") machine.driver = words[1];
    if (words.size() == 2 && words[0] == "problem") machine.problem = words[1];
    if (words.size() != 17 || words[0] != "device") continue;
    vendor::NvidiaDevice d;
    const auto number = [&](size_t at) { return static_cast<int>(std::strtol(words[at].c_str(), nullptr, 10)); };
    d.name = words[1];
    d.uuid = words[2];
    d.multiprocessors = number(3);
    d.capability_major = number(4);
    d.capability_minor = number(5);
    d.memory_bytes = std::strtoull(words[6].c_str(), nullptr, 10);
    d.warp_size = number(7);
    d.sm_clock_khz = number(8);
    d.memory_clock_khz = number(9);
    d.memory_bus_bits = number(10);
    d.l2_bytes = number(11);
    d.threads_per_sm = number(12);
    d.blocks_per_sm = number(13);
    d.registers_per_sm = number(14);
    d.shared_per_sm = number(15);
    d.shared_reserved = number(16);
    machine.devices.push_back(std::move(d));
  }
  return machine;
}

const Machine& machine() {
  static const Machine seen = inspect();
  return seen;
}

// Stands in for an absent GPU of the architecture: its largest model.
vendor::NvidiaDevice typical_device(const metric::Architecture& architecture) {
  const auto number = [&](std::string_view fact) {
    const double value = architecture.number(fmt::format("typical.{}", fact));
    return std::isnan(value) ? 0 : static_cast<int>(value);
  };
  vendor::NvidiaDevice d;
  d.name = architecture.text("typical.name");
  d.warp_size = number("warp_size");
  d.threads_per_sm = number("threads_per_sm");
  d.blocks_per_sm = number("blocks_per_sm");
  d.registers_per_sm = number("registers_per_sm");
  d.shared_per_sm = number("shared_per_sm");
  d.shared_reserved = number("shared_reserved");
  d.multiprocessors = number("multiprocessors");
  return d;
}

std::string architecture_of(const vendor::NvidiaDevice& d) {
  return fmt::format("sm_{}{}", d.capability_major, d.capability_minor);
}

Device device_from(const vendor::NvidiaDevice& d, const metric::Architecture& architecture, size_t ordinal,
                   const std::string& driver) {
  Device device;
  device.id = std::to_string(ordinal);
  device.vendor = "nvidia";
  device.architecture = architecture.name;
  device.facts = architecture;
  device.model = folder_model(d.name);
  device.name = d.name;
  const auto add = [&](std::string_view key, long long value) {
    if (value != 0) device.sysinfo.emplace_back(key, std::to_string(value));
  };
  device.sysinfo = {{"gpu_series", "NVIDIA"}, {"gpu_model", device.model}, {"gpu_arch", device.architecture}};
  if (!driver.empty()) device.sysinfo.emplace_back("gpu_driver", driver);
  add("cu_per_gpu", d.multiprocessors);
  device.sysinfo.emplace_back("simd_per_cu", "4");
  add("wave_size", d.warp_size);
  if (d.warp_size != 0) add("max_waves_per_cu", d.threads_per_sm / d.warp_size);
  device.sysinfo.emplace_back("workgroup_max_size", "1024");
  device.sysinfo.emplace_back("lds_banks_per_cu", "32");
  add("max_blocks_per_sm", d.blocks_per_sm);
  add("registers_per_sm", d.registers_per_sm);
  add("shared_per_sm", d.shared_per_sm);
  add("shared_reserved", d.shared_reserved);
  add("max_sclk", d.sm_clock_khz / 1000);
  add("max_mclk", d.memory_clock_khz / 1000);
  add("memory_bus_bits", d.memory_bus_bits);
  add("gpu_l2", d.l2_bytes / 1024);
  add("gpu_memory", static_cast<long long>(d.memory_bytes >> 20));
  device.sysinfo.emplace_back("num_xcd", "1");
  return device;
}

bool is_link(std::string_view metric) {
  for (const std::string_view unit : {"pcie__", "nvlrx__", "nvltx__", "ctc__"})
    if (metric.starts_with(unit)) return true;
  return false;
}

std::string chip_of(const Device& device) {
  return std::string(device.facts.text("chip"));
}

// "sm_80, sm_90 and sm_100"
std::string architectures_with_metrics() {
  const std::span<const std::string_view> all = metric::architectures("nvidia");
  std::string out;
  for (size_t i = 0; i < all.size(); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : i + 1 == all.size() ? " and " : ", ", all[i]);
  return out;
}

class NvidiaProvider : public Provider {
 public:
  std::string_view name() const override { return "cuda"; }
  std::string_view vendor() const override { return "nvidia"; }
  std::string_view tool() const override { return "CUPTI"; }
  bool can_replay_kernels() const override { return true; }
  std::optional<OwnReplay> own_replay() const override {
    return OwnReplay{"cupti", "NVIDIA GPU", "as kernel, by NVIDIA's library"};
  }
  bool can_sample_pc() const override { return true; }
  bool obeys_regions() const override { return true; }
  bool can_empty_caches() const override { return true; }

  std::vector<Device> devices(std::string& why) const override {
    std::vector<Device> list;
    const Machine& here = machine();
    for (size_t i = 0; i < here.devices.size(); ++i) {
      const std::string name = architecture_of(here.devices[i]);
      const std::optional<metric::Architecture> architecture = metric::built_in_architecture(name);
      if (!architecture.has_value() || !architecture->metrics) {
        why = fmt::format("{} is of {}, for which there is no catalog (there is one for {})", here.devices[i].name,
                          name, architectures_with_metrics());
        continue;
      }
      list.push_back(device_from(here.devices[i], *architecture, i, here.driver));
    }
    if (list.empty() && why.empty()) why = here.problem.empty() ? "no NVIDIA GPU" : here.problem;
    return list;
  }

  std::optional<Device> device_for(const metric::Architecture& architecture) const override {
    if (architecture.vendor != "nvidia" || !architecture.metrics) return std::nullopt;
    return device_from(typical_device(architecture), architecture, 0, "");
  }

  std::vector<CounterInfo> counters(const Device& device) const override {
    std::vector<CounterInfo> list;
    const auto host = Host::open(chip_of(device));
    if (!host) return list;
    const auto metrics = (*host)->base_metrics(true);
    if (!metrics) return list;
    for (const nvidia::MetricInfo& metric : *metrics) list.push_back({metric.name, metric.description});
    return list;
  }

  // CUPTI finds the fewest passes for a group of metrics, and its images hold all passes of a kernel together. Link
  // counters cannot share a configuration with kernel counters, so they form a second group with its own run.
  Result<PassPlan> plan(const Device& device, std::span<const std::string> counters) const override {
    return make_plan(device, counters, false);
  }

  bool can_count_exactly() const override { return true; }
  Result<PassPlan> exact_plan(const Device& device, std::span<const std::string> counters) const override {
    return make_plan(device, counters, true);
  }

  static Result<PassPlan> make_plan(const Device& device, std::span<const std::string> counters, bool exact) {
    TACHO_ASSIGN(const std::unique_ptr<Host> host, Host::open(chip_of(device)));
    PassPlan plan;
    std::set<std::string> wanted;
    for (const std::string& counter : counters) {
      if (host->knows(counter))
        wanted.insert(counter);
      else
        plan.unavailable.push_back(counter);
    }
    if (wanted.empty() && !plan.unavailable.empty())
      return fail("{} has no metric '{}'", device.name, plan.unavailable.front());
    std::vector<std::string> kernel, links, whole;
    for (const std::string& counter : wanted)
      (is_link(counter) ? links : exact && nvidia::is_deterministic(counter) ? whole : kernel).push_back(counter);
    std::vector<std::vector<std::string>> groups = {std::move(kernel), std::move(links)};
    const auto passes = [&](const std::vector<std::string>& group) -> size_t {
      const auto config = host->config(group);
      return config ? config->passes : 0;
    };
    const size_t first_whole = groups.size();
    for (std::vector<std::string>& group : nvidia::whole_groups(whole, passes)) groups.push_back(std::move(group));
    // Without counters (-b 21, launch statistics), collect only the launches and their times.
    if (wanted.empty()) groups.front().emplace_back(kDuration);
    for (size_t g = 0; g < groups.size(); ++g) {
      std::vector<std::string>* const group = &groups[g];
      if (group->empty()) continue;
      TACHO_ASSIGN(Host::Config config, host->config(*group));
      // Add the kernel's duration unless it costs a further pass, as it does beside counters from patched code alone.
      if (std::find(group->begin(), group->end(), kDuration) == group->end()) {
        std::vector<std::string> timed = *group;
        timed.insert(std::upper_bound(timed.begin(), timed.end(), kDuration), std::string(kDuration));
        if (auto with = host->config(timed); with && with->passes == config.passes) {
          *group = std::move(timed);
          config = std::move(*with);
        }
      }
      PlannedPass pass;
      pass.name = fmt::format("pmc_perf_{}", plan.passes.size());
      pass.counters = *group;
      pass.executions = config.passes;
      pass.definitions = fmt::format("chip: {}\npasses: {}\nmetrics:\n", chip_of(device), config.passes);
      for (const std::string& counter : pass.counters) pass.definitions += fmt::format("  - {}\n", counter);
      if (g >= first_whole) pass.definitions += "exact: true\n";
      plan.passes.push_back(std::move(pass));
    }
    return plan;
  }

  Status ready() const override {
    if (vendor::counters_refused()) return fail("{}", vendor::kCountersRefused);
    return {};
  }

  // unit__what.rollup
  bool samples(std::string_view counter) const override {
    return counter.find("__") != std::string_view::npos || counter.find('.') != std::string_view::npos;
  }
  Result<std::unique_ptr<launch::DeviceSamples>> sample(const SampleRequest& request,
                                                        std::string& none) const override {
    return launch::DeviceSamples::begin([&](launch::SampleSender& sender) { nvidia::sample_gpus(request, sender); },
                                        none);
  }

  tl::expected<Outcome, launch::LaunchError> collect(const Device& device, const PassPlan& plan,
                                                     const CollectRequest& request, Observer& observer) const override {
    auto host = Host::open(chip_of(device));
    if (!host) return fail_with(std::move(host));
    Outcome outcome;
    if (request.operators)
      if (const auto status = record_operators(request, {}, observer, outcome); !status)
        return launch::fail_with(status);
    for (size_t group = 0; group < plan.passes.size(); ++group) {
      const auto status = GroupRun(**host, plan, group, request, observer, outcome).run();
      if (!status) return launch::fail_with(status);
      if (outcome.exit_code != 0) break;
    }
    if (request.pc_samples && outcome.exit_code == 0 && !mpi_ends_sampling(outcome, observer))
      if (const auto status = sample(request, observer, outcome); !status) return launch::fail_with(status);
    return outcome;
  }

 private:
  static tl::expected<void, launch::LaunchError> sample(const CollectRequest& request, Observer& observer,
                                                        Outcome& outcome) {
    auto spool = SpoolFolder::create(request.folder, request.filter, {{"mode", "sampling"}});
    if (!spool) return fail_with(std::move(spool));
    observer.note("PC sampling: one more run of the program, in which kernels run as they would");
    if (!request.filter.dispatches.empty())
      observer.note("PC samples are of all dispatches: -d does not choose among them");
    TargetRunOptions options;
    options.command = request.command;
    options.target.counter_folder = spool->folder();
    options.sources = tape::source_bit::kCounter;
    options.folder = request.folder;
    observer.run_begins({}, 1, 1);
    auto run = run_target(options, observer);
    if (!run) return launch::fail_with(run);
    ++outcome.runs;
    outcome.exit_code = run->result.exit_code;
    outcome.signal = run->result.signal;
    std::vector<std::string> notes;
    auto rows = nvidia::read_samples(spool->folder(), request.filter, notes);
    for (const std::string& note : notes) observer.warn(note);
    if (!rows) {
      observer.warn(rows.error().message);
      return {};
    }
    outcome.seen = std::max(outcome.seen, spool->state().dispatches.load());
    uint64_t count = 0;
    for (const PcSample& row : *rows) count += row.count;
    if (count == 0 && spool->state().refused.load() == 0)
      observer.warn("there is not one PC sample: the kernels may be too short, or none was launched");
    observer.note(fmt::format("{} PC samples at {} instructions and reasons", count, rows->size()));
    outcome.samples = std::move(*rows);
    return {};
  }

  // One group of metrics, which the program runs once for or, with application replay, once a pass.
  class GroupRun {
   public:
    GroupRun(const Host& host, const PassPlan& plan, size_t group, const CollectRequest& request, Observer& observer,
             Outcome& outcome)
        : host_(host),
          group_(group),
          metrics_(plan.passes[group].counters),
          request_(request),
          observer_(observer),
          outcome_(outcome) {}

    tl::expected<void, launch::LaunchError> run() {
      auto config = host_.config(metrics_);
      if (!config) return fail_with(std::move(config));
      config_ = std::move(*config);
      choose();
      for (size_t number = 0; number < runs_; ++number) {
        const auto goes_on = run_once(number);
        if (!goes_on) return launch::fail_with(goes_on);
        if (!*goes_on) break;
      }
      finish();
      return {};
    }

   private:
    // How the passes are made, which the user hears.
    void choose() {
      multiplex_ = request_.multiplex != Multiplex::kNone && config_.passes > 1;
      application_ = !multiplex_ && request_.replay == Replay::kApplication && config_.passes > 1;
      runs_ = application_ ? config_.passes : 1;
      const std::string what = fmt::format("{} in {}", how_many(metrics_.size(), "metric", "metrics"),
                                           how_many(config_.passes, "pass", "passes"));
      observer_.note(what + (multiplex_     ? ", spread over the launches of a kernel"
                             : application_ ? ", the program is run once for each"
                                            : ", each kernel is run once for each (kernel replay)"));
      // A replayed kernel would find in the L2 the data of its last execution.
      const bool replays = !multiplex_ && !application_ && config_.passes > 1 && request_.replay != Replay::kVendor;
      const bool empties = request_.caches == Caches::kAll || (request_.caches == Caches::kDefault && replays);
      if (empties) observer_.note("The L2 is emptied before each measured kernel (--cache-control none leaves it)");

      settings_ = {{"mode", multiplex_     ? "multiplex"
                            : application_ ? "application"
                                           : "kernel"},
                   {"passes", std::to_string(config_.passes)},
                   {"by", request_.multiplex == Multiplex::kKernel ? "kernel" : "params"},
                   {"replayer", request_.replay == Replay::kVendor ? "cupti" : "own"},
                   {"cache", empties ? "all" : "none"}};
      for (const std::string& metric : metrics_) settings_.emplace_back("metric", metric);
    }

    // A spool for a run, with the configuration of its counters. Nothing if images of the run before cannot be kept.
    tl::expected<bool, launch::LaunchError> prepare(size_t run_number) {
      auto run_settings = settings_;
      run_settings.emplace_back("pass", std::to_string(run_number));
      auto spool = SpoolFolder::create(request_.folder, request_.filter, run_settings);
      if (!spool) return fail_with(std::move(spool));
      if (run_number > 0)  // later runs continue the images of earlier ones
        if (const Status moved = move_images(spools_.back()->folder(), spool->folder()); !moved) {
          observer_.warn(moved.error().message);
          return false;
        }
      spools_.push_back(std::make_unique<SpoolFolder>(std::move(*spool)));
      const std::string folder = spools_.back()->folder();
      {
        std::ofstream file(folder + "/counter.config", std::ios::binary);
        file.write(reinterpret_cast<const char*>(config_.image.data()),
                   static_cast<std::streamsize>(config_.image.size()));
        if (!file.flush()) return fail("{}/counter.config: cannot be written", folder);
      }
      return true;
    }

    // Runs the program. False if no further run makes sense.
    tl::expected<bool, launch::LaunchError> run_once(size_t run_number) {
      if (const auto ready = prepare(run_number); !ready || !*ready) return ready;
      const std::string folder = spools_.back()->folder();
      evaluator_ = std::make_unique<nvidia::Evaluator>(host_, metrics_, folder);
      TargetRunOptions options;
      options.command = request_.command;
      options.target.counter_folder = folder;
      options.sources = tape::source_bit::kCounter;
      options.regions = request_.filter.regions;
      options.folder = request_.folder;
      options.tick = [&] {
        const spool::SpoolState& state = spools_.back()->state();
        observer_.progress(state.dispatches_done.load(), launches_.size());
        if (!application_) static_cast<void>(evaluator_->take());
      };
      const size_t all[] = {group_};
      observer_.run_begins(all, run_number + 1, runs_);
      auto run = run_target(options, observer_);
      if (!run) return launch::fail_with(run);
      tell_never_began(*run, outcome_, observer_);
      ++outcome_.runs;
      outcome_.called_mpi = run->called_mpi;
      if (run->result.exit_code != 0 && outcome_.exit_code == 0) {
        outcome_.exit_code = run->result.exit_code;
        outcome_.signal = run->result.signal;
        observer_.warn(fmt::format("the program ended with code {}{}; what was measured until then is kept",
                                   run->result.exit_code,
                                   run->result.signal != 0 ? fmt::format(" ({})", strsignal(run->result.signal)) : ""));
      }
      size_t cut = 0;
      auto seen = nvidia::read_launches(folder, cut);
      if (!seen) {
        observer_.warn(seen.error().message);
        return false;
      }
      if (cut > 0) observer_.warn("records were cut off where the program was killed; those launches are left out");
      if (const uint64_t lost = spools_.back()->state().failures.load(); lost > 0)
        observer_.warn(fmt::format("{} counter data images could not be written (disk full?)", lost));
      return keep(run_number, run->result, std::move(*seen));
    }

    // Takes a run's counts. False if further runs are useless.
    bool keep(size_t run_number, const launch::RunResult& result, std::vector<nvidia::MeasuredLaunch> seen) {
      // The folder also holds images of earlier runs: launches that a crashed run did not reach have the passes before
      // it.
      const bool crashed = result.exit_code != 0 && application_;
      begun_ = std::max<uint64_t>(begun_, spools_.back()->state().dispatches.load());
      if (run_number == 0) {
        launches_ = std::move(seen);
      } else if (crashed) {
        observer_.warn(fmt::format("pass {} of {} is not whole, the passes before it are kept", run_number + 1, runs_));
      } else if (!same_launches(launches_, seen, run_number, observer_)) {
        observer_.warn(
            "application replay needs the same launches in every run: the values of this profile are not complete");
        launches_.clear();
        whole_ = false;
        return false;
      }
      if (const uint64_t lost = spools_.back()->state().failures_of_replay.load(); lost > 0)
        observer_.warn(
            fmt::format("{} batches of launches could not be run again: those launches have no values", lost));
      if (spools_.back()->state().attached.load() == 0 && spools_.back()->state().refused.load() == 0)
        observer_.warn("the program started no CUDA driver in any process: nothing was counted");
      const bool ends = interrupted(result.signal) || crashed ||
                        (application_ && mpi_ends_replay(outcome_, run_number, runs_, observer_));
      whole_ = whole_ && !ends;
      if (run_number + 1 == runs_ || !application_ || ends)
        if (const Status taken = evaluator_->take(); !taken) observer_.warn(taken.error().message);
      return !ends;
    }

    void finish() {
      if (group_ == 0) {
        outcome_.seen = 0;
        for (const nvidia::MeasuredLaunch& launch : launches_) outcome_.seen += launch.samples_seen();
        if (begun_ > outcome_.seen && outcome_.exit_code != 0)
          observer_.warn(begun_ - outcome_.seen == 1
                             ? "the last launch before the end has no values: the program ended before it was run again"
                             : fmt::format("the last {} launches before the end have no values: the "
                                           "program ended before they were run again",
                                           begun_ - outcome_.seen));
        outcome_.seen = std::max(outcome_.seen, begun_);
      }
      std::set<std::string> names;
      for (const nvidia::MeasuredLaunch& launch : launches_)
        if (names.size() < Outcome::kMostNames) names.insert(launch.dispatch.kernel);
      outcome_.seen_kernels.assign(names.begin(), names.end());
      PassResult result = rows(launches_, metrics_, *evaluator_, multiplex_);
      result.pass = group_;
      if (multiplex_) warn_incomplete(launches_, metrics_, config_.passes, observer_);
      if (whole_) warn_missing(result, observer_);  // else the user already knows why values are missing
      if (group_ == 0) {
        outcome_.measured = result.dispatches.size();
        uint64_t passed = 0;
        for (const nvidia::MeasuredLaunch& launch : launches_)
          if (launch.selected) passed += launch.samples_seen();
        outcome_.left_out = passed > outcome_.measured ? passed - outcome_.measured : 0;
      }
      if (group_ == 0 && !multiplex_) tell_collectives(launches_, observer_);
      if (!multiplex_) note_extrapolated(launches_, *evaluator_, result, observer_);
      if (!result.dispatches.empty())
        if (const Status done = observer_.pass_done(result); !done) observer_.warn(done.error().message);
    }

    const Host& host_;
    const size_t group_;
    const std::vector<std::string>& metrics_;
    const CollectRequest& request_;
    Observer& observer_;
    Outcome& outcome_;
    Host::Config config_;
    bool multiplex_ = false, application_ = false;
    size_t runs_ = 1;
    std::vector<std::pair<std::string, std::string>> settings_;
    std::vector<std::unique_ptr<SpoolFolder>> spools_;
    std::unique_ptr<nvidia::Evaluator> evaluator_;
    std::vector<nvidia::MeasuredLaunch> launches_;
    uint64_t begun_ = 0;
    bool whole_ = true;  // every run finished
  };

  // Launches of NCCL that kernel replay passed over (capture/source/cuda/counter/range_profiler.cpp).
  static void tell_collectives(const std::vector<nvidia::MeasuredLaunch>& launches, Observer& observer) {
    uint64_t count = 0;
    std::string name;
    for (const nvidia::MeasuredLaunch& launch : launches) {
      if (!launch.selected || launch.dispatch.index != ~uint64_t{0} ||
          !vendor::is_collective_kernel(launch.dispatch.kernel))
        continue;
      count += launch.samples_seen();
      if (name.empty()) name = launch.dispatch.kernel.substr(0, launch.dispatch.kernel.find('('));
    }
    if (count == 0) return;
    observer.warn(fmt::format(
        "{} launch{} of collectives ({}) {} not measured: run again, {} would wait for ranks that do not run theirs "
        "again; --iteration-multiplexing measures every kernel in its one run",
        count, count == 1 ? "" : "es", name, count == 1 ? "is" : "are", count == 1 ? "it" : "they"));
  }
  // Counts that cannot differ between launches of one kernel and shape, and do.
  static void note_extrapolated(const std::vector<nvidia::MeasuredLaunch>& launches, const nvidia::Evaluator& evaluator,
                                PassResult& result, Observer& observer) {
    std::vector<std::string> shapes;
    for (const nvidia::MeasuredLaunch& launch : launches)
      if (evaluator.values(launch) != nullptr) shapes.push_back(launch.dispatch.kernel + '\n' + launch.shape);
    result.extrapolated = nvidia::extrapolated(result.counters, result.values, shapes);
    if (result.extrapolated.empty()) return;
    std::string names;
    for (size_t i = 0; i < result.extrapolated.size() && i < 3; ++i)
      names += (i > 0 ? ", " : "") + result.extrapolated[i];
    if (result.extrapolated.size() > 3) names += fmt::format(" and {} more", result.extrapolated.size() - 3);
    observer.warn(fmt::format(
        "{} of {} counts differ between equal launches, so CUPTI extrapolated them from a part of the units (or the "
        "kernels' work differs): {}; --exact counts them whole",
        result.extrapolated.size(), result.counters.size(), names));
  }

  static bool interrupted(int signal) {
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
  }

  static Status move_images(const std::string& from, const std::string& to) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(from, error))
      if (entry.path().extension() == ".image") {
        std::filesystem::rename(entry.path(), std::filesystem::path(to) / entry.path().filename(), error);
        if (error) return fail("{}: {}", entry.path().string(), error.message());
      }
    return {};
  }

  static bool same_launches(const std::vector<nvidia::MeasuredLaunch>& first,
                            const std::vector<nvidia::MeasuredLaunch>& again, size_t run, Observer& observer) {
    const size_t common = std::min(first.size(), again.size());
    for (size_t i = 0; i < common; ++i)
      if (first[i].dispatch.kernel != again[i].dispatch.kernel || first[i].shape != again[i].shape) {
        observer.warn(fmt::format("run {} launched {} ({}) as dispatch {}, the first run {} ({})", run + 1,
                                  again[i].dispatch.kernel, again[i].shape, i, first[i].dispatch.kernel,
                                  first[i].shape));
        return false;
      }
    if (first.size() == again.size()) return true;
    observer.warn(fmt::format("run {} launched {} kernels, the first run {}", run + 1, again.size(), first.size()));
    return false;
  }

  static PassResult rows(const std::vector<nvidia::MeasuredLaunch>& launches, const std::vector<std::string>& metrics,
                         const nvidia::Evaluator& evaluator, bool multiplex) {
    PassResult result;
    result.counters = metrics;
    const auto duration = static_cast<size_t>(std::find(metrics.begin(), metrics.end(), kDuration) - metrics.begin());
    // Multiplexed values of a shape differ by which launches were combined. Their spread is the error of each value.
    std::map<std::string, std::vector<const std::vector<double>*>> groups;
    std::vector<const std::string*> keys;
    for (const nvidia::MeasuredLaunch& launch : launches) {
      const std::vector<double>* const values = evaluator.values(launch);
      if (values == nullptr) continue;
      ObservedDispatch dispatch = launch.dispatch;
      if (duration < values->size() && std::isfinite((*values)[duration]))
        dispatch.end = dispatch.start + static_cast<int64_t>((*values)[duration]);
      result.dispatches.push_back(std::move(dispatch));
      result.values.insert(result.values.end(), values->begin(), values->end());
      if (multiplex) {
        const auto [group, fresh] = groups.try_emplace(launch.dispatch.kernel + '\n' + launch.shape);
        group->second.push_back(values);
        keys.push_back(&group->first);
      }
    }
    if (!multiplex) return result;
    std::map<const std::string*, std::vector<double>> spreads;
    for (const auto& [key, members] : groups) {
      std::vector<double>& spread = spreads[&key];
      for (size_t m = 0; m < metrics.size(); ++m) {
        double sum = 0, squares = 0;
        for (const auto* values : members) sum += (*values)[m];
        const double count = static_cast<double>(members.size()), mean = sum / count;
        for (const auto* values : members) squares += ((*values)[m] - mean) * ((*values)[m] - mean);
        spread.push_back(members.size() < 2 ? std::numeric_limits<double>::quiet_NaN()
                                            : std::sqrt(squares / (count - 1)));
      }
    }
    for (const std::string* key : keys) {
      const std::vector<double>& spread = spreads[key];
      result.deviations.insert(result.deviations.end(), spread.begin(), spread.end());
    }
    return result;
  }

  // Warns about ranges that CUPTI counted without giving values; their cells are empty.
  static void warn_missing(const PassResult& result, Observer& observer) {
    struct Count {
      size_t dispatches = 0, incomplete = 0;
      std::set<size_t> counters;
    };
    std::map<int64_t, Count> gpus;
    for (size_t d = 0; d < result.dispatches.size(); ++d) {
      Count& count = gpus[result.dispatches[d].gpu];
      ++count.dispatches;
      bool whole = true;
      for (size_t m = 0; m < result.counters.size(); ++m)
        if (std::isnan(result.values[d * result.counters.size() + m])) {
          whole = false;
          count.counters.insert(m);
        }
      count.incomplete += whole ? 0 : 1;
    }
    for (const auto& [gpu, count] : gpus)
      if (count.incomplete != 0)
        observer.warn(fmt::format("GPU {}: CUPTI gave no value of {} of the {} counters for {} of {} dispatches", gpu,
                                  count.counters.size(), result.counters.size(), count.incomplete, count.dispatches));
  }

  static void warn_incomplete(const std::vector<nvidia::MeasuredLaunch>& launches,
                              const std::vector<std::string>& metrics, size_t passes, Observer& observer) {
    struct Count {
      size_t seen = 0, measured = 0;
    };
    std::map<std::string, Count> kernels;
    for (const nvidia::MeasuredLaunch& launch : launches) {
      if (!launch.selected) continue;
      Count& count = kernels[launch.dispatch.kernel];
      count.seen += launch.samples_seen();
      count.measured += launch.measured;
    }
    // In the first round, each pass is held over up to eight launches.
    std::string lost;
    for (size_t i = 0; i < metrics.size() && i < 8; ++i) lost += (i > 0 ? ", " : "") + metrics[i];
    if (metrics.size() > 8) lost += fmt::format(" and {} more", metrics.size() - 8);
    for (const auto& [kernel, count] : kernels)
      if (count.measured == 0)
        observer.warn(fmt::format("{}: {} launches are too few for {} passes ({} are always enough); lost for it: {} "
                                  "(-k with kernel replay measures it)",
                                  kernel, count.seen, passes, 8 * passes, lost));
  }
};

}  // namespace

std::unique_ptr<Provider> make_nvidia_provider() {
  return std::make_unique<NvidiaProvider>();
}

}  // namespace tacho::counter

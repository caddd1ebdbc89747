// Collects counters the way rocprofv3 does (counters.h).
#include "cli/personalities/rocprofv3/counters.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <tuple>

#include "base/text/name_filter.h"
#include "counter/to_trace.h"

namespace tacho::cli::rocprofv3 {

namespace {

class Collected : public counter::Observer {
 public:
  explicit Collected(const std::function<void(std::string_view)>& say) : say_(say) {}
  void run_begins(std::span<const size_t>, size_t, size_t) override {}
  void note(std::string_view) override {}
  void warn(std::string_view sentence) override { say_(sentence); }
  void target_output(int, std::string_view) override {}
  void progress(uint64_t, uint64_t) override {}
  Status pass_done(const counter::PassResult& result) override {
    results.push_back(result);
    return {};
  }
  std::vector<counter::PassResult> results;

 private:
  const std::function<void(std::string_view)>& say_;
};

Status make_filter(const CounterPlan& plan, NameFilter& filter) {
  char why[256];
  for (const auto& [side, option, text] :
       {std::tuple(NameFilter::Side::kInclude, "kernel-include-regex", &plan.include),
        std::tuple(NameFilter::Side::kExclude, "kernel-exclude-regex", &plan.exclude)})
    if (!filter.set(side, text->c_str(), why, sizeof why))
      return fail("--{} '{}' is not a regular expression: {}", option, *text, why);
  return {};
}

// "[1-3],[5]" or "2".
Result<std::vector<counter::Filter::Range>> parse_iterations(const std::vector<std::string>& texts) {
  std::vector<counter::Filter::Range> ranges;
  for (const std::string& text : texts)
    for (size_t at = 0; at < text.size();) {
      if (text[at] == '[' || text[at] == ']' || text[at] == ',' || text[at] == ' ') {
        ++at;
        continue;
      }
      counter::Filter::Range range;
      const char* const end = text.data() + text.size();
      auto [next, error] = std::from_chars(text.data() + at, end, range.first);
      range.last = range.first;
      if (error == std::errc() && next != end && *next == '-') {
        const auto second = std::from_chars(next + 1, end, range.last);
        next = second.ptr;
        error = second.ec;
      }
      if (error != std::errc() || range.first == 0 || range.last < range.first)
        return fail("--kernel-iteration-range '{}': expected numbers from 1 and ranges, as in [1-3],[5]", text);
      ranges.push_back(range);
      at = static_cast<size_t>(next - text.data());
    }
  return ranges;
}

}  // namespace

namespace {

// The rules of upstream's launcher: kernels are replayed for counters alone.
Status check_replay(const InputJob& job) {
  if (!job.given.on("kernel-replay-beta-enabled"))
    return fail("--replay-mode kernel needs --kernel-replay-beta-enabled");
  if (!job.counts()) return fail("--replay-mode kernel replays kernels for counters; give them with --pmc");
  for (const char* option : {"att", "advanced-thread-trace", "att-no-intercept", "pc-sampling-beta-enabled"})
    if (job.given.on(option))
      return fail("--replay-mode kernel and --{} exclude each other: give them in two runs", option);
  return {};
}

}  // namespace

Result<std::optional<CounterPlan>> plan_counters(const InputJob& job) {
  const Given& given = job.given;
  const bool replay = given.value("replay-mode") == "kernel";
  if (replay) TACHO_TRY(check_replay(job));
  if (!job.counts()) return std::optional<CounterPlan>();
  if (given.has("pmc") && !job.counter_groups.empty())
    return fail("pmc and pmc_groups exclude each other: pmc is one pass, pmc_groups are several");
  const bool grouped = !replay && !given.has("pmc");
  const std::string_view option = grouped ? "pmc_groups" : "--pmc";
  auto chosen = counter::choose_device("");
  if (!chosen) return fail("{}: {}", option, chosen.error().message);
  CounterPlan result;
  result.chosen = std::move(*chosen);
  const counter::Provider& provider = *result.chosen.provider;
  // In the fewest passes, as every dispatch gets all of them: also where the device replays kernels for all passes of
  // one plan, and another plan would be another run of the program.
  const bool together = grouped || (replay && provider.replays_by_default());
  std::vector<std::vector<std::string>> groups = job.counter_groups;
  if (groups.empty()) groups.push_back(given.list("pmc"));
  if (together) {
    for (size_t i = 1; i < groups.size(); ++i) groups[0].insert(groups[0].end(), groups[i].begin(), groups[i].end());
    groups.resize(1);
  }
  for (const std::vector<std::string>& group : groups) {
    auto plan = provider.plan(result.chosen.device, group);
    if (!plan) return fail("{}: {}; rocprofv3 --list-avail lists those that it has", option, plan.error().message);
    if (plan->passes.size() > 1 && !together)
      return fail("--pmc: {} need {} passes on {}, and a --pmc is one; give them in several --pmc, or let `tacho "
                  "profile` plan the passes",
                  fmt::join(group, " "), plan->passes.size(), result.chosen.device.name);
    for (counter::PlannedPass& pass : plan->passes) {
      // Level passes keep their counter's name; the others are numbered over all groups.
      if (pass.name.starts_with("pmc_perf_")) pass.name = fmt::format("pmc_perf_{}", result.plan.passes.size());
      result.plan.passes.push_back(std::move(pass));
    }
    result.plan.unavailable.insert(result.plan.unavailable.end(), plan->unavailable.begin(), plan->unavailable.end());
  }
  TACHO_TRY(provider.ready());
  if (replay && result.plan.passes.size() > 1) {
    if (!provider.can_replay_kernels())
      return fail("--replay-mode kernel: {} cannot run a kernel again with its memory put back; leave the option out, "
                  "and each --pmc is a run of its own",
                  result.chosen.device.name);
    result.replay = counter::Replay::kKernel;
  }
  result.include = given.value("kernel-include-regex");
  result.exclude = given.value("kernel-exclude-regex");
  OwnNameFilter filter;
  TACHO_TRY(make_filter(result, filter));
  TACHO_ASSIGN(result.iterations, parse_iterations(given.list("kernel-iteration-range")));
  result.iterations_text = fmt::format("{}", fmt::join(given.list("kernel-iteration-range"), ","));
  result.regions = given.on("selected-regions");
  if (result.regions && !provider.obeys_regions())
    return fail("--selected-regions with --pmc: on {} kernels are counted wherever they are launched; leave it out, or "
                "choose kernels with --kernel-include-regex and --kernel-iteration-range",
                result.chosen.device.name);
  if (given.has("collection-period"))
    return fail("--collection-period with --pmc: kernels that are counted run one by one and take other times, so a "
                "period means nothing; choose kernels with --kernel-iteration-range or --selected-regions");
  return std::optional<CounterPlan>(std::move(result));
}

namespace {

// Takes the values from dispatches that the filters leave out. The dispatches stay: they ran, and the filters are for
// counters alone. Returns how many keep their values.
Result<size_t> apply_filters(const CounterPlan& plan, std::vector<counter::PassResult>& results) {
  OwnNameFilter filter;
  TACHO_TRY(make_filter(plan, filter));
  size_t kept = 0;
  for (counter::PassResult& result : results) {
    std::map<std::string, uint64_t> iteration;
    const auto wanted = [&](const std::string& kernel) {
      if (!filter.wants(kernel.c_str())) return false;
      const uint64_t number = ++iteration[kernel];
      return plan.iterations.empty() ||
             std::any_of(plan.iterations.begin(), plan.iterations.end(),
                         [&](const auto& range) { return number >= range.first && number <= range.last; });
    };
    for (size_t row = 0; row < result.dispatches.size(); ++row)
      if (wanted(result.dispatches[row].kernel))
        ++kept;
      else
        for (size_t column = 0; column < result.counters.size(); ++column)
          result.value(row, column) = std::numeric_limits<double>::quiet_NaN();
  }
  return kept;
}

// Why no dispatch has values, though the program launched kernels.
std::string nothing_counted(const CounterPlan& plan, const std::vector<counter::PassResult>& results,
                            const counter::Outcome& outcome) {
  const std::string launched = counter::launched_kernels(outcome);
  if (plan.regions &&
      std::all_of(results.begin(), results.end(), [](const auto& each) { return each.dispatches.empty(); }))
    return fmt::format("no kernel ran while roctxProfilerResume() was in force; the program launched {}", launched);
  std::string filters;
  const auto add = [&](std::string_view option, std::string_view value) {
    if (!value.empty()) filters += fmt::format("{}--{} {}", filters.empty() ? "" : " and ", option, value);
  };
  add("kernel-include-regex", plan.include);
  add("kernel-exclude-regex", plan.exclude);
  add("kernel-iteration-range", plan.iterations_text);
  if (filters.empty()) return {};
  return fmt::format("no dispatch passed {}, so there are no counters; the program launched {}", filters, launched);
}

}  // namespace

tl::expected<int, launch::LaunchError> collect_counters(const CounterPlan& plan,
                                                        const std::vector<std::string>& command,
                                                        const std::string& trace,
                                                        const std::function<void(std::string_view)>& say) {
  Collected observer(say);
  counter::CollectRequest request;
  request.command = command;
  request.replay = plan.replay;
  if (plan.regions) request.filter.regions = counter::Regions{"--selected-regions", "no roctxProfilerResume()"};
  const auto folder = std::filesystem::path(trace).parent_path().string();
  request.folder = folder.empty() ? "." : folder;
  // Providers that replay by default put everything into one plan that one run can hold.
  if (plan.replay == counter::Replay::kKernel && plan.chosen.provider->replays_by_default())
    say(fmt::format(
        "--replay-mode kernel: {} cannot count all of these in one run, as counters of links and of kernels "
        "exclude each other; the program runs {} times",
        plan.chosen.device.name, plan.plan.passes.size()));
  const auto outcome = plan.chosen.provider->collect(plan.chosen.device, plan.plan, request, observer);
  if (!outcome) return launch::fail_with(outcome);
  TACHO_ASSIGN(const size_t kept, apply_filters(plan, observer.results));
  if (kept == 0 && outcome->seen > 0 && !outcome->explained)
    if (const std::string why = nothing_counted(plan, observer.results, *outcome); !why.empty()) say(why);
  TACHO_TRY(counter::write_counter_trace(trace, plan.chosen.device, command, observer.results));
  return outcome->exit_code;
}

Result<std::optional<SamplingPlan>> plan_sampling(const Given& given) {
  const bool gate = given.on("pc-sampling-beta-enabled");
  int parts = 0;
  std::string missing;
  for (const char* option : {"pc-sampling-unit", "pc-sampling-method", "pc-sampling-interval"}) {
    if (given.has(option))
      ++parts;
    else
      missing += fmt::format("{}--{}", missing.empty() ? "" : ", ", option);
  }
  if (parts == 0 && !gate) return std::optional<SamplingPlan>();
  if (!gate) return fail("PC sampling needs --pc-sampling-beta-enabled");
  if (!missing.empty()) return fail("PC sampling needs {} too", missing);
  SamplingPlan plan;
  plan.how.method = given.value("pc-sampling-method");
  plan.how.unit = given.value("pc-sampling-unit");
  const std::string interval = given.value("pc-sampling-interval");
  const auto [end, error] = std::from_chars(interval.data(), interval.data() + interval.size(), plan.how.interval);
  if (error != std::errc() || end != interval.data() + interval.size() || plan.how.interval == 0)
    return fail("--pc-sampling-interval '{}' is not a whole number from 1 on", interval);
  if (plan.how.unit != (plan.how.method == "host_trap" ? "time" : "cycles"))
    return fail("--pc-sampling-unit {}: the unit of {} is {}", plan.how.unit, plan.how.method,
                plan.how.method == "host_trap" ? "time" : "cycles");
  for (const char* option : {"selected-regions", "collection-period"})
    if (given.has(option) && (option == std::string_view("collection-period") || given.on(option)))
      return fail("--{} with --pc-sampling-method: samples are taken from the program's start to its end; leave it out",
                  option);
  if (given.has("pmc"))
    return fail("--pmc and --pc-sampling-method exclude each other: the GPU does one of them at a time");
  auto chosen = counter::choose_device("");
  if (!chosen) return fail("--pc-sampling-method: {}", chosen.error().message);
  if (!chosen->provider->chooses_pc_sampling())
    return fail("--pc-sampling-method: {} takes no PC samples this way{}", chosen->device.name,
                chosen->provider->can_sample_pc() ? "; `tacho profile -b 21` takes them" : "");
  TACHO_TRY(chosen->provider->ready());
  plan.chosen = std::move(*chosen);
  return std::optional<SamplingPlan>(std::move(plan));
}

tl::expected<std::pair<std::shared_ptr<const counter::SampledRun>, int>, launch::LaunchError> collect_samples(
    const SamplingPlan& plan, const std::vector<std::string>& command, const std::string& trace,
    const std::function<void(std::string_view)>& say) {
  Collected observer(say);
  counter::CollectRequest request;
  request.command = command;
  const auto folder = std::filesystem::path(trace).parent_path().string();
  request.folder = folder.empty() ? "." : folder;
  request.pc_samples = true;
  request.pc_sampling = plan.how;
  const auto outcome = plan.chosen.provider->collect(plan.chosen.device, {}, request, observer);
  if (!outcome) return launch::fail_with(outcome);
  counter::PassResult kernels;
  if (outcome->sampled)
    for (const counter::SampledRun::Ran& ran : outcome->sampled->dispatches) kernels.dispatches.push_back(ran.dispatch);
  TACHO_TRY(counter::write_counter_trace(trace, plan.chosen.device, command, {&kernels, 1}));
  return std::pair(outcome->sampled, outcome->exit_code);
}

std::string available_counters() {
  const auto chosen = counter::choose_device("");
  if (!chosen) return "  none: " + chosen.error().message + "\n";
  std::string out = fmt::format("  {}\n", chosen->device.name);
  for (const counter::CounterInfo& each : chosen->provider->counters(chosen->device))
    out += fmt::format("  {:<32} {}\n", each.name, each.description);
  return out;
}

}  // namespace tacho::cli::rocprofv3

// The table of `tacho profile`'s options (options.h).
#include "cli/profile/options.h"

#include "cli/shared/chosen_ranks.h"
#include "cli/shared/command_line.h"
#include "counter/provider.h"

namespace tacho::cli::profiling {
namespace {

using options::at;
using options::checked;
using options::heading;
using options::optional_value;
using options::shows_default;

constexpr std::string_view kWhere = "Where it goes";
constexpr std::string_view kWhat = "What is collected (default: everything that the device's metrics need)";
constexpr std::string_view kHow = "How";
constexpr std::string_view kLists = "Lists (need no program and no device)";
constexpr std::string_view kOther = "Of rocprof-compute";

// Scripts pass an empty text if their variable is unset; it must not mean "everything".
std::string check_given(const std::string& text) {
  return text.empty() ? "an empty text was given" : "";
}

constexpr options::OptionRow<ProfileArguments> kOptions[] = {
    heading<ProfileArguments>(kWhere),
    {"-n,--name", at<&ProfileArguments::name>, "workload name: the folder is ./workloads/<name>/<device or rank>",
     "NAME"},
    {"--output-directory", at<&ProfileArguments::output_directory>,
     "exactly this folder; %hostname% %gpumodel% %rank% %env{NAME}% are filled in", "DIR", "", checked(check_given)},
    {"-p,--path", at<&ProfileArguments::path>, "deprecated: as --output-directory", "DIR", "", checked(check_given)},
    {"--subpath", at<&ProfileArguments::subpath>, "deprecated, with --path: node_name or gpu_model is appended", "",
     "gpu node_name gpu_model"},
    {"--overwrite", at<&ProfileArguments::overwrite>,
     "remove what earlier runs left in the folder; otherwise this run is added"},
    {"--format-rocprof-output", at<&ProfileArguments::format>, "csv (one row a dispatch) or rocpd (one row a counter)",
     "", "csv rocpd", shows_default()},
    {"--retain-rocpd-output", at<&ProfileArguments::retain_rocpd>, "with rocpd: keep the database of each pass"},
    heading<ProfileArguments>(kWhat),
    {"-b,--block", at<&ProfileArguments::blocks>, "blocks, tables or metrics: 2, 11.2, 11.2.3, lds, valu-utilization",
     "ID"},
    {"--set", at<&ProfileArguments::set>, "a set of metrics that fits in one pass (--list-sets)", "SET", "",
     checked(check_given)},
    {"-k,--kernel", at<&ProfileArguments::kernels>, "only kernels whose name contains one of these", "NAME", "",
     checked(check_given)},
    {"-d,--dispatch", at<&ProfileArguments::dispatches>, "only these dispatches of the run, from 0: 3, 0:9", "N"},
    {"--torch-trace", at<&ProfileArguments::torch_trace>, "record which operators of PyTorch launched the kernels"},
    {"--no-roof", at<&ProfileArguments::no_roof>, "nothing for the roofline"},
    {"--no-source", at<&ProfileArguments::no_source>, "with -b 21: keep no lines of source beside the samples"},
    {"--roof-only", at<&ProfileArguments::roof_only>, "only what the roofline needs"},
    {"--bench-only,--roofline-bench-only", at<&ProfileArguments::bench_only>,
     "only measure the roofs, into roofline.csv; no program runs"},
    {"--pc-sampling", at<&ProfileArguments::pc_sampling>, "also PC samples (block 21), in a run of their own"},
    {"--ids", at<&ProfileArguments::ids>, "what numbers mean: 3.3, or seed as in the users' documents", "", "3.3 seed",
     shows_default()},
    {"--config-dir", at<&ProfileArguments::config_dirs>, "folder with metric YAML of your own", "DIR"},
    heading<ProfileArguments>(kHow),
    {"--device", at<&ProfileArguments::device>, "GPU number, virtual or cpu (default: GPU 0, else virtual)", "DEVICE"},
    {"--replay", at<&ProfileArguments::replay>},  // option_rows() fills in the rest
    {"--iteration-multiplexing",
     [](ProfileArguments& a, const std::string& text) -> Status {
       a.multiplexing = text.empty() ? "kernel_launch_params" : text;
       return {};
     },
     "spread the passes over the launches of each kernel: kernel or kernel_launch_params (default)", "POLICY", "",
     optional_value()},
    {"--cache-control", at<&ProfileArguments::cache_control>,
     "NVIDIA: all empties the L2 before each measured kernel (default "
     "where kernels are replayed), none leaves it",
     "", "all none"},
    {"--exact", at<&ProfileArguments::exact>,
     "NVIDIA: further passes for counts that CUPTI would extrapolate from a part of the units"},
    {"--instances", at<&ProfileArguments::instances>,
     "AMD: keep the value of each die, shader engine and channel, too (perfmon/)"},
    {"--pc-sampling-method", at<&ProfileArguments::sampling_method>,
     "AMD, with PC samples: stochastic, by the hardware (MI300 on, its default), or host_trap", "",
     "stochastic host_trap"},
    {"--pc-sampling-interval", at<&ProfileArguments::sampling_interval>,
     "AMD: cycles (stochastic, default 1048576) or microseconds (host_trap, 100) between samples", "N", "",
     options::within(1, 1 << 30)},
    {"--max-time", at<&ProfileArguments::max_time>,
     "virtual GPU: interpret only part of the work-groups when it would take longer (s)", "SECONDS", "",
     checked(check_seconds)},
    {"-q,--quiet", at<&ProfileArguments::quiet>, "no lines of ours, a progress bar on a terminal"},
    {kRanksNames, at<&ProfileArguments::ranks>, kRanksHelp, "LIST"},
    {"--dry-run", at<&ProfileArguments::dry_run>, "say which passes would be made; run nothing"},
    {"-V,--verbose", at<&ProfileArguments::verbose>, "accepted, changes nothing"},
    heading<ProfileArguments>(kLists),
    {"--list-available-metrics,--list-metrics",
     [](ProfileArguments& a, const std::string& text) -> Status {
       a.list_metrics = true;
       a.list_metrics_arch = text;
       return {};
     },
     "blocks, tables and metrics", "ARCH", "", optional_value()},
    {"--list-blocks",
     [](ProfileArguments& a, const std::string& text) -> Status {
       a.list_blocks = true;
       a.list_blocks_arch = text;
       return {};
     },
     "blocks and their short names", "ARCH", "", optional_value()},
    {"--list-sets", at<&ProfileArguments::list_sets>, "the sets that --set takes"},
    {"--arch", at<&ProfileArguments::arch>,
     "of this architecture: gfx942, sm_90, virtual, cpu (default: the device here)", "ARCH"},
    {"-s,--specs", at<&ProfileArguments::specs>, "what is known about this machine and its device"},
    heading<ProfileArguments>(kOther),
    {"--no-native-tool", at<&ProfileArguments::no_native_tool>, "accepted: tacho has one way of collecting"},
    {"--attach-pid", at<&ProfileArguments::attach_pid>, "refused: counters need the program's start", "PID"},
    {"--attach-duration-msec", at<&ProfileArguments::attach_duration>, "belongs to --attach-pid", "MS"},
    {"--experimental", at<&ProfileArguments::experimental>,
     "allows --torch-trace and --pc-sampling under the name rocprof-compute"},
};

}  // namespace

std::span<const options::OptionRow<ProfileArguments>> option_rows() {
  // Providers may have their own way of replaying: --replay accepts it, --help describes it.
  static std::string help =
      "kernel: each kernel again with its memory put back (NVIDIA: the default); application: the program again";
  static std::string choices = "kernel application";
  static const std::vector<options::OptionRow<ProfileArguments>> kRows = [] {
    for (const auto& provider : counter::providers())
      if (const auto own = provider->own_replay()) {
        help += fmt::format("; {}: {}", own->name, own->text);
        choices += fmt::format(" {}", own->name);
      }
    std::vector<options::OptionRow<ProfileArguments>> rows(std::begin(kOptions), std::end(kOptions));
    for (options::OptionRow<ProfileArguments>& row : rows)
      if (row.names == "--replay") {
        row.help = help;
        row.choices = choices;
      }
    return rows;
  }();
  return kRows;
}

}  // namespace tacho::cli::profiling

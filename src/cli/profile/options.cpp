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

constexpr options::Row<Arguments> kOptions[] = {
    heading<Arguments>(kWhere),
    {"-n,--name", at<&Arguments::name>, "workload name: the folder is ./workloads/<name>/<device or rank>", "NAME"},
    {"--output-directory", at<&Arguments::output_directory>,
     "exactly this folder; %hostname% %gpumodel% %rank% %env{NAME}% are filled in", "DIR", "", checked(check_given)},
    {"-p,--path", at<&Arguments::path>, "deprecated: as --output-directory", "DIR", "", checked(check_given)},
    {"--subpath", at<&Arguments::subpath>, "deprecated, with --path: node_name or gpu_model is appended", "",
     "gpu node_name gpu_model"},
    {"--overwrite", at<&Arguments::overwrite>,
     "remove what earlier runs left in the folder; otherwise this run is added"},
    {"--format-rocprof-output", at<&Arguments::format>, "csv (one row a dispatch) or rocpd (one row a counter)", "",
     "csv rocpd", shows_default()},
    {"--retain-rocpd-output", at<&Arguments::retain_rocpd>, "with rocpd: keep the database of each pass"},
    heading<Arguments>(kWhat),
    {"-b,--block", at<&Arguments::blocks>, "blocks, tables or metrics: 2, 11.2, 11.2.3, lds, valu-utilization", "ID"},
    {"--set", at<&Arguments::set>, "a set of metrics that fits in one pass (--list-sets)", "SET", "",
     checked(check_given)},
    {"-k,--kernel", at<&Arguments::kernels>, "only kernels whose name contains one of these", "NAME", "",
     checked(check_given)},
    {"-d,--dispatch", at<&Arguments::dispatches>, "only these dispatches of the run, from 0: 3, 0:9", "N"},
    {"--torch-trace", at<&Arguments::torch_trace>, "record which operators of PyTorch launched the kernels"},
    {"--no-roof", at<&Arguments::no_roof>, "nothing for the roofline"},
    {"--no-source", at<&Arguments::no_source>, "with -b 21: keep no lines of source beside the samples"},
    {"--roof-only", at<&Arguments::roof_only>, "only what the roofline needs"},
    {"--ids", at<&Arguments::ids>, "what numbers mean: 3.3, or seed as in the users' documents", "", "3.3 seed",
     shows_default()},
    {"--config-dir", at<&Arguments::config_dirs>, "folder with metric YAML of your own", "DIR"},
    heading<Arguments>(kHow),
    {"--device", at<&Arguments::device>, "GPU number, virtual or cpu (default: GPU 0, else virtual)", "DEVICE"},
    {"--replay", at<&Arguments::replay>},  // option_rows() fills in the rest
    {"--iteration-multiplexing",
     [](Arguments& a, const std::string& text) -> Status {
       a.multiplexing = text.empty() ? "kernel_launch_params" : text;
       return {};
     },
     "spread the passes over the launches of each kernel: kernel or kernel_launch_params (default)", "POLICY", "",
     optional_value()},
    {"--cache-control", at<&Arguments::cache_control>,
     "NVIDIA: all empties the L2 before each measured kernel (default "
     "where kernels are replayed), none leaves it",
     "", "all none"},
    {"--exact", at<&Arguments::exact>,
     "NVIDIA: further passes for counts that CUPTI would extrapolate from a part of the units"},
    {"--instances", at<&Arguments::instances>,
     "AMD: keep the value of each die, shader engine and channel, too (perfmon/)"},
    {"--pc-sampling-method", at<&Arguments::sampling_method>,
     "AMD, with -b 21: stochastic, by the hardware (MI300 on, its default), or host_trap", "", "stochastic host_trap"},
    {"--pc-sampling-interval", at<&Arguments::sampling_interval>,
     "AMD: cycles (stochastic, default 1048576) or microseconds (host_trap, 100) between samples", "N", "",
     options::within(1, 1 << 30)},
    {"--max-time", at<&Arguments::max_time>,
     "virtual GPU: interpret only part of the work-groups when it would take longer (s)", "SECONDS", "",
     checked(check_seconds)},
    {"-q,--quiet", at<&Arguments::quiet>, "no lines of ours, a progress bar on a terminal"},
    {kRanksNames, at<&Arguments::ranks>, kRanksHelp, "LIST"},
    {"--dry-run", at<&Arguments::dry_run>, "say which passes would be made; run nothing"},
    {"-V,--verbose", at<&Arguments::verbose>, "accepted, changes nothing"},
    heading<Arguments>(kLists),
    {"--list-available-metrics,--list-metrics",
     [](Arguments& a, const std::string& text) -> Status {
       a.list_metrics = true;
       a.list_metrics_arch = text;
       return {};
     },
     "blocks, tables and metrics", "ARCH", "", optional_value()},
    {"--list-blocks",
     [](Arguments& a, const std::string& text) -> Status {
       a.list_blocks = true;
       a.list_blocks_arch = text;
       return {};
     },
     "blocks and their short names", "ARCH", "", optional_value()},
    {"--list-sets", at<&Arguments::list_sets>, "the sets that --set takes"},
    {"--arch", at<&Arguments::arch>, "of this architecture: gfx942, sm_90, virtual, cpu (default: the device here)",
     "ARCH"},
    {"-s,--specs", at<&Arguments::specs>, "what is known about this machine and its device"},
    heading<Arguments>(kOther),
    {"--no-native-tool", at<&Arguments::no_native_tool>, "accepted: tacho has one way of collecting"},
    {"--attach-pid", at<&Arguments::attach_pid>, "refused: counters need the program's start", "PID"},
    {"--attach-duration-msec", at<&Arguments::attach_duration>, "belongs to --attach-pid", "MS"},
    {"--experimental", at<&Arguments::experimental>, "allows --torch-trace under the name rocprof-compute"},
};

}  // namespace

std::span<const options::Row<Arguments>> option_rows() {
  // Providers may have their own way of replaying: --replay accepts it, --help describes it.
  static std::string help =
      "kernel: each kernel again with its memory put back (NVIDIA: the default); application: the program again";
  static std::string choices = "kernel application";
  static const std::vector<options::Row<Arguments>> kRows = [] {
    for (const auto& provider : counter::providers())
      if (const auto own = provider->own_replay()) {
        help += fmt::format("; {}: {}", own->name, own->text);
        choices += fmt::format(" {}", own->name);
      }
    std::vector<options::Row<Arguments>> rows(std::begin(kOptions), std::end(kOptions));
    for (options::Row<Arguments>& row : rows)
      if (row.names == "--replay") {
        row.help = help;
        row.choices = choices;
      }
    return rows;
  }();
  return kRows;
}

}  // namespace tacho::cli::profiling

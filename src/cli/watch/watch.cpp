// `tacho watch [options] -- program` and `tacho watch PID`: counts and sampled durations of a program's work, live,
// without a recording.
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "analysis/stats.h"
#include "attach/choice.h"
#include "attach/target.h"
#include "base/files/output_claim.h"
#include "base/files/temporary.h"
#include "cli/command.h"
#include "cli/files/open_trace.h"
#include "cli/output/browser.h"
#include "cli/shared/command_line.h"
#include "cli/shared/time_text.h"
#include "cli/target/process_options.h"
#include "report/output.h"
#include "report/sections.h"
#include "watch/live/watch_hosts.h"
#include "watch/page.h"
#include "watch/running.h"
#include "watch/session.h"

namespace tacho::cli {
namespace {

struct WatchRequest {
  watch::WatchOptions options;
  std::string format = "text", output, prometheus, otlp, graph_shares, budget = "1%";
  double interval = 0;
  size_t top = 10;
  bool quiet = false, overwrite = false, counts_only = false, page = false;
  attach::ProcessChoice choice;  // of programs that run
  double duration = 0;
  bool patch_entries = false;
  std::string from;   // watches elsewhere
  std::string title;  // what is watched, for people

  bool chooses() const {
    return !choice.numbers.empty() || !choice.names.empty() || !choice.cgroups.empty() || !choice.containers.empty();
  }
  std::string keep, after, keep_memory, files;
  std::vector<std::string> triggers;
  int max_files = -1;
};

// --keep and what belongs to it.
Status read_keep(WatchRequest& request) {
  if (request.keep.empty()) {
    for (const auto& [given, option] :
         {std::pair(!request.triggers.empty(), "--trigger"), std::pair(!request.after.empty(), "--after"),
          std::pair(!request.keep_memory.empty(), "--keep-memory"), std::pair(!request.files.empty(), "--files"),
          std::pair(request.max_files >= 0, "--max-files")})
      if (given) return fail("{} belongs to --keep: give --keep 30s, too", option);
    return {};
  }
  watch::KeepOptions keep;
  const auto seconds = [](const std::string& text, std::string_view option, double least) -> Result<double> {
    const auto ns = parse_moment("+" + text, 0, 0, option);
    if (!ns || static_cast<double>(*ns) < least * 1e9)
      return fail("{} {}: write a time, such as 30s or 2min", option, text);
    return static_cast<double>(*ns) * 1e-9;
  };
  TACHO_ASSIGN(keep.seconds, seconds(request.keep, "--keep", 0.1));
  if (!request.after.empty()) {
    TACHO_ASSIGN(keep.after_s, seconds(request.after, "--after", 0));
  }
  if (!request.keep_memory.empty()) {
    TACHO_ASSIGN(keep.bytes, parse_size(request.keep_memory));
  }
  if (request.max_files >= 0) keep.most_files = static_cast<uint64_t>(request.max_files);
  keep.folder = request.files;
  if (!request.triggers.empty()) keep.triggers.clear();
  for (const std::string& text : request.triggers) {
    TACHO_ASSIGN(watch::KeepTrigger trigger, watch::parse_keep_trigger(text));
    keep.triggers.push_back(std::move(trigger));
  }
  request.options.keep = std::move(keep);
  return {};
}

// "1%", "0.5 %", "0.01": a share from 0 to below 1.
Result<double> parse_budget(std::string text) {
  const std::string given = text;
  const bool percent = text.ends_with('%');
  if (percent) text.pop_back();
  while (text.ends_with(' ')) text.pop_back();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (percent) value /= 100;
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0 && value < 1))
    return fail("--budget {}: give a share of the program's pace, as in 1% or 0.5%", given);
  return value;
}

// What kernels take on average in a trace.
Result<watch::KernelTimes> read_kernel_times(const std::string& file) {
  TACHO_ASSIGN(const std::shared_ptr<const trace::Trace> trace, open_trace(file));
  TACHO_ASSIGN(const std::vector<analysis::StatRow> rows, analysis::statistics(*trace, analysis::By::kKernel));
  watch::KernelTimes times;
  times.file = file;
  for (const analysis::StatRow& row : rows)
    if (row.count > row.unknown) times.mean[row.name] = row.mean;
  if (times.mean.empty()) return fail("--graph-shares {}: no kernel in it has a time", file);
  return times;
}

// "127.0.0.1:9400", "localhost:9400", ":9400", "9400".
Result<uint16_t> parse_address(std::string_view text) {
  std::string_view port = text;
  if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    const std::string_view host = text.substr(0, colon);
    if (!host.empty() && host != "127.0.0.1" && host != "localhost")
      return fail("--prometheus {}: tacho serves this machine alone: 127.0.0.1:PORT; let a proxy show it to others",
                  text);
    port = text.substr(colon + 1);
  }
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size())
    return fail("--prometheus {}: give 127.0.0.1:PORT, PORT from 0 (any free one) to 65535", text);
  return number;
}

// Where JSON lines and tables go: a file, standard output ("-"), or standard error, since standard output is the
// program's.
class Lines {
 public:
  Status open(const WatchRequest& request) {
    if (request.output.empty() || request.output == "-") {
      stream_ = request.output == "-" ? report::Stream::kOut : report::Stream::kError;
      return {};
    }
    TACHO_TRY(may_write(request.output, request.overwrite));
    file_.open(request.output, std::ios::out | std::ios::trunc);
    if (!file_) return fail("{}: {}", request.output, strerror(errno));
    to_file_ = true;
    return {};
  }
  void put(const std::string& text) {
    if (!to_file_) {
      report::put(text, stream_);
      report::flush_output();
      return;
    }
    file_ << text;
    file_.flush();
  }
  // Why not everything was written, if so.
  Status end(const std::string& name) {
    if (to_file_ && !file_) return fail("{}: not everything could be written: {}", name, strerror(errno));
    return {};
  }
  bool to_file() const { return to_file_; }
  report::Stream stream() const { return stream_; }

 private:
  bool to_file_ = false;
  report::Stream stream_ = report::Stream::kError;
  std::ofstream file_;
};

std::string words_of(const WatchRequest& request) {
  std::string words = request.title;
  for (const std::string& word : request.options.command) words += (words.empty() ? "" : " ") + word;
  return words;
}

// What stands behind the headline about times: waits are the host's, and always timed.
std::string_view times_text(const watch::WatchSnapshot& snapshot) {
  bool counted = false;
  for (const watch::RowSums& row : snapshot.rows) {
    if (row.kind == event::WatchKind::kWait || row.kind == event::WatchKind::kAllocation || row.count == 0) continue;
    if (row.time()) return "; times are estimates from 1 of N operations";
    counted = true;
  }
  return counted ? "; kernels and copies were counted and not timed" : "";
}

std::string last_tables(const watch::WatchMoment& moment, const WatchRequest& request, const Lines& lines) {
  const report::Screen screen =
      lines.to_file() ? report::Screen{}
                      : report::screen_of(lines.stream() == report::Stream::kOut ? STDOUT_FILENO : STDERR_FILENO);
  report::Sections out({.width = screen.width, .colour = screen.colour, .long_lines = !screen.terminal, .indent = 2});
  out.line(fmt::format("tacho watch  {}", report::clean(words_of(request))));
  const watch::WatchSnapshot& snapshot = moment.snapshot;
  size_t users = 0;
  for (const watch::WatchedProcess& process : snapshot.processes) users += process.uses_devices ? 1 : 0;
  if (!moment.hosts.empty())
    out.sentence(fmt::format("sums of {} watch{}{}", moment.hosts.size(), moment.hosts.size() == 1 ? "" : "es",
                             times_text(snapshot)));
  else
    out.sentence(fmt::format("{} of {} process{}, {} of which used a device{}",
                             report::format_duration(snapshot.seconds * 1e9), snapshot.processes.size(),
                             snapshot.processes.size() == 1 ? "" : "es", users, times_text(snapshot)));
  const auto table = [&](const report::Answer& answer) {
    if (answer.rows.empty()) return;
    out.heading(answer.title);
    if (const size_t left = out.table(answer, request.top); left > 0)
      out.sentence(fmt::format("{} more row{}: --top 0 shows all.", left, left == 1 ? "" : "s"));
  };
  if (!moment.hosts.empty()) table(watch::host_answer(moment));
  table(watch::kernel_answer(snapshot));
  table(watch::graph_answer(snapshot, moment.graph_times));
  table(watch::other_answer(snapshot));
  if (users > 1 || !request.title.empty()) table(watch::process_answer(snapshot));
  out.line("");
  for (const std::string& sentence : watch::watch_sentences(moment, true)) out.sentence(sentence);
  return out.take();
}

// What the program would write to the terminal while the page is there. It is shown at the end.
class HeldOutput {
 public:
  Status hold(watch::WatchOptions& options) {
    for (const auto& [number, place] :
         {std::pair(STDOUT_FILENO, &options.stdout_fd), std::pair(STDERR_FILENO, &options.stderr_fd)}) {
      if (isatty(number) == 0) continue;
      if (!file_) {
        TACHO_ASSIGN(file_, TemporaryFile::create());
      }
      *place = file_.descriptor();
    }
    // Keys are for the page.
    if (isatty(STDIN_FILENO) != 0) {
      nothing_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
      options.stdin_fd = nothing_;
    }
    return {};
  }
  void show() {
    char buffer[65536];
    off_t at = 0;
    for (ssize_t size = 0; file_ && (size = pread(file_.descriptor(), buffer, sizeof buffer, at)) > 0; at += size)
      report::put(std::string_view(buffer, static_cast<size_t>(size)));
    report::flush_output();
  }
  ~HeldOutput() {
    if (nothing_ >= 0) close(nothing_);
  }
  HeldOutput() = default;
  HeldOutput(const HeldOutput&) = delete;
  HeldOutput& operator=(const HeldOutput&) = delete;

 private:
  TemporaryFile file_;
  int nothing_ = -1;
};

// Says where the sums are, or why they are not.
Status end_of_sums(const watch::WatchMoment& last, const WatchRequest& request) {
  if (!last.sums_problem.empty()) return fail("{}", last.sums_problem);
  if (!request.options.sums.empty() && !request.quiet) complain(kOk, request.options.sums);
  return {};
}

// Whether `r` was pressed since the last call; the page says what comes of it.
bool file_is_wanted(watch::WatchPage& page, const std::optional<watch::KeepOptions>& keep) {
  if (!page.asked_for_file()) return false;
  page.say(keep
               ? fmt::format("a file of the last {} and the next {} is on its way",
                             report::format_duration(keep->seconds * 1e9), report::format_duration(keep->after_s * 1e9))
               : "r writes a file of the last seconds, which are kept with --keep 30s");
  return keep.has_value();
}

int run_on_page(WatchRequest& request) {
  watch::WatchOptions& options = request.options;
  HeldOutput held;
  if (const Status ready = held.hold(options); !ready) return complain(kOwnError, ready.error().message);
  std::unique_ptr<watch::WatchPage> page;
  {
    auto opened = watch::WatchPage::open(words_of(request));
    if (!opened) return complain(kOwnError, opened.error().message);
    page = std::move(*opened);
  }
  options.step = [&] {
    if (!page || !page->keys()) return;
    page->draw_again();
    if (!options.keep) file_is_wanted(*page, options.keep);
    if (!page->closed()) return;
    page.reset();
    complain(kOk, "the program goes on; its tables follow at its end");
  };
  options.tick = [&](const watch::WatchMoment& moment) {
    if (page) page->draw(moment);
  };
  std::vector<std::string> said;
  options.wants_file = [&] { return page && file_is_wanted(*page, options.keep); };
  options.say = [&](const std::string& sentence) {
    if (!page) return static_cast<void>(complain(kOk, sentence));
    said.push_back(sentence);
    page->say(sentence);
  };
  const auto result = watch::watch(options);
  page.reset();
  held.show();
  for (const std::string& sentence : said) complain(kOk, sentence);
  if (!result) return complain(result.error().exit_code, result.error().message);
  if (!request.quiet) report::put(last_tables(result->last, request, Lines()), report::Stream::kError);
  if (const Status ended = end_of_sums(result->last, request); !ended)
    return complain(kOwnError, ended.error().message);
  return result->exit_code;
}

// Options of both forms.
Status complete(WatchRequest& request) {
  watch::WatchOptions& options = request.options;
  TACHO_ASSIGN(options.budget, parse_budget(request.budget));
  options.timing = !request.counts_only;
  if (!request.graph_shares.empty()) {
    TACHO_ASSIGN(options.graph_times, read_kernel_times(request.graph_shares));
  }
  if (!request.prometheus.empty()) {
    TACHO_ASSIGN(options.prometheus, parse_address(request.prometheus));
  }
  if (!request.otlp.empty()) {
    TACHO_ASSIGN(options.otlp, watch::parse_push_address(request.otlp));
    if (request.interval > 0) options.otlp_interval_s = request.interval;
  }
  if (request.output.ends_with(".tacho")) {
    TACHO_TRY(may_write(request.output, request.overwrite));
    options.sums = std::exchange(request.output, {});
  }
  options.title = words_of(request);
  TACHO_TRY(read_keep(request));
  options.say = [](const std::string& sentence) { complain(kOk, sentence); };
  const bool json = request.format == "json";
  if (request.page && options.view) return fail("--page and --view: choose the terminal or the browser");
  if (request.page && (json || !request.output.empty()))
    return fail("--page shows a page on the terminal: leave out -o, but for a .tacho, and --output-format json");
  options.interval_s = request.interval > 0 ? request.interval : json || request.page ? 1 : 0;
  options.host_code = request.page;
  return {};
}

// What is said while the program runs and at its end, but for a page.
class Report {
 public:
  explicit Report(WatchRequest& request) : request_(request), json_(request.format == "json") {}
  Status open() {
    TACHO_TRY(lines_.open(request_));
    request_.options.started = [this](const std::string& metrics, const std::string& page) {
      // Of a port that tacho chose, nobody knows otherwise.
      if (!metrics.empty() && (!request_.quiet || request_.prometheus.ends_with(":0")))
        complain(kOk, fmt::format("metrics for Prometheus at {}", metrics));
      if (page.empty()) return;
      complain(kOk, fmt::format("{} shows the watch", page));
      open_browser(page);
    };
    request_.options.tick = [this](const watch::WatchMoment& moment) {
      if (before_.generation != moment.snapshot.generation) before_ = moment.snapshot;  // a host came
      lines_.put((json_ ? watch::watch_json(moment, false) : watch::watch_line(before_, moment.snapshot)) + "\n");
      before_ = moment.snapshot;
    };
    return {};
  }
  Status end(const watch::WatchMoment& last) {
    if (json_)
      lines_.put(watch::watch_json(last, true) + "\n");
    else if (!request_.quiet || lines_.to_file())
      lines_.put(last_tables(last, request_, lines_));
    TACHO_TRY(lines_.end(request_.output));
    return end_of_sums(last, request_);
  }

 private:
  WatchRequest& request_;
  bool json_;
  Lines lines_;
  watch::WatchSnapshot before_;
};

int run_watched(WatchRequest& request) {
  if (const Status ready = complete(request); !ready) return complain(kOwnError, ready.error().message);
  if (request.page) return run_on_page(request);
  Report report(request);
  if (const Status opened = report.open(); !opened) return complain(kOwnError, opened.error().message);
  const auto result = watch::watch(request.options);
  if (!result) return complain(result.error().exit_code, result.error().message);
  if (const Status ended = report.end(result->last); !ended) return complain(kOwnError, ended.error().message);
  return result->exit_code;
}

// "process 4711 (python3.11)", "12 processes"
std::string title_of(const std::vector<pid_t>& processes) {
  if (processes.size() > 1) return fmt::format("{} processes", processes.size());
  const auto facts = attach::look_at(processes.front());
  return facts ? fmt::format("process {} ({})", facts->pid, facts->name) : fmt::format("process {}", processes.front());
}

// The page of programs that run: it takes nothing from them, and closing it ends the watch.
int run_running_on_page(WatchRequest& request, watch::RunningOptions& running) {
  auto opened = watch::WatchPage::open(words_of(request));
  if (!opened) return complain(kBadInput, opened.error().message);
  std::unique_ptr<watch::WatchPage> page = std::move(*opened);
  std::vector<std::string> said;
  running.entered = [&](const std::vector<std::string>& sentences) {
    said.insert(said.end(), sentences.begin(), sentences.end());
  };
  running.watch.step = [&] {
    if (!page->keys()) return;
    page->draw_again();
    if (!running.watch.keep) file_is_wanted(*page, running.watch.keep);
    if (page->closed()) kill(getpid(), SIGTERM);  // as from the terminal: tacho leaves in order
  };
  running.watch.tick = [&](const watch::WatchMoment& moment) { page->draw(moment); };
  running.watch.wants_file = [&] { return file_is_wanted(*page, running.watch.keep); };
  running.watch.say = [&](const std::string& sentence) {
    said.push_back(sentence);
    page->say(sentence);
  };
  const auto result = watch::watch_running(running);
  page.reset();
  for (const std::string& sentence : said) complain(kOk, sentence);
  if (!result) return complain(kBadInput, result.error().message);
  for (const std::string& warning : result->warnings) complain(kOk, warning);
  if (!request.quiet) report::put(last_tables(result->last, request, Lines()), report::Stream::kError);
  if (const Status ended = end_of_sums(result->last, request); !ended)
    return complain(kBadInput, ended.error().message);
  return kOk;
}

int run_running(WatchRequest& request) {
  if (const Status ready = complete(request); !ready) return complain(kBadInput, ready.error().message);
  const auto chosen = attach::choose(request.choice);
  if (!chosen) return complain(kBadInput, chosen.error().message);
  request.title = request.options.title = title_of(chosen->numbers);
  watch::RunningOptions running;
  running.processes = chosen->numbers;
  running.duration_s = request.duration;
  running.patch_entries = request.patch_entries;
  const attach::ProcessChoice& choice = request.choice;
  if (!choice.names.empty() || !choice.cgroups.empty() || !choice.containers.empty() || choice.children)
    running.meant = [&choice] {
      const auto now = attach::choose(choice);
      return now ? now->numbers : std::vector<pid_t>();
    };
  if (!request.page)
    for (const std::string& sentence : chosen->left_out) complain(kOk, sentence);
  const auto entered = [&](const std::vector<std::string>& sentences) {
    if (request.quiet) return;
    for (const std::string& sentence : sentences) complain(kOk, sentence);
  };
  if (request.page) {
    running.watch = request.options;
    return run_running_on_page(request, running);
  }
  Report report(request);
  if (const Status opened = report.open(); !opened) return complain(kBadInput, opened.error().message);
  running.watch = request.options;
  running.entered = entered;
  const auto result = watch::watch_running(running);
  if (!result) return complain(kBadInput, result.error().message);
  for (const std::string& warning : result->warnings) complain(kOk, warning);
  if (const Status ended = report.end(result->last); !ended) return complain(kBadInput, ended.error().message);
  return kOk;
}

// What --from cannot have: it starts and enters no program.
Status only_from(const WatchRequest& request) {
  for (const auto& [given, option] :
       {std::pair(!request.prometheus.empty(), "--prometheus"), std::pair(!request.otlp.empty(), "--otlp"),
        std::pair(!request.keep.empty(), "--keep"), std::pair(!request.graph_shares.empty(), "--graph-shares"),
        std::pair(request.counts_only, "--counts-only"), std::pair(request.patch_entries, "--patch-entries"),
        std::pair(request.output.ends_with(".tacho"), "-o FILE.tacho"),
        std::pair(request.chooses() || request.choice.children, "a choice of processes")})
    if (given) return fail("--from shows watches that run elsewhere: {} belongs to these", option);
  return {};
}

int run_from(WatchRequest& request) {
  if (const Status only = only_from(request); !only) return complain(kBadInput, only.error().message);
  auto addresses = watch::parse_host_addresses(request.from);
  if (!addresses) return complain(kBadInput, addresses.error().message);
  request.title = fmt::format("{} host{}", addresses->size(), addresses->size() == 1 ? "" : "s");
  if (const Status ready = complete(request); !ready) return complain(kBadInput, ready.error().message);
  watch::HostsOptions hosts;
  hosts.addresses = std::move(*addresses);
  hosts.title = request.title;
  hosts.duration_s = request.duration;
  hosts.view = request.options.view;
  std::unique_ptr<watch::WatchPage> page;
  Report report(request);
  if (request.page) {
    auto opened = watch::WatchPage::open(request.title);
    if (!opened) return complain(kBadInput, opened.error().message);
    page = std::move(*opened);
    hosts.interval_s = request.options.interval_s;
    hosts.tick = [&](const watch::WatchMoment& moment) { page->draw(moment); };
    hosts.step = [&] {
      if (!page->keys()) return;
      page->draw_again();
      if (page->closed()) kill(getpid(), SIGTERM);
    };
  } else {
    if (const Status opened = report.open(); !opened) return complain(kBadInput, opened.error().message);
    hosts.started = [&](const std::string& address) { request.options.started("", address); };
    if (request.options.interval_s > 0) {
      hosts.interval_s = request.options.interval_s;
      hosts.tick = request.options.tick;
    }
  }
  const auto last = watch::watch_hosts(hosts);
  page.reset();
  if (!last) return complain(kBadInput, last.error().message);
  if (request.page) {
    if (!request.quiet) report::put(last_tables(*last, request, Lines()), report::Stream::kError);
    return kOk;
  }
  const Status ended = report.end(*last);
  return ended ? static_cast<int>(kOk) : complain(kBadInput, ended.error().message);
}

}  // namespace

namespace {

// `running`: numbers of processes stand among the options, and no program follows.
void declare_options(CommandOptions& app, WatchRequest& request, bool running) {
  app.footer(
      "Examples:\n"
      "  tacho watch -- python3 serve.py                     tables at the end\n"
      "  tacho watch --interval 1 -- ./server                a line each second, too\n"
      "  tacho watch --page -- ./server                      a page on the terminal: q close, s order, p freeze\n"
      "  tacho watch --view -- ./server                      the same in the browser\n"
      "  tacho watch --output-format json -o watch.jsonl -- ./server\n"
      "  tacho watch -o watch.tacho -- ./server              for days: sums of seconds, minutes, hours in 64 MB at most\n"
      "  tacho watch --keep 30s --trigger slow-step:20% -- python3 train.py\n"
      "  tacho watch --prometheus 127.0.0.1:9400 -- ./server\n"
      "  tacho watch --otlp http://127.0.0.1:4318 -- ./server\n"
      "  tacho watch 4711 --duration 5                       a program that runs already, and goes on\n"
      "  tacho watch --container 3f2a --page                 all processes of a container\n"
      "  tacho watch --from 127.0.0.1:9401,127.0.0.1:9402    the sum of two watches\n"
      "Nothing is recorded: programs keep sums in shared memory of a few megabytes, however long they run.\n"
      "Exit code: the program's own (128 + signal when a signal ended it); 125 tacho could not start it, "
      "126 not executable, 127 not found. Of programs that run: 0, or 1 and a sentence that says why not.");
  if (running)
    app.add_option("PID", request.choice.numbers, "numbers of processes that run").positive().expected(0, -1);
  else
    app.prefix_command("PID...");
  app.add_flag("--page", request.page, "a page on the terminal while the program runs; its output is shown at the end");
  app.add_option("--interval", request.interval, "a line every S seconds (JSON: every second by default)")
      .type_name("S")
      .between(0.1, 86400.0);
  app.add_option("--output-format", request.format, "text, or json: an object a line")
      .one_of({"text", "json"})
      .capture_default_str();
  app.add_option(
         "-o,--output", request.output,
         "lines and tables into this file; - for standard output (default: standard error). FILE.tacho: sums of "
         "seconds, minutes and hours, for tacho stats, diff and query")
      .type_name("FILE");
  app.add_flag("--overwrite", request.overwrite, "replace FILE");
  app.add_flag("--view", request.options.view, "a page in the browser while the program runs");
  app.add_option("--prometheus", request.prometheus, "serve metrics for Prometheus at this address")
      .type_name("127.0.0.1:PORT");
  app.add_option("--otlp", request.otlp,
                 "push metrics to this OpenTelemetry collector, OTLP/JSON by HTTP, every 10 s or every --interval")
      .type_name("http://HOST:PORT");
  app.add_option("--budget", request.budget, "share of the program's pace that timing may cost")
      .type_name("P%")
      .capture_default_str();
  app.add_option("--graph-shares", request.graph_shares,
                 "share the time of graphs among their kernels by what they take in this trace")
      .type_name("FILE.tacho");
  app.add_flag("--counts-only", request.counts_only, "count, and time nothing");
  app.add_option("--keep", request.keep,
                 "keep single operations of the last TIME (30s); a trigger writes them to a .tacho")
      .type_name("TIME");
  app.add_option("--trigger", request.triggers,
                 "what writes a file: signal:USR1 (sent to tacho), crash, out-of-memory, program (these four by "
                 "default), marker:TEXT, slow-step:20%, slow-step:20%:RANGE, idle:50%, new-kernel, memory:90%, "
                 "collective:100ms; may be repeated")
      .type_name("WHAT");
  app.add_option("--after", request.after, "with --keep: and this time after the trigger (default 5s)")
      .type_name("TIME");
  app.add_option("--keep-memory", request.keep_memory, "with --keep: shared memory for it (default 64M)")
      .type_name("SIZE");
  app.add_option("--files", request.files, "with --keep: folder of the files (default: the current one)")
      .type_name("FOLDER");
  app.add_option("--max-files", request.max_files, "with --keep: write at most N files (default 10)").type_name("N");
  app.add_option("--top", request.top, "rows of each table; 0 = all").capture_default_str();
  app.add_flag("-q,--quiet", request.quiet, "no tables at the end");
  app.open_group("Watches that run already");
  app.add_option("--from", request.from,
                 "show the sum of watches that serve --prometheus, here or through a tunnel; several behind commas")
      .type_name("HOST:PORT");
  app.open_group("Programs that run already");
  declare_process_options(app, request.choice);
  app.add_option("--duration", request.duration, "leave them after S seconds (default: at Ctrl-C)")
      .type_name("S")
      .between(0.1, 1e9);
  app.add_flag("--patch-entries", request.patch_entries,
               "see calls by any pointer: change the first instructions of the drivers' functions while tacho stays");
}

bool is_number(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

int watch_running_ones(int argc, char** argv) {
  CommandOptions app("Watch programs that run already: exact counts, times of 1 of N.", "tacho watch");
  WatchRequest request;
  declare_options(app, request, true);
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  return run_running(request);
}

}  // namespace

int run_watch(int argc, char** argv) {
  // Each second takes a snapshot and leaves small sums. Above this size malloc gives memory back at once; by itself it
  // raises the limit to the size of what was freed, and sums lie scattered over a heap that grows for days.
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  CommandOptions app("Watch a program's kernels, copies and waits at little cost: exact counts, times of 1 of N.",
                     "tacho watch");
  WatchRequest request;
  declare_options(app, request, false);
  if (const auto code = parse_options(app, argc, argv, kOwnError)) return *code;
  const std::vector<std::string> rest = app.remaining();
  if (!request.from.empty()) {
    if (!rest.empty())
      return complain(kBadInput, "--from shows watches that run elsewhere: leave out the program or the numbers");
    return run_from(request);
  }
  const bool separated =
      std::any_of(argv, argv + argc, [](const char* word) { return std::string_view(word) == "--"; });
  if (!rest.empty() && is_number(rest.front()) && separated)
    return complain(kOwnError, fmt::format("{} is the number of a program that runs, and another program stands behind "
                                           "--: watch one of them",
                                           rest.front()));
  if (rest.empty() ? request.chooses() : is_number(rest.front()) || (request.chooses() && rest.front() != "--"))
    return watch_running_ones(argc, argv);
  if (request.chooses() || request.choice.children || request.duration > 0)
    return complain(kOwnError, "--name, --cgroup, --container, --children and --duration are for programs that run "
                               "already: leave out the program behind --");
  if (request.patch_entries)
    return complain(kOwnError, "--patch-entries is for programs that run already: start the program, and then tacho "
                               "watch --patch-entries PID");
  auto command = target_command(app);
  if (!command) return complain(kOwnError, command.error().message);
  request.options.command = std::move(*command);
  return run_watched(request);
}

}  // namespace tacho::cli

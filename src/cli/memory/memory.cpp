// `tacho memory FILE [OTHER]`: who holds memory, at its peak, at moments, at the end, and in two runs.
#include "analysis/memory/memory.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "analysis/memory/answers.h"
#include "cli/command.h"
#include "cli/files/open_trace.h"
#include "cli/shared/command_line.h"
#include "cli/shared/time_text.h"
#include "report/answer.h"
#include "report/output.h"
#include "report/sections.h"
#include "report/text.h"

namespace tacho::cli {
namespace {

using analysis::MemoryBy;
using analysis::MemoryPlace;
using analysis::MemoryReport;
using report::Answer;

struct MemoryRequest {
  std::string file, other, by = "owner", format = "text", table, device;
  std::vector<std::string> at;
  std::optional<size_t> top;
  MemoryBy owners = MemoryBy::kOwner;
};

struct MemoryRun {
  std::shared_ptr<const trace::Trace> trace;
  MemoryReport report;
  int64_t zero = 0;
};

// Owners that owner_curves tells apart unless --top says otherwise.
constexpr size_t kMostCurves = 12;

// The places that are shown: the one that was asked for, or all.
Result<std::vector<const MemoryPlace*>> chosen_places(const MemoryReport& report, const std::string& word) {
  std::vector<const MemoryPlace*> places;
  std::string names;
  for (const MemoryPlace& place : report.places) {
    if (place.name.starts_with(word) || place.name.find(": " + word) != std::string::npos) places.push_back(&place);
    names += (names.empty() ? "" : "; ") + place.name;
  }
  if (places.empty() && !word.empty()) return fail("--device {}: no memory of that name; there is: {}", word, names);
  return places;
}

Result<MemoryRun> read_memory(const std::string& file, const std::vector<std::string>& at, size_t buckets,
                              bool owner_curves = false) {
  MemoryRun run;
  TACHO_ASSIGN(run.trace, open_events(file));
  const auto [first, last] = run.trace->time_range();
  run.zero = first;
  analysis::MemoryOptions options{.buckets = buckets, .moments = {}, .owner_curves = owner_curves};
  for (const std::string& text : at) {
    TACHO_ASSIGN(const int64_t moment, parse_moment(text, first, last, "--at"));
    options.moments.push_back(moment);
  }
  if (!std::is_sorted(options.moments.begin(), options.moments.end()))
    return fail("--at: moments stand in the order of time");
  TACHO_ASSIGN(run.report, analysis::memory_report(*run.trace, options));
  return run;
}

void add_memory(report::Sections& out, const MemoryPlace& place, const MemoryRun& run, const MemoryRequest& request) {
  constexpr size_t kRows = 12;
  const size_t most = request.top.value_or(kRows);
  out.heading(place.name);
  if (const std::string line = analysis::memory_sparkline(place); !line.empty()) {
    out.line("  " + line);
    const std::string left = report::format_duration(static_cast<double>(run.report.from - run.zero)),
                      right = report::format_duration(static_cast<double>(run.report.to - run.zero));
    out.line("  " + report::padded_right(left, place.curve.size() - std::min(place.curve.size(), right.size())) +
             right);
  }
  for (const std::string& sentence : analysis::memory_sentences(place, run.zero)) out.sentence(sentence);
  const auto table = [&](const Answer& answer) {
    out.line("");
    out.sentence(answer.title + ":");
    if (const size_t left = out.table(answer, most); left > 0)
      out.sentence(fmt::format("{} more row{}: --top 0 shows all.", left, left == 1 ? "" : "s"));
  };
  Answer holders = analysis::memory_holders(place, request.owners, request.at.size());
  Answer unfreed = analysis::memory_unfreed(place, request.owners);
  // Without their modules, equal layers would be rows that look alike.
  if (request.owners == MemoryBy::kOwner &&
      (out.leaves_out(holders, "Module", most) || out.leaves_out(unfreed, "Module", most))) {
    const size_t apart = holders.rows.size();
    holders = analysis::memory_holders(place, MemoryBy::kOwnerOfModules, request.at.size());
    unfreed = analysis::memory_unfreed(place, MemoryBy::kOwnerOfModules);
    if (holders.rows.size() < apart)
      holders.notes.push_back("Equal rows of several modules are one: --by module tells modules apart, as does a wider "
                              "terminal.");
  }
  holders.title = request.at.empty() ? "Who held the peak" : "Who held memory at the moments that --at names";
  table(holders);
  if (!unfreed.rows.empty()) table(unfreed);
  table(analysis::memory_lifetimes(place));
  const std::vector<std::string> findings = analysis::memory_findings(place, run.report);
  if (!findings.empty()) out.line("");
  for (const std::string& sentence : findings) out.painted_sentence(sentence, report::Paint::kYellow);
  const std::vector<std::string> doubts = analysis::memory_doubts(place, run.report);
  if (!doubts.empty()) out.line("");
  for (const std::string& sentence : doubts) out.sentence(sentence);
}

std::vector<Answer> memory_tables(const MemoryPlace& place, const MemoryRun& run, const MemoryRequest& request) {
  return {analysis::memory_holders(place, request.owners, request.at.size()),
          analysis::memory_unfreed(place, request.owners), analysis::memory_lifetimes(place),
          analysis::memory_curve(place, run.report.from, run.report.to, run.zero)};
}

// Places of a second run by their order among the shown.
int compare_memory(const MemoryRun& one, const MemoryRun& other, const MemoryRequest& request,
                   const report::ShowOptions& options) {
  const auto first = chosen_places(one.report, request.device), second = chosen_places(other.report, request.device);
  if (!first) return complain(kBadInput, first.error().message);
  if (!second) return complain(kBadInput, second.error().message);
  if (first->empty() || second->empty())
    return complain(kBadInput, fmt::format("{}: no allocations", first->empty() ? request.file : request.other));
  const MemoryPlace &a = *first->front(), &b = *second->front();
  Answer answer = analysis::memory_difference(a, b, request.owners);
  answer.notes.push_back(fmt::format("Peaks: {} of {}, {} of {}.", report::format_bytes(static_cast<double>(a.peak)),
                                     a.name, report::format_bytes(static_cast<double>(b.peak)), b.name));
  if (options.most != 0 && answer.rows.size() > options.most) {
    answer.notes.push_back(
        fmt::format("The first {} of {} rows; --top 0 shows all.", options.most, answer.rows.size()));
    answer.rows.resize(options.most);
  }
  report::show(answer, {.face = options.face});
  return kOk;
}

int show_memory(const MemoryRun& run, const MemoryRequest& request, const report::ShowOptions& options) {
  const auto places = chosen_places(run.report, request.device);
  if (!places) return complain(kBadInput, places.error().message);
  if (places->empty())
    return complain(kBadInput,
                    fmt::format("{}: no allocations; record them with tacho trace --memory, or read a snapshot "
                                "of PyTorch's _dump_snapshot()",
                                request.file));
  if (options.face == report::AnswerFormat::kText) {
    const report::Screen screen = report::screen_of(STDOUT_FILENO);
    report::Sections out({.width = screen.width, .colour = screen.colour, .long_lines = !screen.terminal, .indent = 2});
    for (const MemoryPlace* const place : *places) add_memory(out, *place, run, request);
    report::put(out.take());
    report::flush_output();
    return kOk;
  }
  if (options.face == report::AnswerFormat::kJson && request.table.empty()) {
    std::vector<Answer> answers = {analysis::memory_places(run.report, run.zero)};
    std::vector<std::string> notes;
    for (const MemoryPlace* const place : *places) {
      for (Answer& each : memory_tables(*place, run, request)) answers.push_back(std::move(each));
      for (std::string& note : analysis::memory_doubts(*place, run.report)) notes.push_back(place->name + ": " + note);
      for (std::string& note : analysis::memory_findings(*place, run.report))
        notes.push_back(place->name + ": " + note);
    }
    report::show_document(std::move(answers), notes);
    return kOk;
  }
  Answer answer;
  const std::string table = request.table.empty() ? "holders" : request.table;
  if (table == "places") answer = analysis::memory_places(run.report, run.zero);
  if (table == "owner_curves")
    answer = analysis::memory_owner_curves(*places->front(), request.owners, request.top.value_or(kMostCurves),
                                           run.report.from, run.report.to, run.zero);
  for (Answer& each : memory_tables(*places->front(), run, request))
    if (each.id == table) answer = std::move(each);
  if (places->size() > 1 && table != "places")
    answer.remarks.push_back(
        fmt::format("this is {}, one of several memories: --device chooses another", places->front()->name));
  report::show(answer, table == "owner_curves" ? report::ShowOptions{.face = options.face} : options);
  return kOk;
}

}  // namespace

int run_memory(int argc, char** argv) {
  CommandOptions app("Who holds the GPU's memory: the peak, what was never freed, fragmentation.", "tacho memory");
  MemoryRequest request;
  app.add_option("file", request.file, "trace, or a memory snapshot of PyTorch (.pickle)").required();
  app.add_option("other", request.other, "a second run: the owners of its peak are put beside the first one's");
  app.add_option("--by", request.by, "put owners together by line, module, operator or category")
      .one_of({"owner", "line", "module", "operator", "category"})
      .capture_default_str();
  app.add_option("--at", request.at,
                 "who holds memory at these moments in place of the peak: 25%, +1.5s (after the start), -200ms (before "
                 "the end)")
      .expected(1, 8);
  app.add_option("--device", request.device, "only the memory whose name begins so: \"GPU 0\"");
  app.add_option("--table", request.table, "csv, json: places, holders, unfreed, lifetimes, curve or owner_curves")
      .one_of({"places", "holders", "unfreed", "lifetimes", "curve", "owner_curves"});
  app.add_option("--output-format", request.format, "text, json or csv")
      .one_of({"text", "json", "csv"})
      .capture_default_str();
  app.add_option("--top", request.top, "only the first N rows of each table; 0 = all (default: 12 as text, else all)");
  app.footer("Examples:\n"
             "  tacho memory snapshot.pickle              the peak and its owners\n"
             "  tacho memory train.tacho --by line        by lines of the program\n"
             "  tacho memory before.pickle after.pickle   what a change did to the peak");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  request.owners = *analysis::parse_memory_by(request.by);
  const report::ShowOptions options = {.face = report::face_of(request.format), .most = request.top.value_or(0)};
  if (!request.table.empty() && options.face == report::AnswerFormat::kText)
    return complain(kBadInput, "--table goes with --output-format csv or json");
  if (!request.other.empty() && (!request.at.empty() || !request.table.empty()))
    return complain(kBadInput, "two runs are compared at their peaks: leave out --at and --table");
  const size_t buckets = options.face == report::AnswerFormat::kText ? 76 : 720;
  const auto one = read_memory(request.file, request.at, buckets, request.table == "owner_curves");
  if (!one) return complain(kBadInput, one.error().message);
  if (request.other.empty()) return show_memory(*one, request, options);
  const auto other = read_memory(request.other, {}, buckets);
  if (!other) return complain(kBadInput, other.error().message);
  return compare_memory(*one, *other, request, options);
}

}  // namespace tacho::cli

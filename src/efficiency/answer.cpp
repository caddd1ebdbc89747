// Puts efficiency beside times (answer.h).
#include "efficiency/answer.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "report/text.h"

namespace tacho::efficiency {

using report::Cell;
using report::Unit;

void add_columns(report::Answer& answer, std::span<const analysis::OperatorRow> rows, const Efficiency& efficiency,
                 size_t before) {
  if (!efficiency.any()) return;
  const size_t first = answer.columns.size();
  const std::vector<report::Answer::Column> columns = {
      {.name = "Flops"},
      {.name = "Bytes", .unit = Unit::kBytes},
      {.name = "Intensity", .title = "FLOP/B", .unit = Unit::kNumber, .leave_out = 9, .decimals = 1},
      {.name = "TeraflopsPerSecond", .title = "TFLOP/s", .unit = Unit::kNumber, .leave_out = 8},
      {.name = "TerabytesPerSecond", .title = "TB/s", .unit = Unit::kNumber, .leave_out = 8},
      {.name = "PercentOfRoof", .title = "% of roof", .unit = Unit::kPercent},
      {.name = "Bound", .title = "Bound", .leave_out = 1, .whole = true},
      {.name = "LostNs", .title = "Lost", .unit = Unit::kNs, .dash_zero = true},
      {.name = "Precision", .title = "Type", .leave_out = 9, .whole = true},
      {.name = "NotJudged", .title = "Not judged", .leave_out = 2, .whole = true}};
  answer.columns.insert(answer.columns.end(), columns.begin(), columns.end());
  answer.columns[first].unit = Unit::kNumber;
  bool unjudged = false;
  for (size_t i = 0; i < rows.size() && i < answer.rows.size(); ++i) {
    auto& cells = answer.rows[i];
    cells.resize(first);
    const OperatorWork* const work = efficiency.find(rows[i].name, rows[i].shapes, rows[i].phase);
    if (work == nullptr) {
      if (const UntoldLists* const lists = efficiency.find_untold(rows[i].name, rows[i].shapes, rows[i].phase)) {
        cells.resize(first + columns.size());
        cells.back() = Cell(std::string(to_string(lists->why)));
        unjudged = true;
      }
      continue;
    }
    const double seconds = static_cast<double>(work->ns) / 1e9;
    const bool judged = work->why == RoofDoubt::kJudged;
    unjudged = unjudged || !judged;
    cells.insert(cells.end(),
                 {work->flops, static_cast<int64_t>(std::llround(work->bytes)),
                  work->bytes > 0 ? Cell(work->flops / work->bytes) : Cell(), work->flops / seconds / 1e12,
                  work->bytes / seconds / 1e12, work->percent ? Cell(*work->percent) : Cell(),
                  work->percent ? Cell(std::string(work->compute_bound ? "compute" : "memory")) : Cell(),
                  judged ? Cell(static_cast<int64_t>(std::llround(*work->lost_ns))) : Cell(),
                  std::string(to_string(work->precision)), judged ? Cell() : Cell(std::string(to_string(work->why)))});
  }
  auto at = std::find(answer.shown.begin(), answer.shown.end(), before);
  for (const size_t column : {2u, 3u, 4u, 5u, 6u, 7u, 8u}) at = answer.shown.insert(at, first + column) + 1;
  if (unjudged) answer.shown.insert(at, first + 9);
  for (std::string& sentence : sentences(efficiency)) answer.notes.push_back(std::move(sentence));
  answer.remarks.insert(answer.remarks.end(), efficiency.remarks.begin(), efficiency.remarks.end());
}

void add_module_columns(report::Answer& answer, std::span<const analysis::OperatorRow> rows,
                        const Efficiency& efficiency, size_t before) {
  if (efficiency.rows.empty()) return;
  const size_t first = answer.columns.size();
  const std::vector<report::Answer::Column> columns = {
      {.name = "Flops", .unit = Unit::kNumber},
      {.name = "Bytes", .unit = Unit::kBytes},
      {.name = "TeraflopsPerSecond", .title = "TFLOP/s", .unit = Unit::kNumber, .leave_out = 8},
      {.name = "TerabytesPerSecond", .title = "TB/s", .unit = Unit::kNumber, .leave_out = 8},
      {.name = "PercentOfRoof", .title = "% of roof", .unit = Unit::kPercent},
      {.name = "LostNs", .title = "Lost", .unit = Unit::kNs, .dash_zero = true},
      {.name = "PercentJudged", .title = "% judged", .unit = Unit::kPercent, .leave_out = 1}};
  answer.columns.insert(answer.columns.end(), columns.begin(), columns.end());
  for (size_t i = 0; i < rows.size() && i < answer.rows.size(); ++i) {
    auto& cells = answer.rows[i];
    cells.resize(first);
    const analysis::RoofedWork& work = rows[i].roofed;
    if (work.ns <= 0) continue;
    const double time = static_cast<double>(work.ns), seconds = time / 1e9;
    cells.insert(cells.end(),
                 {work.flops, static_cast<int64_t>(std::llround(work.bytes)), work.flops / seconds / 1e12,
                  work.bytes / seconds / 1e12, 100 * work.roof / time,
                  static_cast<int64_t>(std::llround(std::max(0.0, time - work.roof))),
                  rows[i].total.ns > 0 ? Cell(100 * time / static_cast<double>(rows[i].total.ns)) : Cell()});
  }
  auto at = std::find(answer.shown.begin(), answer.shown.end(), before);
  for (const size_t column : {2u, 3u, 4u, 5u, 6u}) at = answer.shown.insert(at, first + column) + 1;
  answer.notes.emplace_back("% of roof and rates are those of the operators that are judged, % judged is their part of "
                            "GPU total.");
  for (std::string& sentence : sentences(efficiency)) answer.notes.push_back(std::move(sentence));
  answer.remarks.insert(answer.remarks.end(), efficiency.remarks.begin(), efficiency.remarks.end());
}

std::vector<std::string> sentences(const Efficiency& efficiency) {
  std::vector<std::string> out;
  if (!efficiency.any()) return out;
  out = efficiency.notes;
  if (!efficiency.roofs.empty()) out.push_back(efficiency.roofs);
  if (efficiency.whole_ns > 0 && !efficiency.rows.empty())
    out.push_back(fmt::format(
        "{} % of {} of GPU time {}is in operators with a model of their work.",
        report::format_fixed(
            100 * static_cast<double>(efficiency.modelled_ns) / static_cast<double>(efficiency.whole_ns), 1),
        report::format_duration(static_cast<double>(efficiency.whole_ns)), efficiency.sampled ? "with shapes " : ""));
  if (efficiency.utilisation && efficiency.steps >= 2)
    out.push_back(
        fmt::format("Matrix work of a step: {} TFLOP ({} steps of {}), {} % of what the data sheet's {} rate "
                    "would do in its time (model FLOPs utilisation).",
                    report::format_fixed(efficiency.matrix_flops / static_cast<double>(efficiency.steps) / 1e12, 2),
                    efficiency.steps, report::format_duration(efficiency.step_ns),
                    report::format_fixed(*efficiency.utilisation, 1), to_string(efficiency.main)));
  else if (efficiency.utilisation)
    out.push_back(fmt::format("Matrix work of the run: {} TFLOP, {} % of what the data sheet's {} rate would do in its "
                              "time (model FLOPs utilisation).",
                              report::format_fixed(efficiency.matrix_flops / 1e12, 2),
                              report::format_fixed(*efficiency.utilisation, 1), to_string(efficiency.main)));
  return out;
}

}  // namespace tacho::efficiency

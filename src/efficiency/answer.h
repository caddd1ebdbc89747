// Operators' efficiency as columns and sentences beside their times.
#pragma once

#include <span>

#include "analysis/operators/operators.h"
#include "efficiency/operator_work.h"
#include "report/answer.h"

namespace tacho::efficiency {

/// Appends columns to an answer whose rows are `rows`, before its column `before` for people, and what they rest on to
/// its notes and remarks. Nothing where no operator has a model and shapes.
void add_columns(report::Answer& answer, std::span<const analysis::OperatorRow> rows, const Efficiency& efficiency,
                 size_t before);

/// The same for rows by module or class, from what their operators have that were judged (OperatorRow::roofed).
void add_module_columns(report::Answer& answer, std::span<const analysis::OperatorRow> rows,
                        const Efficiency& efficiency, size_t before);

/// "34.1 % of 88.2 ms of GPU time is in operators with a model of their work.", and the model FLOPs utilisation of the
/// run, or of a step where steps are known.
std::vector<std::string> sentences(const Efficiency& efficiency);

}  // namespace tacho::efficiency

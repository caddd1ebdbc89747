// Independent parts of the CSV writer: number formats, statistics, agents.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/accumulate.h"
#include "base/csv.h"
#include "format/view/agents.h"
#include "format/view/names.h"
#include "trace/trace.h"

namespace tacho::format::csv {

/// A number of a statistics file: above 0.01 six decimals, else scientific with eight.
std::string statistic(double value);
/// A percentage: from 1 two decimals, above 0.01 four, else scientific with three.
std::string percentage(double value);
/// A counter's value: from 1 six decimals, else scientific with eight.
std::string counter_value(double value);

struct StatisticsRow {
  std::string name;
  analysis::Sums sums;
};
/// "Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev", longest total first.
/// Rows whose duration is not known count as calls only.
std::string statistics(std::vector<StatisticsRow> rows);

/// Its header, and one of its lines; `total`: ns, what percentages are of.
inline constexpr std::string_view kStatisticsHeader =
    "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\",\"StdDev\"\n";
void add_statistics(std::string& out, std::string_view name, const analysis::Sums& sums, double stddev,
                    double total);

/// The trace's known facts about an agent, by the names of agent_info's columns ("Cu_Count").
std::vector<std::pair<std::string_view, uint64_t>> agent_facts(const trace::Trace& trace, const Agent& agent);
std::string agent_info(const trace::Trace& trace, const Agents& agents);

}  // namespace tacho::format::csv

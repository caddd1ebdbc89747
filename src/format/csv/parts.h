// Parts of the CSV writer that stand alone: number formats, statistics, agents.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/accumulate.h"
#include "base/text/csv.h"
#include "trace/trace.h"
#include "walk/names/agents.h"
#include "walk/names/names.h"

namespace tacho::format::csv {

/// A number in a statistics file: six decimals above 0.01, else scientific with eight.
std::string statistic(double value);
/// A percentage: two decimals from 1 up, four above 0.01, else scientific with three.
std::string percentage(double value);
/// A counter's value: six decimals from 1 up, else scientific with eight.
std::string counter_value(double value);

struct StatisticsRow {
  std::string name;
  analysis::Sums sums;
};
/// "Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev", longest total first. Records of
/// unknown duration count only as calls.
std::string statistics(std::vector<StatisticsRow> rows);

/// The header of statistics(), and one of its lines; `total` is 100 % for the percentage, ns.
inline constexpr std::string_view kStatisticsHeader =
    "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\",\"StdDev\"\n";
void add_statistics(std::string& out, std::string_view name, const analysis::Sums& sums, double stddev, double total);

/// The trace's facts about an agent, by the names of agent_info's columns ("Cu_Count"). Omits unknown ones.
std::vector<std::pair<std::string_view, uint64_t>> agent_facts(const trace::Trace& trace, const walk::Agent& agent);
std::string agent_info(const trace::Trace& trace, const walk::Agents& agents);
/// process_info.csv, tacho's own: "Kind","Id","Facts" with the origin (format/import/origin.h) of the process, by its
/// pid, and of its agents, by Logical_Node_Id. It tells what rocprofv3's files have no place for.
std::string process_info(const trace::Trace& trace, const walk::Agents& agents, int64_t process);

}  // namespace tacho::format::csv

// Small runs made in memory for tests of formulas.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "metric/formula/program.h"
#include "workload/workload.h"

namespace tacho::metric::testing {

using Columns = std::map<std::string, std::vector<double>>;

/// A run with one kernel and these columns in pmc_perf; `levels` are further passes.
inline workload::Workload make_run(const Columns& columns, const std::map<std::string, std::string>& sysinfo = {},
                                   const std::map<std::string, Columns>& levels = {}) {
  workload::Workload run;
  run.path = "memory";
  run.kernels = {"kernel"};
  const size_t rows = columns.begin()->second.size();
  for (size_t r = 0; r < rows; ++r) run.dispatches.push_back({static_cast<int64_t>(r), 0, 0});
  const auto add = [&](const std::string& name, const Columns& of) {
    std::vector<std::string> names;
    for (const auto& [column, values] : of) names.push_back(column);
    auto table = workload::CounterTable::create(names, rows);
    size_t c = 0;
    for (const auto& [column, values] : of) std::copy(values.begin(), values.end(), table->data(c++));
    run.passes.push_back({name, std::move(*table)});
  };
  add("pmc_perf", columns);
  for (const auto& [name, of] : levels) add(name, of);
  for (const auto& [name, value] : sysinfo) run.sysinfo.set(name, value);
  return run;
}

/// The formula's value; the environment's workload is set to `run`.
inline Value evaluate(const workload::Workload& run, std::string_view text, Environment environment = {},
                      Context context = {}) {
  environment.workload = &run;
  Program program(environment);
  auto formula = parse_formula(text);
  if (!formula) {
    Value value;
    value.text = formula.error().message;
    return value;
  }
  const Program::Node node = program.add(*formula, context);
  program.run();
  return program.value(node);
}

}  // namespace tacho::metric::testing

// Formulas: any text parses or is refused with a sentence; parsed ones are evaluated on a small run without a crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "../metric/formula/runs.h"
#include "metric/formula/program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tacho::metric;
  static const tacho::workload::Workload run = testing::make_run(
      {{"A", {1, 2, 4}},
       {"B", {0, -1, 1e300}},
       {"TCC_HIT[0]", {1, 2, 3}},
       {"TCC_HIT[1]", {0, 0, 0}},
       {"GRBM_GUI_ACTIVE", {1, 2, 3}},
       {"SQ_WAVES", {1, 0, 2}},
       {"SQ_BUSY_CU_CYCLES", {5, 6, 7}},
       {"Start_Timestamp", {0, 1, 2}},
       {"End_Timestamp", {5, 5, 5}}},
      {{"num_xcd", "1"}, {"total_l2_chan", "2"}, {"cu_per_gpu", "104"}, {"max_waves_per_cu", "32"}, {"max_sclk", "0"}},
      {{"SQ_LEVEL_WAVES", {{"A", {1, 1, 1}}, {"SQ_ACCUM_PREV_HIRES", {3, 6, 9}}}}});
  if (size == 0) return 0;
  const uint8_t mode = data[0];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto formula = parse_formula(text);
  if (!formula) {
    if (formula.error().message.empty()) std::abort();
    return 0;
  }
  if (formula->steps.size() > 2000) return 0;
  Environment environment;
  environment.workload = &run;
  environment.sum_ratios = (mode & 1) != 0;
  environment.compat = (mode & 2) != 0;
  if ((mode & 4) != 0) environment.rows = std::vector<uint32_t>{0, 2};
  if ((mode & 8) != 0) environment.normalisation = "per_wave", environment.denominator = "SQ_WAVES";
  Program program(environment);
  const Context context{(mode & 16) != 0 ? "SQ_LEVEL_WAVES" : "", (mode & 32) != 0 ? 1 : -1};
  const Program::Node node = program.add(*formula, context, (mode & 64) != 0 ? FormulaOp::kAvg : FormulaOp::kNone);
  for (const Program::Node step : program.add_steps(*formula, context)) (void)step;
  program.run();
  const Value value = program.value(node);
  if (value.kind == Value::Kind::kNumber && value.number != value.number) std::abort();
  (void)program.inputs(*formula, context);
  return 0;
}

// What the program's own code did, for the page: operators and modules of PyTorch, lines and functions of call
// stacks, and how busy each sampled thread was over time. The numbers are those of `tacho stats --by operator`,
// `module`, `line` and `function`.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"
#include "view/run.h"

namespace tacho::view {

/// "operators": the trace has operators of a framework; "code": only functions of Python or call-stack samples; "":
/// none.
std::string_view code_view(const trace::Trace& trace);

/// {"gpu", "host": ns in all, "operators": [...], "modules": [...], "lines": [...], "functions": [...], "threads":
/// [...], "own": bool, "roofline"}. `modules` are classes, each with its modules in "rows". "kernels" of a row: [number
/// of the name, ns, count], longest first. "own": lines and functions are of the user's code alone. "roofline":
/// operator_roofline.h. Errors: damaged data.
Result<std::string> code_tables(Run& run);

}  // namespace tacho::view

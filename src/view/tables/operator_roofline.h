// Operators against their roofs, for the page's roofline: the figures of `tacho stats --by operator --input-shapes`.
#pragma once

#include "base/result.h"
#include "base/text/json_writer.h"
#include "view/run.h"

namespace tacho::view {

/// Puts a value: {"gpu": ns in all, "notes": [...], "count": of all points, "points": [{"name", "shapes", "phase",
/// "type", "matrix", "calls", "ns", "flops", "bytes", "peak": FLOP/s, "bandwidth": bytes/s, "percent", "bound", "lost",
/// "not_judged", "longest": [line, start, duration] of a kernel}, ...]}, longest first; unknown values are left out.
/// null where the trace has no shapes of inputs or no operator with a model. Errors: damaged data.
Status put_operator_roofline(JsonWriter& json, const Run& run);

}  // namespace tacho::view

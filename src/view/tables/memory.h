// Who holds memory, for the page: the tables and sentences of `tacho memory`, and live bytes over time by owner.
#pragma once

#include <string>

#include "base/result.h"
#include "view/run.h"

namespace tacho::view {

/// {"from", "to": ns since t0, "places": [{"name", "peak", "peak_at", "sentences", "findings", "doubts", "curve":
/// [[live, reserved or null], ...], "lifetimes": table, "by": [{"by": "owner" (of all modules), "holders": table,
/// "unfreed": table, "areas": [{"name", "names", "live"}, ...]}, ...]}, ...]}. A table is {"columns": [{"name",
/// "title", "unit"}, ...], "rows", "count": of all rows}. Errors: damaged data.
Result<std::string> memory_tables(const Run& run);

}  // namespace tacho::view

// SQL with which another engine answers the questions of `tacho ranks` from a Parquet dataset, for jobs too large for
// one machine.
#pragma once

#include <string>

#include "base/result.h"

namespace tacho::ranks {

enum class SqlEngine { kDuckDb, kClickHouse };

/// A script that makes the tables rank_time, arrival, collective, straggler and kind_of_collective of the dataset in
/// `folder` (format/parquet) and shows them. Tables of events that the dataset lacks count as empty. Errors: the folder
/// is no dataset, or holds no kernel and no message.
Result<std::string> dataset_sql(SqlEngine engine, const std::string& folder);

}  // namespace tacho::ranks

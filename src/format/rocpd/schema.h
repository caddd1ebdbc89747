// The SQL schema of rocpd databases, version 3.0: tables with a suffix for each recording, views without.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::format::rocpd {

/// CREATE TABLE statements; `suffix` is "_" + the guid with underscores.
std::string table_schema(const std::string& suffix, const std::string& guid);

struct ViewDefinition {
  std::string name;
  std::string select;
};
/// Views named like the tables without suffix; each covers all the given suffixes.
std::vector<ViewDefinition> plain_views(std::span<const std::string> suffixes);
/// Views over the plain views: kernels, regions, top, busy and so on.
std::vector<ViewDefinition> data_views();
/// The same over the plain views of a database of schema 4, after the views that show its tables as schema 3 has them.
/// `times_apart`: rows refer to their times in rocpd_timestamp, as in 4.0.
std::vector<ViewDefinition> data_views_of_schema_4(bool times_apart);

}  // namespace tacho::format::rocpd

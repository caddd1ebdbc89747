// The schema of rocpd databases, byte for byte: other tools and users' queries rely on it.
#include "format/rocpd/schema.h"

#include <gtest/gtest.h>

#include "format/golden_text.h"

namespace tacho::format::rocpd {
namespace {

TEST(RocpdSchema, IsSchemaSql) {
  const std::string suffixes[] = {"_SUFFIX"};
  std::string sql = table_schema(suffixes[0], "GUID");
  for (const std::vector<ViewDefinition>& views : {plain_views(suffixes), data_views()})
    for (const ViewDefinition& view : views) sql += "CREATE VIEW \"" + view.name + "\" AS " + view.select + ";\n";
  EXPECT_EQ(sql, golden_text("rocpd/schema.sql"));
}

}  // namespace
}  // namespace tacho::format::rocpd

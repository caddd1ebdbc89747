// The schema of .rpd files, byte for byte: other tools and users' queries rely on it.
#include "format/rpd/schema.h"

#include <gtest/gtest.h>

#include "format/golden_text.h"

namespace tacho::format::rpd {
namespace {

std::string schema(int version) {
  std::string sql = table_schema(version) + std::string(index_schema(version));
  for (const RpdView& view : views(version)) sql += "CREATE VIEW " + std::string(view.select) + ";\n";
  return sql;
}

TEST(RpdSchema, IsSchema2Sql) {
  EXPECT_EQ(schema(2), golden_text("rpd/schema2.sql"));
}

TEST(RpdSchema, IsSchema3Sql) {
  EXPECT_EQ(schema(3), golden_text("rpd/schema3.sql"));
}

}  // namespace
}  // namespace tacho::format::rpd

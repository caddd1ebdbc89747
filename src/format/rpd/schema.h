// The SQL schema of .rpd files: the tables and views that users' queries expect.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tacho::format::rpd {

struct RpdView {
  std::string_view name;
  std::string_view select;  // the text that follows CREATE VIEW, starting with the name
};

/// CREATE TABLE statements of schema version 2 or 3.
std::string table_schema(int version);
/// The views of a version, in the order in which upstream creates them. Version 2 has ktop; version 3 has stackframe,
/// napi and nop.
std::span<const RpdView> views(int version);
/// CREATE INDEX statements, to run after loading the rows.
std::string_view index_schema(int version);

}  // namespace tacho::format::rpd

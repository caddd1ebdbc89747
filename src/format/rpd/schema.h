// The SQL schema of .rpd files: tables and views as users' queries expect them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tacho::format::rpd {

struct ViewDefinition {
  std::string_view name;
  std::string_view select;  // the whole text behind CREATE VIEW, from the name on
};

/// CREATE TABLE statements of schema version 2 or 3.
std::string table_schema(int version);
/// The views of the version, in the order in which upstream creates them. Version 2 has ktop, 3 has
/// stackframe, napi, nop.
std::span<const ViewDefinition> views(int version);
/// CREATE INDEX statements for after loading.
std::string_view index_schema(int version);

}  // namespace tacho::format::rpd

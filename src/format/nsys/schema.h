// The SQL that makes nsys' tables (schema.sql).
#pragma once

#include <string_view>

namespace tacho::format {

extern const std::string_view kNsysSchema;

}  // namespace tacho::format

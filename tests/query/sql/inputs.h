// Small files of every kind that SQL is asked about, made by the tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "support/folder.h"

namespace tacho::query {

using test::Folder;

/// Two processes, three queues on two devices, 24 launches of four kernels (two of equal display name), copies,
/// markers, readings. Some durations are unknown, numbers reach from negative to huge, and chunks hold 8 rows.
void make_plain_trace(const std::string& path);
/// Random rows in every table, any column of which may hold anything that its type allows.
void make_wild_trace(const std::string& path, uint64_t seed);
/// No facts and no dimensions.
void make_empty_trace(const std::string& path);
/// The trace as an .rpd of schema 2 or 3 or as a rocpd database, with rows beside it that tacho never writes: gaps in
/// ids, references to nothing, negative and huge numbers.
void make_rpd(const std::string& trace, const std::string& path, int schema);
void make_rocpd(const std::string& trace, const std::string& path);

}  // namespace tacho::query

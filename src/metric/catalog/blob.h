// The compact form of the catalog that is linked into the binary: one string of bytes without pointers. It costs no
// relocations at start-up, and only the pages of the requested architecture are ever read.
//
//   "TCAT" version | section table | sections ... | string table | string pool
//
// Numbers are LEB128 varints; a text is its index in the string table (0 = ""), whose entries are offsets in the pool.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "metric/catalog/catalog.h"
#include "metric/catalog/rules.h"

namespace tacho::metric {

/// Encodes architectures, the catalogs of those of them that have metrics (in their order), and rules.
std::string encode_blob(std::span<const Architecture> architectures, std::span<const Catalog> catalogs,
                        const RuleBook& rules);

/// The architectures in the blob; fails on bytes that are not a blob of this version. Views point into `blob`.
Result<std::vector<Architecture>> decode_architectures(std::string_view blob);

/// The catalog of one of the blob's architectures; its text points into `blob`, which must outlive it.
Result<Catalog> decode_catalog(std::string_view blob, std::span<const Architecture> architectures,
                               std::string_view architecture);

Result<RuleBook> decode_rules(std::string_view blob);

}  // namespace tacho::metric

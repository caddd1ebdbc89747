// The compact form of the catalog that is linked into the binary: one string of bytes without pointers, so
// that it costs no relocations at start-up and only the pages of the architecture asked for are ever read.
//
//   "TCAT" version | section table | sections ... | string table | string pool
//
// Numbers are LEB128 varints; a text is its index in the string table (0 = ""), whose entries are offsets in
// the pool.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "metric/catalog/catalog.h"
#include "metric/catalog/rules.h"
#include "metric/catalog/yaml.h"

namespace tacho::metric {

struct BlobArchitecture {
  std::string_view name;
  std::string_view vendor;
  std::vector<std::string_view> user_names;
};

/// Encodes catalogs (one an architecture, in the order of `architectures`) and rules.
std::string encode_blob(std::span<const BlobArchitecture> architectures, std::span<const Catalog> catalogs,
                        const RuleBook& rules);

/// The architectures in the blob; fails on bytes that are no blob of this version. Views point into `blob`.
Result<std::vector<BlobArchitecture>> decode_architectures(std::string_view blob);

/// One architecture's catalog; its text points into `blob`, which must outlive it.
Result<Catalog> decode_catalog(std::string_view blob, std::string_view architecture);

Result<RuleBook> decode_rules(std::string_view blob);

}  // namespace tacho::metric

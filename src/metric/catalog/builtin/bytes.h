// The bytes that tacho_catalog_compiler makes from catalog/*/*.yaml at build time (blob.h describes them).
#pragma once

#include <cstddef>

namespace tacho::metric {

extern const unsigned char kEmbeddedCatalog[];
extern const size_t kEmbeddedCatalogSize;

}  // namespace tacho::metric

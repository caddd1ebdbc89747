// The bytes that tacho_catalog_compiler made of catalog/*/*.yaml at build time (blob.h says what is
// in them).
#pragma once

#include <cstddef>

namespace tacho::metric {

extern const unsigned char kEmbeddedCatalog[];
extern const size_t kEmbeddedCatalogSize;

}  // namespace tacho::metric

// Loaded objects and their pages, for use inside other people's processes.
#pragma once

#include <link.h>

#include <cstdint>

namespace tacho::capture {

/// The address of the function that the object itself exports by this name, nullptr if there is none. Asks no loader,
/// so it may be called within dl_iterate_phdr().
void* exported_by(const dl_phdr_info& object, const char* name);
/// True if the address lies in code of a loaded object.
bool is_code(const void* address);
/// PROT_ flags of the mapping that holds the address; -1 where there is none.
int rights_of(const void* address);

}  // namespace tacho::capture

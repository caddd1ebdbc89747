// NVTX 3 in a program that has initialised it before tacho came: its header puts a table of pointers to functions into
// each image of the program, which are null where no tool was there at the first call.
#pragma once

#include <link.h>

#include <cstddef>

namespace tacho::capture::nvtx {

struct LateTables {
  size_t led = 0;        ///< images whose tables lead to tacho
  size_t of_others = 0;  ///< images whose tables lead to another tool: they stay
  bool looked = true;    ///< false: the program's words cannot be looked at
};
/// Leads the tables of all images to tacho, and those that were led before stay so. For one thread at a time.
LateTables lead_tables();
/// Gives all back as they were; where NVTX has been initialised meanwhile, as it would have left them.
void lead_tables_back();
/// Whether the last lead_tables() has found a table in the image.
bool has_table(const dl_phdr_info& image);

}  // namespace tacho::capture::nvtx

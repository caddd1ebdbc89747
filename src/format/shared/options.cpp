// What an export tells the user (options.h).
#include "format/shared/options.h"

#include <algorithm>
#include <utility>

#include "walk/calls/call_index.h"

namespace tacho::format {

void ExportOptions::remark(std::string sentence) const {
  if (remarks != nullptr && std::find(remarks->begin(), remarks->end(), sentence) == remarks->end())
    remarks->push_back(std::move(sentence));
}

void ExportOptions::remark_forgotten(int64_t forgotten) const {
  if (forgotten > 0) remark(walk::forgotten_sentence(forgotten));
}

}  // namespace tacho::format

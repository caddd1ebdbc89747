// Sums of a run's names over a span of time, as its tables show them.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/accumulate.h"
#include "base/text/json_writer.h"
#include "view/index/names.h"
#include "view/run.h"

namespace tacho::view {

// By number of name.
struct Run::Sums {
  std::unordered_map<uint32_t, analysis::Sums> of;
  int64_t total = 0;
  std::vector<std::pair<uint32_t, analysis::Sums>> sorted() const {
    std::vector<std::pair<uint32_t, analysis::Sums>> list(of.begin(), of.end());
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
      return a.second.total != b.second.total ? a.second.total > b.second.total : a.first < b.first;
    });
    return list;
  }
};

/// One entry of a table of names. `whole`: shares are of this. `bytes`: of copies, with their sizes and rates.
void put_sums(JsonWriter& json, const SliceNames& names, uint32_t name, const analysis::Sums& sums, int64_t whole,
              bool bytes);

}  // namespace tacho::view

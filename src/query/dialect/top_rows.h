// The rows of views that rank names by time: rpd's top and ktop, rocpd's top and top_kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "query/engine/named_sums.h"
#include "query/engine/result_table.h"

namespace tacho::query {

class TopRows : public ResultRows {
 public:
  enum class Shape {
    kRpd2,   ///< whole microseconds
    kRpd3,   ///< like kRpd2, but the mean has decimals
    kRocpd,  ///< microseconds with decimals
  };
  /// `sums` must be finished; `total` is 100 % for the percentages, ns.
  TopRows(std::shared_ptr<const NamedSums> sums, int64_t total, Shape shape)
      : sums_(std::move(sums)), total_(total), shape_(shape) {}
  size_t size() const override { return sums_->size(); }
  void row(size_t index, std::vector<report::Cell>& cells) const override {
    const NamedSums::Row row = sums_->row(index);
    std::string scratch;
    const int64_t mean = row.timed > 0 ? row.total / row.timed : 0;
    const auto us = [](int64_t ns) { return static_cast<double>(ns) / 1000.0; };
    cells.clear();
    cells.emplace_back(std::string(sums_->name(row.code, scratch)));
    cells.emplace_back(row.calls);
    if (row.timed == 0) {  // NULL, like SQL's sum of unknown values
      cells.resize(5);
      return;
    }
    cells.emplace_back(shape_ == Shape::kRocpd ? report::Cell(us(row.total)) : report::Cell(row.total / 1000));
    cells.emplace_back(shape_ == Shape::kRpd2 ? report::Cell(mean / 1000) : report::Cell(us(mean)));
    cells.emplace_back(total_ != 0 ? report::Cell(static_cast<double>(row.total) * 100.0 / static_cast<double>(total_))
                                   : report::Cell());
  }

 private:
  std::shared_ptr<const NamedSums> sums_;
  int64_t total_;
  Shape shape_;
};

}  // namespace tacho::query

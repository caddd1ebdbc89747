// CounterTable: allocation in memory or in an unlinked temporary file.
#include "workload/counter_table.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/files/temporary.h"

namespace tacho::workload {

namespace {

// Bytes of all tables in anonymous memory.
std::atomic<size_t> in_memory{0};

// Room for `bytes` bytes: from the heap, from an anonymous mapping, or in an unlinked file in TMPDIR, by size.
Result<std::shared_ptr<double>> allocate(size_t bytes) {
  constexpr size_t kSmall = size_t{256} << 10;
  if (bytes <= kSmall)
    return std::shared_ptr<double>(new double[bytes / sizeof(double)], std::default_delete<double[]>());
  void* memory = MAP_FAILED;
  const bool spill = in_memory.load(std::memory_order_relaxed) + bytes > CounterTable::kSpillBytes;
  if (!spill) {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return fail("no memory for {} MiB of counter values", bytes >> 20);
  } else {
    TACHO_ASSIGN(TemporaryFile file, TemporaryFile::create());
    TACHO_ASSIGN(memory, file.map(bytes));
  }
  if (!spill) in_memory += bytes;
  return std::shared_ptr<double>(static_cast<double*>(memory), [bytes, spill](double* p) {
    ::munmap(p, bytes);
    if (!spill) in_memory -= bytes;
  });
}

}  // namespace

WantedColumns::WantedColumns(std::vector<std::string> names) : all_(false) {
  for (std::string& name : names) names_.emplace(std::move(name), 0);
}

bool WantedColumns::contains(std::string_view column) const {
  if (all_ || names_.find(column) != names_.end()) return true;
  const size_t bracket = column.find('[');
  return bracket != std::string_view::npos && names_.find(column.substr(0, bracket + 1)) != names_.end();
}

Result<CounterTable> CounterTable::create(std::vector<std::string> names, size_t rows) {
  CounterTable table;
  table.rows_ = table.capacity_ = rows;
  table.index_.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i) table.index_.emplace(names[i], static_cast<uint32_t>(i));
  table.names_ = std::move(names);
  const size_t cells = rows * table.names_.size();
  if (cells == 0) return table;
  if (rows > std::numeric_limits<size_t>::max() / sizeof(double) / table.names_.size())
    return fail("{} rows of {} counters are too many", rows, table.names_.size());
  TACHO_ASSIGN(table.store_, allocate(cells * sizeof(double)));
  std::fill_n(table.store_.get(), cells, std::numeric_limits<double>::quiet_NaN());
  return table;
}

std::span<const double> CounterTable::column(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) return {};
  return {data(found->second), rows_};
}

Result<CounterTable> CounterTable::reordered(std::span<const uint32_t> order) const {
  TACHO_ASSIGN(CounterTable result, create(names_, order.size()));
  for (size_t c = 0; c < names_.size(); ++c) {
    const double* from = data(c);
    double* to = result.data(c);
    for (size_t r = 0; r < order.size(); ++r)
      if (order[r] != kNoRow) to[r] = from[order[r]];
  }
  return result;
}

}  // namespace tacho::workload

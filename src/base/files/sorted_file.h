// Sorts and looks up more records than memory should hold. SortedFile sorts runs in memory, appends them to a temporary
// file and merges them through a mapping, so that anonymous memory holds only a bounded buffer.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/files/temporary.h"
#include "base/result.h"

namespace tacho {

/// A temporary file that grows by appending and is read through a mapping.
class SpillFile {
 public:
  SpillFile() = default;
  SpillFile(SpillFile&& other) noexcept;
  SpillFile& operator=(SpillFile&& other) noexcept;
  ~SpillFile();
  Status append(const void* bytes, size_t size);
  /// Maps all appended bytes; nullptr if there are none. The mapping lives as long as this object.
  Result<const std::byte*> map();
  size_t size() const { return size_; }

 private:
  TemporaryFile file_;
  size_t size_ = 0;
  void* mapping_ = nullptr;
};

/// Stable radix sort by T::sort_key(), an int64: least significant digits first, only as many digits as the keys differ
/// in. `spare` is scratch space.
template <typename T>
void radix_sort(std::vector<T>& values, std::vector<T>& spare) {
  int64_t least = INT64_MAX, most = INT64_MIN;
  for (const T& value : values) {
    least = std::min(least, value.sort_key());
    most = std::max(most, value.sort_key());
  }
  spare.resize(values.size());
  constexpr int kBits = 11;
  const auto base = static_cast<uint64_t>(least);
  const uint64_t span = static_cast<uint64_t>(most) - base;
  for (int shift = 0; shift < 64 && (span >> shift) != 0; shift += kBits) {
    std::array<size_t, 1 << kBits> counts{};
    const auto digit = [&](const T& value) {
      return (static_cast<uint64_t>(value.sort_key()) - base) >> shift & ((1 << kBits) - 1);
    };
    for (const T& value : values) ++counts[digit(value)];
    size_t sum = 0;
    for (size_t& count : counts) sum += std::exchange(count, sum);
    for (const T& value : values) spare[counts[digit(value)]++] = value;
    values.swap(spare);
  }
}

/// Any number of records in ascending order: add() them, finish(), then read them with next() or, after
/// finish_indexed(), by place. Sorts a T with sort_key() (see radix_sort) by that; its < must agree.
template <typename T, typename Less = std::less<T>>
class SortedFile {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit SortedFile(size_t buffer_bytes = 16u << 20, Less less = {})
      : capacity_(std::max<size_t>(buffer_bytes / sizeof(T), 1024)), less_(less) {}

  void add(const T& record) {
    if (sorted_ && !buffer_.empty() && less_(record, buffer_.back())) sorted_ = false;
    buffer_.push_back(record);
    if (buffer_.size() >= capacity_) spill();
  }

  /// Call no add() afterwards. Errors: the temporary file cannot be written or mapped.
  Status finish() {
    sort_buffer();
    total_ = spilled_ + buffer_.size();
    if (run_ends_.empty()) {
      runs_.push_back({buffer_.data(), buffer_.data() + buffer_.size()});
      heap();
      return status_;
    }
    if (!buffer_.empty()) {
      sorted_ = true;
      spill();
    }
    std::vector<T>().swap(buffer_);
    std::vector<T>().swap(spare_);
    TACHO_TRY(std::move(status_));
    TACHO_ASSIGN(const std::byte* data, file_.map());
    const T* const first = reinterpret_cast<const T*>(data);
    size_t from = 0;
    for (const size_t end : run_ends_) {
      if (!runs_.empty() && from > 0 && !less_(first[from], first[from - 1]))
        runs_.back().second = first + end;  // continues where the run before ended
      else
        runs_.push_back({first + from, first + end});
      from = end;
    }
    heap();
    return {};
  }

  /// Like finish(), but leaves all records in one piece: read them by place through all(), not with next().
  Status finish_indexed() {
    TACHO_TRY(finish());
    if (runs_.size() <= 1) {
      all_ = runs_.empty() ? std::span<const T>() : std::span<const T>(runs_[0].first, runs_[0].second);
      return {};
    }
    SpillFile merged;
    std::vector<T> block;
    block.reserve(1 << 15);
    T record;
    while (next(record)) {
      block.push_back(record);
      if (block.size() == block.capacity()) {
        TACHO_TRY(merged.append(block.data(), block.size() * sizeof(T)));
        block.clear();
      }
    }
    TACHO_TRY(merged.append(block.data(), block.size() * sizeof(T)));
    file_ = std::move(merged);
    TACHO_ASSIGN(const std::byte* data, file_.map());
    all_ = std::span<const T>(reinterpret_cast<const T*>(data), total_);
    return {};
  }

  size_t size() const { return total_; }
  std::span<const T> all() const { return all_; }

  /// Gets the next record in ascending order (equal ones in the order of add()); false at the end.
  bool next(T& record) {
    if (runs_.empty()) return false;
    auto& run = runs_.front();
    if (run.first == run.second) return false;
    record = *run.first++;
    sift();
    return true;
  }

 private:
  using Run = std::pair<const T*, const T*>;
  void sort_buffer() {
    if (sorted_) return;
    if constexpr (requires(const T& value) {
                    { value.sort_key() } -> std::convertible_to<int64_t>;
                  })
      radix_sort(buffer_, spare_);
    else
      std::stable_sort(buffer_.begin(), buffer_.end(), less_);
  }
  void spill() {
    sort_buffer();
    if (status_) status_ = file_.append(buffer_.data(), buffer_.size() * sizeof(T));
    spilled_ += buffer_.size();
    run_ends_.push_back(spilled_);
    buffer_.clear();
    sorted_ = true;
  }
  // A binary heap of runs, ordered by their first record; empty runs come last. Ties go to the earlier run.
  bool before(const Run& a, const Run& b) const {
    if (a.first == a.second) return false;
    if (b.first == b.second) return true;
    if (less_(*a.first, *b.first)) return true;
    if (less_(*b.first, *a.first)) return false;
    return a.second < b.second;
  }
  void heap() {
    for (size_t i = runs_.size() / 2; i-- > 0;) sift(i);
  }
  void sift(size_t at = 0) {
    while (true) {
      size_t least = at;
      for (size_t child = 2 * at + 1; child <= 2 * at + 2; ++child)
        if (child < runs_.size() && before(runs_[child], runs_[least])) least = child;
      if (least == at) return;
      std::swap(runs_[at], runs_[least]);
      at = least;
    }
  }

  size_t capacity_;
  Less less_;
  std::vector<T> buffer_, spare_;
  bool sorted_ = true;
  SpillFile file_;
  std::vector<size_t> run_ends_;
  size_t spilled_ = 0, total_ = 0;
  std::vector<Run> runs_;
  std::span<const T> all_;
  Status status_;
};

/// Maps keys (trivially copyable, with < and ==) to small values; fastest for lookups in ascending order.
template <typename Value, typename Key = int64_t>
class KeyIndex {
 public:
  struct Entry {
    Key key;
    Value value;
    bool operator<(const Entry& other) const { return key < other.key; }
  };
  void add(Key key, Value value) { file_.add({key, value}); }
  Status finish() {
    TACHO_TRY(file_.finish_indexed());
    entries_ = file_.all();
    return {};
  }
  size_t size() const { return entries_.size(); }
  std::span<const Entry> entries() const { return entries_; }
  /// The first entry with `key`; nullptr if there is none. Call finish() first.
  const Entry* find(Key key) {
    if (entries_.empty()) return nullptr;
    // Gallop from the last hit.
    size_t low, high;
    if (entries_[last_].key < key) {
      size_t step = 1;
      low = last_ + 1;
      high = low;
      while (high < entries_.size() && entries_[high].key < key) {
        low = high + 1;
        high += step;
        step *= 2;
      }
      high = std::min(high, entries_.size());
    } else {
      size_t step = 1;
      high = last_;
      low = last_;
      while (low > 0 && !(entries_[low - 1].key < key)) {
        high = low - 1;
        low = low > step ? low - step : 0;
        step *= 2;
      }
    }
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (entries_[middle].key < key)
        low = middle + 1;
      else
        high = middle;
    }
    if (low >= entries_.size()) {
      last_ = entries_.size() - 1;
      return nullptr;
    }
    last_ = low;
    return entries_[low].key == key ? &entries_[low] : nullptr;
  }
  /// The last entry whose key is at most `key`; nullptr if there is none.
  const Entry* floor(Key key) {
    if (const Entry* const exact = find(key)) return exact;
    if (entries_.empty()) return nullptr;
    if (!(key < entries_[last_].key)) return &entries_[last_];
    return last_ > 0 ? &entries_[last_ - 1] : nullptr;
  }

 private:
  SortedFile<Entry> file_;
  std::span<const Entry> entries_;
  size_t last_ = 0;
};

}  // namespace tacho

// A hash table of groups with flat records, for sums over many rows.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace tacho::query {

/// Groups of rows. A record holds the codes that identify the group, then cells for the caller's sums.
class GroupTable {
 public:
  /// `fresh` is a new group's record; its first `terms` cells make room for the codes.
  GroupTable(size_t terms, std::vector<int64_t> fresh)
      : terms_(terms), fresh_(std::move(fresh)), width_(fresh_.size()) {
    clear();
  }

  /// Index of the group with these codes; adds the group if it is new. Invalidates pointers from record().
  uint32_t place(const int64_t* codes) {
    uint64_t hash = 0;
    for (size_t i = 0; i < terms_; ++i)
      hash = (std::rotl(hash, 29) ^ static_cast<uint64_t>(codes[i])) * 0x9e3779b97f4a7c15ULL;
    size_t at = hash >> shift_;
    while (index_[at] != 0) {
      const uint32_t group = index_[at] - 1;
      if (std::memcmp(record(group), codes, terms_ * sizeof(int64_t)) == 0) return group;
      at = (at + 1) & (index_.size() - 1);
    }
    index_[at] = static_cast<uint32_t>(++groups_);
    const size_t end = records_.size();
    records_.insert(records_.end(), fresh_.begin(), fresh_.end());
    std::memcpy(records_.data() + end, codes, terms_ * sizeof(int64_t));
    if (groups_ * 2 > index_.size()) grow();
    return static_cast<uint32_t>(groups_ - 1);
  }
  int64_t* record(uint32_t group) { return records_.data() + static_cast<size_t>(group) * width_; }
  size_t groups() const { return groups_; }
  size_t bytes() const { return records_.size() * sizeof(int64_t); }
  void clear() {
    groups_ = 0;
    records_.clear();
    index_.assign(256, 0);
    shift_ = 56;
  }

 private:
  void grow() {
    index_.assign(index_.size() * 2, 0);
    --shift_;
    for (size_t group = 0; group < groups_; ++group) {
      const int64_t* const codes = record(static_cast<uint32_t>(group));
      uint64_t hash = 0;
      for (size_t i = 0; i < terms_; ++i)
        hash = (std::rotl(hash, 29) ^ static_cast<uint64_t>(codes[i])) * 0x9e3779b97f4a7c15ULL;
      size_t at = hash >> shift_;
      while (index_[at] != 0) at = (at + 1) & (index_.size() - 1);
      index_[at] = static_cast<uint32_t>(group + 1);
    }
  }
  const size_t terms_;
  const std::vector<int64_t> fresh_;
  const size_t width_;
  std::vector<int64_t> records_;
  std::vector<uint32_t> index_;  // open addressing: group + 1, 0 = free
  int shift_ = 0;
  size_t groups_ = 0;
};

}  // namespace tacho::query

// The few opcodes of Python's pickles that data made of dicts, lists, tuples, texts and numbers need. No other opcode
// is obeyed, so reading a pickle never imports, calls or makes anything that the file names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "format/source/source.h"

namespace tacho::format::torch_memory {

/// A value of a pickle. Texts and containers are numbers of what the PickleReader holds.
struct PickleValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,
    kInteger,
    kFloat,  // bits of a double
    kText,
    kTuple,
    kList,
    kDict,
    kStored,  // replaced by PickleReader::store(): a number of the caller's
    kMark,
  };
  Kind kind = Kind::kNone;
  int64_t number = 0;
  bool operator==(const PickleValue&) const = default;
};

class PickleReader {
 public:
  /// `path`: for messages. The source must outlive the reader.
  PickleReader(source::SourceStream& source, std::string path) : source_(source), path_(std::move(path)) {}

  /// Called after members were put into the dict on top of the stack. The caller may take it: see take_dict().
  std::function<Status(int64_t dict)> dict_grew;

  /// Reads the whole pickle. Errors: cut off, damaged, an opcode that is not obeyed, or too much to hold.
  Result<PickleValue> run();

  std::string_view text(int64_t number) const { return texts_[static_cast<size_t>(number)]; }
  /// Items of a list or tuple, or of a dict key after key, each followed by its value.
  const std::vector<PickleValue>& items(int64_t container) const {
    return containers_[static_cast<size_t>(container)].items;
  }
  /// The value of a key of a dict; nullptr = it has none.
  const PickleValue* find(int64_t dict, std::string_view key) const;

  /// What stands for a value after store(): the value itself where nothing does.
  PickleValue resolved(PickleValue value) const;
  /// Frees a container and leaves `stored` in its place, wherever the pickle refers to it.
  void store(int64_t container, int64_t stored);
  /// The list that the object on top of the stack will be part of, and its own place in a list that is the value of
  /// `key`: how deep data is known before its surroundings are whole. -1 = it is no part of such lists.
  int64_t index_of_list(std::string_view& key) const;

  const std::string& path() const { return path_; }
  uint64_t offset() const { return passed_ + at_; }

 private:
  using Kind = PickleValue::Kind;
  struct Container {
    std::vector<PickleValue> items;
    int64_t memo = -1;    // its number there, -1 = none
    bool shared = false;  // several places refer to it, or may
    int64_t stored = -1;  // what stands in its place, -1 = it is as it was
  };

  static constexpr size_t kWindow = 1 << 16;
  static constexpr uint64_t kMostHeld = uint64_t{1} << 30;  // bytes
  static constexpr uint64_t kLongestText = uint64_t{64} << 20;
  static constexpr uint32_t kKindBits = 4;

  bool fill();
  Status need(char* to, size_t size);
  template <typename T>
  Result<T> number();
  Status damaged(std::string_view what) const;
  Status too_much() const;
  Status step(uint8_t opcode, bool& stop);
  Status scalar(uint8_t opcode, bool& known);
  Status long1();
  Status put_text(uint64_t size);
  Status push(Kind kind, int64_t value);
  Status new_container(Kind kind);
  Status tuple(size_t count);
  Status append(size_t count);
  Status set_items(size_t count);
  Status memoize(uint64_t place);
  Status recall(uint64_t place);
  Result<size_t> above_mark();
  Status hold(uint64_t bytes);
  bool is_container(Kind kind) const { return kind == Kind::kList || kind == Kind::kDict || kind == Kind::kTuple; }
  // The place in stack_ of the list that the value at `place` will be in, and how many values come before it there.
  // `direct`: a list just below counts before one below the mark.
  bool list_below(size_t place, bool direct, size_t& list, size_t& before) const;

  source::SourceStream& source_;
  std::string path_;
  std::string window_;
  size_t at_ = 0;
  uint64_t passed_ = 0, held_ = 0;
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;  // places in stack_
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, int64_t> text_numbers_;
  std::deque<Container> containers_;
  std::vector<int64_t> free_;  // containers
  std::deque<uint32_t> memo_;  // kind and number
};

}  // namespace tacho::format::torch_memory

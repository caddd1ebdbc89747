// The machine behind a pickle (pickle.h).
#include "format/torch_memory/pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tacho::format::torch_memory {

namespace {

// Python's Lib/pickletools.py defines them.
enum Opcode : uint8_t {
  kMarkOp = '(',
  kStop = '.',
  kNoneOp = 'N',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kBinFloat = 'G',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kEmptyDict = '}',
  kAppend = 'a',
  kAppends = 'e',
  kSetItem = 's',
  kSetItems = 'u',
  kTupleOp = 't',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kMemoize = 0x94,
  kFrame = 0x95,
};

// Names of opcodes that make or call something, for the message.
std::string_view forbidden(uint8_t opcode) {
  switch (opcode) {
    case 'c':
      return "GLOBAL";
    case 0x93:
      return "STACK_GLOBAL";
    case 'R':
      return "REDUCE";
    case 'b':
      return "BUILD";
    case 'i':
      return "INST";
    case 'o':
      return "OBJ";
    case 0x81:
      return "NEWOBJ";
    case 0x92:
      return "NEWOBJ_EX";
    case 'P':
      return "PERSID";
    case 'Q':
      return "BINPERSID";
    case 0x82:
      return "EXT1";
    case 0x83:
      return "EXT2";
    case 0x84:
      return "EXT4";
    default:
      return {};
  }
}

}  // namespace

bool PickleReader::fill() {
  if (at_ < window_.size()) return true;
  passed_ += window_.size();
  window_.resize(kWindow);
  window_.resize(source_.read(window_.data(), window_.size()));
  at_ = 0;
  return !window_.empty();
}

Status PickleReader::need(char* to, size_t size) {
  while (size > 0) {
    if (!fill()) {
      TACHO_TRY(Status(source_.status()));
      return fail("{}: the pickle is cut off at byte {}", path_, offset());
    }
    const size_t part = std::min(size, window_.size() - at_);
    std::memcpy(to, window_.data() + at_, part);
    to += part;
    size -= part;
    at_ += part;
  }
  return {};
}

// Numbers of pickles are little-endian, as this machine's are.
template <typename T>
Result<T> PickleReader::number() {
  char bytes[sizeof(T)];
  TACHO_TRY(need(bytes, sizeof bytes));
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

Status PickleReader::damaged(std::string_view what) const {
  return fail("{}: the pickle is damaged near byte {}: {}", path_, offset(), what);
}

Status PickleReader::too_much() const {
  return fail("{}: the pickle holds more than {} MiB of values besides the history of memory, which no snapshot of "
              "torch does",
              path_, kMostHeld >> 20);
}

Status PickleReader::hold(uint64_t bytes) {
  held_ += bytes;
  return held_ > kMostHeld ? too_much() : Status();
}

Status PickleReader::push(Kind kind, int64_t value) {
  stack_.push_back({kind, value});
  return stack_.size() * sizeof(PickleValue) > kMostHeld ? too_much() : Status();
}

Status PickleReader::new_container(Kind kind) {
  int64_t number = static_cast<int64_t>(containers_.size());
  if (free_.empty()) {
    containers_.emplace_back();
    TACHO_TRY(hold(sizeof(Container)));
  } else {
    number = free_.back();
    free_.pop_back();
    containers_[static_cast<size_t>(number)] = {};
  }
  return push(kind, number);
}

Status PickleReader::put_text(uint64_t size) {
  if (size > kLongestText) return damaged("a text is longer than 64 MiB");
  // Grows as bytes come, not by what the file says.
  std::string text;
  while (text.size() < size) {
    const size_t part = static_cast<size_t>(std::min<uint64_t>(size - text.size(), kWindow));
    const size_t before = text.size();
    text.resize(before + part);
    TACHO_TRY(need(text.data() + before, part));
  }
  const auto found = text_numbers_.find(text);
  if (found != text_numbers_.end()) return push(Kind::kText, found->second);
  TACHO_TRY(hold(text.size() + 128));
  const auto number = static_cast<int64_t>(texts_.size());
  text_numbers_.emplace(texts_.emplace_back(std::move(text)), number);
  return push(Kind::kText, number);
}

Status PickleReader::long1() {
  TACHO_ASSIGN(const auto size, number<uint8_t>());
  uint8_t bytes[255];
  TACHO_TRY(need(reinterpret_cast<char*>(bytes), size));
  const uint8_t sign = size > 0 && (bytes[size - 1] & 0x80) != 0 ? 0xff : 0;
  uint64_t value = sign != 0 ? ~uint64_t{0} : 0;
  for (size_t i = 0; i < size; ++i) {
    if (i < 8)
      value = (value & ~(uint64_t{0xff} << 8 * i)) | uint64_t{bytes[i]} << 8 * i;
    else if (bytes[i] != sign)
      return damaged("a number has more than 64 bits");
  }
  // Unsigned addresses above 2^63 keep their bits.
  return push(Kind::kInteger, std::bit_cast<int64_t>(value));
}

Status PickleReader::scalar(uint8_t opcode, bool& known) {
  known = true;
  switch (opcode) {
    case kNoneOp:
      return push(Kind::kNone, 0);
    case kNewTrue:
    case kNewFalse:
      return push(Kind::kBool, opcode == kNewTrue ? 1 : 0);
    case kBinInt: {
      TACHO_ASSIGN(const auto value, number<int32_t>());
      return push(Kind::kInteger, value);
    }
    case kBinInt1: {
      TACHO_ASSIGN(const auto value, number<uint8_t>());
      return push(Kind::kInteger, value);
    }
    case kBinInt2: {
      TACHO_ASSIGN(const auto value, number<uint16_t>());
      return push(Kind::kInteger, value);
    }
    case kLong1:
      return long1();
    case kBinFloat: {
      TACHO_ASSIGN(const auto value, number<uint64_t>());
      return push(Kind::kFloat, std::bit_cast<int64_t>(__builtin_bswap64(value)));
    }
    case kShortBinUnicode: {
      TACHO_ASSIGN(const auto size, number<uint8_t>());
      return put_text(size);
    }
    case kBinUnicode: {
      TACHO_ASSIGN(const auto size, number<uint32_t>());
      return put_text(size);
    }
    case kBinUnicode8: {
      TACHO_ASSIGN(const auto size, number<uint64_t>());
      return put_text(size);
    }
    default:
      known = false;
      return {};
  }
}

Result<size_t> PickleReader::above_mark() {
  if (marks_.empty()) return fail_with(damaged("there is no mark"));
  const size_t mark = marks_.back();
  return stack_.size() - mark - 1;
}

// Moves `count` values from the top of the stack into a tuple; from a mark on if `count` says more than there are.
Status PickleReader::tuple(size_t count) {
  const size_t floor = marks_.empty() ? 0 : marks_.back() + 1;
  if (stack_.size() < floor + count) return damaged("a tuple needs more values");
  std::vector<PickleValue> items(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
  stack_.resize(stack_.size() - count);
  TACHO_TRY(hold(count * sizeof(PickleValue)));
  TACHO_TRY(new_container(Kind::kTuple));
  containers_[static_cast<size_t>(stack_.back().number)].items = std::move(items);
  return {};
}

// Moves `count` values from the top of the stack into the list below them.
Status PickleReader::append(size_t count) {
  const size_t floor = marks_.empty() ? 0 : marks_.back() + 1;
  if (stack_.size() < floor + count + 1) return damaged("a list needs more values");
  const PickleValue list = stack_[stack_.size() - count - 1];
  if (list.kind != Kind::kList) return damaged("values are appended to something that is no list");
  auto& items = containers_[static_cast<size_t>(list.number)].items;
  for (auto each = stack_.end() - static_cast<ptrdiff_t>(count); each != stack_.end(); ++each) {
    // What was stored needs no place of its own: millions of events would.
    if (each->kind == Kind::kStored) continue;
    TACHO_TRY(hold(sizeof(PickleValue)));
    items.push_back(*each);
  }
  stack_.resize(stack_.size() - count);
  return {};
}

Status PickleReader::set_items(size_t count) {
  const size_t floor = marks_.empty() ? 0 : marks_.back() + 1;
  if (count % 2 != 0 || stack_.size() < floor + count + 1) return damaged("a dict needs more values");
  const PickleValue dict = stack_[stack_.size() - count - 1];
  if (dict.kind != Kind::kDict) return damaged("members are put into something that is no dict");
  auto& container = containers_[static_cast<size_t>(dict.number)];
  TACHO_TRY(hold(count * sizeof(PickleValue)));
  container.items.insert(container.items.end(), stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
  stack_.resize(stack_.size() - count);
  return dict_grew ? dict_grew(dict.number) : Status();
}

Status PickleReader::memoize(uint64_t place) {
  if (stack_.empty() || stack_.back().kind == Kind::kMark) return damaged("there is nothing to remember");
  // Python and torch number what they remember from 0 or 1 on, one by one.
  if (place > memo_.size() + 1 || place >= uint64_t{1} << (32 - kKindBits))
    return damaged("a number of the memo is out of order");
  const PickleValue value = stack_.back();
  const auto number = static_cast<uint64_t>(value.number);
  while (memo_.size() <= place) memo_.push_back(static_cast<uint32_t>(Kind::kMark));
  memo_[place] = static_cast<uint32_t>(value.kind);
  if (number < uint64_t{1} << (32 - kKindBits) && value.kind != Kind::kFloat)
    memo_[place] |= static_cast<uint32_t>(number) << kKindBits;
  else
    return damaged("the memo holds a number that needs none");
  if (is_container(value.kind)) {
    Container& container = containers_[static_cast<size_t>(value.number)];
    container.shared = container.shared || container.memo >= 0;
    container.memo = static_cast<int64_t>(place);
  }
  return {};
}

Status PickleReader::recall(uint64_t place) {
  if (place >= memo_.size()) return damaged("the memo has no such number");
  const auto kind = static_cast<Kind>(memo_[place] & ((1u << kKindBits) - 1));
  if (kind == Kind::kMark) return damaged("the memo has no such number");
  PickleValue value{kind, memo_[place] >> kKindBits};
  if (is_container(kind)) containers_[static_cast<size_t>(value.number)].shared = true;
  value = resolved(value);
  return push(value.kind, value.number);
}

PickleValue PickleReader::resolved(PickleValue value) const {
  if (!is_container(value.kind)) return value;
  const int64_t stored = containers_[static_cast<size_t>(value.number)].stored;
  return stored < 0 ? value : PickleValue{Kind::kStored, stored};
}

void PickleReader::store(int64_t container, int64_t stored) {
  Container& each = containers_[static_cast<size_t>(container)];
  held_ -= std::min<uint64_t>(held_, each.items.size() * sizeof(PickleValue));
  std::vector<PickleValue>().swap(each.items);
  if (!stack_.empty() && is_container(stack_.back().kind) && stack_.back().number == container)
    stack_.back() = {Kind::kStored, stored};
  each.stored = stored;
  // Where other places may refer to it, it stays and says what it became.
  if (each.shared || stored >= int64_t{1} << (32 - kKindBits)) return;
  if (each.memo >= 0)
    memo_[static_cast<size_t>(each.memo)] = static_cast<uint32_t>(Kind::kStored) | static_cast<uint32_t>(stored)
                                                                                       << kKindBits;
  free_.push_back(container);
}

bool PickleReader::list_below(size_t place, bool direct, size_t& list, size_t& before) const {
  const auto after = std::lower_bound(marks_.begin(), marks_.end(), place);
  const size_t mark = after == marks_.begin() ? 0 : *std::prev(after);
  const bool under_mark = mark > 0 && stack_[mark - 1].kind == Kind::kList;
  const bool just_below = place > 0 && stack_[place - 1].kind == Kind::kList;
  if (under_mark && !(direct && just_below)) {
    list = mark - 1;
    before = place - mark - 1;
    return true;
  }
  list = place - 1;
  before = 0;
  return just_below;
}

int64_t PickleReader::index_of_list(std::string_view& key) const {
  // [..., key, outer list, (mark, inner lists ...,) list, (mark, objects ...,) object]
  size_t list = 0, outer = 0, before = 0, ignored = 0;
  if (stack_.empty() || !list_below(stack_.size() - 1, true, list, ignored) ||
      !list_below(list, false, outer, before) || outer == 0 || stack_[outer - 1].kind != Kind::kText)
    return -1;
  key = text(stack_[outer - 1].number);
  return static_cast<int64_t>(items(stack_[outer].number).size() + before);
}

const PickleValue* PickleReader::find(int64_t dict, std::string_view key) const {
  const auto& members = items(dict);
  // The last of several counts, as in Python.
  for (size_t i = members.size(); i >= 2; i -= 2)
    if (members[i - 2].kind == Kind::kText && text(members[i - 2].number) == key) return &members[i - 1];
  return nullptr;
}

Status PickleReader::step(uint8_t opcode, bool& stop) {
  bool known = false;
  TACHO_TRY(scalar(opcode, known));
  if (known) return {};
  const auto from_mark = [&](Status (PickleReader::*use)(size_t)) -> Status {
    TACHO_ASSIGN(const size_t count, above_mark());
    stack_.erase(stack_.begin() + static_cast<ptrdiff_t>(marks_.back()));
    marks_.pop_back();
    return (this->*use)(count);
  };
  switch (opcode) {
    case kMarkOp:
      marks_.push_back(stack_.size());
      return push(Kind::kMark, 0);
    case kStop:
      stop = true;
      return {};
    case kEmptyList:
      return new_container(Kind::kList);
    case kEmptyDict:
      return new_container(Kind::kDict);
    case kEmptyTuple:
      return tuple(0);
    case kTuple1:
    case kTuple2:
    case kTuple3:
      return tuple(opcode - kTuple1 + 1u);
    case kTupleOp:
      return from_mark(&PickleReader::tuple);
    case kAppend:
      return append(1);
    case kAppends:
      return from_mark(&PickleReader::append);
    case kSetItem:
      return set_items(2);
    case kSetItems:
      return from_mark(&PickleReader::set_items);
    case kMemoize:
      return memoize(memo_.size());
    case kBinPut: {
      TACHO_ASSIGN(const auto place, number<uint8_t>());
      return memoize(place);
    }
    case kLongBinPut: {
      TACHO_ASSIGN(const auto place, number<uint32_t>());
      return memoize(place);
    }
    case kBinGet: {
      TACHO_ASSIGN(const auto place, number<uint8_t>());
      return recall(place);
    }
    case kLongBinGet: {
      TACHO_ASSIGN(const auto place, number<uint32_t>());
      return recall(place);
    }
    case kFrame: {
      TACHO_ASSIGN(const auto size, number<uint64_t>());
      static_cast<void>(size);  // says only how much to read at once
      return {};
    }
    default:
      break;
  }
  if (const std::string_view name = forbidden(opcode); !name.empty())
    return fail(
        "{}: the pickle wants Python to make an object (opcode {} at byte {}), which a memory snapshot of torch "
        "never does; tacho runs nothing that a file asks for",
        path_, name, offset() - 1);
  return fail("{}: the pickle has an opcode that a memory snapshot of torch does not need (0x{:02x} at byte {})", path_,
              opcode, offset() - 1);
}

Result<PickleValue> PickleReader::run() {
  char head[2];
  TACHO_TRY(need(head, sizeof head));
  if (static_cast<uint8_t>(head[0]) != kProto || head[1] < 2 || head[1] > 5)
    return fail("{}: no pickle of protocol 2 to 5", path_);
  for (bool stop = false; !stop;) {
    TACHO_ASSIGN(const auto opcode, number<uint8_t>());
    TACHO_TRY(step(opcode, stop));
  }
  if (stack_.size() != 1 || stack_.back().kind == Kind::kMark) return fail_with(damaged("it ends before it is whole"));
  return stack_.back();
}

}  // namespace tacho::format::torch_memory

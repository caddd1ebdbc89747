// What torch.profiler tells about the inputs of operators, as rows of table operator_input.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "format/kineto/event.h"
#include "trace/store/hash.h"
#include "trace/write/writer.h"

namespace tacho::format::kineto {

class InputRows {
 public:
  /// Bytes of a text; a longer one is cut and ends in "...".
  static constexpr size_t kLongest = size_t{16} << 10;
  /// Bytes of different texts in all, so that names of kernels and operators keep their room in the file.
  static constexpr size_t kMostText = size_t{8} << 20;

  explicit InputRows(trace::TraceWriter& writer) : writer_(writer) {}
  /// The row of an operator's inputs; 0 where the file tells nothing, and where different texts became too many.
  int64_t row(const Event::Inputs& inputs);
  /// Says how many operators have texts that were cut, and how many have none because there were too many.
  void finish();

 private:
  static constexpr size_t kSlots = 4096;
  struct Slot {
    trace::Hash128 hash;
    int64_t row;
    bool cut;
  };
  int64_t make_row(const Event::Inputs& inputs, bool& cut);
  int64_t text(std::string_view json, bool& cut);

  trace::TraceWriter& writer_;
  int64_t cut_ = 0, left_out_ = 0;  // operators
  size_t bytes_ = 0;                // of different texts
  std::string text_;
  std::unique_ptr<std::array<Slot, kSlots>> slots_;  // rows that came lately, by hash: operators repeat
};

}  // namespace tacho::format::kineto

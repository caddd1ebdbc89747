// The kernels that the user's filter leaves out of a process, where the decoder applies it (event/left_out.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "event/left_out.h"
#include "trace/write/writer.h"

namespace tacho::decode {

class LeftOutKernels {
 public:
  void add(std::string_view name) {
    if (names_.size() < event::kLeftOutNames && std::ranges::find(names_, name) == names_.end())
      names_.emplace_back(name);
  }
  void write(trace::TraceWriter& writer, int64_t process) const {
    for (size_t i = 0; i < names_.size(); ++i)
      writer.property(event::Table::kProcess, process, fmt::format("{}{}", event::kLeftOutKernel, i), names_[i]);
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace tacho::decode

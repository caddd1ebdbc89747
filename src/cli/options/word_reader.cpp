// Words of a command line (word_reader.h).
#include "cli/options/word_reader.h"

#include <algorithm>

namespace tacho::cli::options {

WordReader::WordReader(int argc, char** argv) : words_(argv + 1, argv + argc) {
  separator_ = static_cast<size_t>(std::find(words_.begin(), words_.end(), "--") - words_.begin());
}

Spelling WordReader::take_option() {
  Spelling out{take(), {}};
  if (const size_t equals = out.name.find('='); out.name.starts_with("--") && equals != std::string::npos) {
    out.attached = out.name.substr(equals + 1);
    out.name.resize(equals);
  }
  return out;
}

Result<std::string> WordReader::value(const Spelling& option) {
  if (option.attached) return *option.attached;
  if (!more()) return fail("{} wants a value", option.name);
  return take();
}

std::vector<std::string> WordReader::rest() {
  if (at_ == separator_) ++at_;
  const size_t from = std::min(at_, words_.size());
  at_ = words_.size();
  return {words_.begin() + static_cast<ptrdiff_t>(from), words_.end()};
}

}  // namespace tacho::cli::options

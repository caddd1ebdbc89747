// Words of a command line (word_reader.h).
#include "cli/options/word_reader.h"

#include <algorithm>
#include <utility>

namespace tacho::cli::options {

WordReader::WordReader(int argc, char** argv) : words_(argv + std::min(argc, 1), argv + argc) {
  separator_ = static_cast<size_t>(std::find(words_.begin(), words_.end(), "--") - words_.begin());
}

Spelling WordReader::take_option() {
  Spelling out;
  out.word = out.name = take();
  if (out.name.starts_with("--")) {
    if (const size_t equals = out.name.find('='); equals != std::string::npos) {
      out.attached = out.name.substr(equals + 1);
      out.name.resize(equals);
    }
  } else if (out.name.size() > 2) {
    out.joined = out.name[2] != '=';
    out.attached = out.name.substr(out.joined ? 2 : 3);
    out.name.resize(2);
  }
  return out;
}

std::vector<std::string> WordReader::rest() {
  if (at_ == separator_) ++at_;
  const size_t from = std::min(at_, words_.size());
  at_ = words_.size();
  return {words_.begin() + static_cast<ptrdiff_t>(from), words_.end()};
}

Status read_options(WordReader& words, Syntax& syntax) {
  while (words.more()) {
    if (!syntax.is_option(words.peek())) {
      TACHO_ASSIGN(const bool taken, syntax.operand(words));
      if (!taken) return {};
      continue;
    }
    Spelling given = words.take_option();
    TACHO_ASSIGN(const Takes takes, syntax.look_up(given));
    if (takes.most == 0 && given.joined) {  // "-abc": -a and then -bc
      words.put_back("-" + *std::exchange(given.attached, std::nullopt));
      given.joined = false;
    }
    std::vector<std::string> values;
    if (given.attached) values.push_back(*given.attached);
    while (values.size() < takes.least && words.more()) values.push_back(words.take());
    const auto wanted = [&](const std::string& word) {
      return takes.accepts ? takes.accepts(word) : !syntax.is_option(word);
    };
    while (values.size() < takes.most && words.more() && wanted(words.peek())) values.push_back(words.take());
    TACHO_TRY(syntax.take(given, std::move(values)));
  }
  return {};
}

}  // namespace tacho::cli::options

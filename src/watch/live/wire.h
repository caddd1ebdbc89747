// A moment of a watch as JSON for other programs, at /moment beside /metrics: what --output-format json says, with the
// sums behind each row, so that who reads it can add up several watches.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "watch/answer.h"

namespace tacho::watch {

/// What is watched, and where.
struct WatchFacts {
  std::string title;  ///< the program's words
  std::string host;   ///< the machine's name
  std::string run;    ///< differs between two runs of tacho watch
};

std::string moment_text(const WatchFacts& facts, const WatchMoment& moment);

/// What a moment's text says of a watch elsewhere.
struct RemoteMoment {
  WatchFacts facts;
  WatchMoment moment;              ///< without what only its own machine needs
  std::vector<std::string> notes;  ///< its sentences
};
/// The error is a clause about the text: "its answer is no moment of tacho watch".
Result<RemoteMoment> parse_moment_text(std::string_view text);

}  // namespace tacho::watch

// The answers in sentences, the same as text, in JSON and on the page.
#pragma once

#include <string>
#include <vector>

#include "ranks/answer/answers.h"

namespace tacho::ranks {

/// "0-4, 7-9"
std::string numbers(const std::vector<int64_t>& list);

/// The peak to compare the bus bandwidth with; "" without bandwidth.
std::string peak_text(const Group& group);

/// How much ranks waited, and for which.
std::vector<std::string> headlines(const Job& job, const Report& report);

/// How far the ranks' clocks agree; "" for one rank.
std::string clocks_text(const Job& job, const Report& report);

/// A duration; a share of `whole` in percent, "—" of nothing.
std::string time_text(int64_t time);
std::string percent(double part, double whole);

}  // namespace tacho::ranks

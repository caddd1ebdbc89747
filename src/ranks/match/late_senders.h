// Why a message came late: what its sender did while the receiver waited for it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ranks/match/messages.h"
#include "ranks/read/rank_run.h"

namespace tacho::ranks {

/// Fills in LateMessage::meanwhile of the messages of `report` that receivers waited longest for, kMostExplained of
/// each sender. Opens the senders' files again and decodes the chunks around these messages, each once. Messages stay
/// unknown if their file can no longer be opened. `names` gets the names found.
void explain_late_messages(std::span<const RankRun> runs, Names& names, MessageReport& report);
inline constexpr size_t kMostExplained = 8;

/// "its own code on the host, in halo", "kernels, most heat" ... for a cell; "" if unknown.
std::string meanwhile_text(const Meanwhile& meanwhile, const Names& names);

}  // namespace tacho::ranks

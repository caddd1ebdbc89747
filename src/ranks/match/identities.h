// Collectives by the identity that torch gives each of them ("Comms Id"), equal on all of its ranks: it brings together
// what counting cannot, where recordings were cut differently or no file names the groups.
#pragma once

#include <span>

#include "base/result.h"
#include "ranks/read/rank_run.h"

namespace tacho::ranks {

/// Gives equal communicator and sequence to arrivals with equal identity, before match_collectives(). It does so in
/// named groups whose collectives all have an identity on every run and are not numbered throughout
/// (numbered_on_all()), and for every collective with an identity whose group has no name: the runs that share such
/// collectives are then a group. A collective that only some ranks of a group recorded belongs to the only group that
/// has those ranks and is as large; where there are several, it counts as one that lacks ranks.
/// Errors: temporary files cannot be written or read.
Status match_by_identity(std::span<RankRun* const> runs, Spools& spools, Names& names);

}  // namespace tacho::ranks

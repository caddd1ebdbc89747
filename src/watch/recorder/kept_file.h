// The .tacho that `tacho watch --keep` writes: records of the ring as rows of a trace.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "event/watch_table.h"
#include "watch/recorder/ring_file.h"

namespace tacho::watch {

/// Memory that a program has not given back.
struct LiveMemory {
  KeptRecord allocated;
  bool operator<(const LiveMemory& other) const { return allocated.ticket < other.allocated.ticket; }
};

/// What one file says.
struct KeptExcerpt {
  std::string path;                       ///< does not exist yet
  std::string why;                        ///< a sentence: "SIGUSR1 was sent to tacho"
  std::string trigger;                    ///< as the user gave it
  std::vector<std::string> further = {};  ///< sentences about what else is to be known
  int64_t at = 0;                         ///< when the trigger fired, CLOCK_MONOTONIC_RAW ns
  int64_t from = 0, to = 0;               ///< which time the file is about
  int64_t complete_from = 0;              ///< from when on nothing was overwritten; at least `from`
  uint64_t overwritten = 0, unfinished = 0;
  std::vector<KeptRecord> records = {};
  std::vector<LiveMemory> live = {};  ///< allocated before the records and not given back, if that is wanted
};

struct KeptCounts {
  uint64_t operations = 0, timed = 0;  ///< work of devices
};

/// The part of a marker's text in one record, filled up with zeros.
std::string marker_text_of(const KeptRecord& record);
/// The text of a marker, whose further parts are in the records behind it. Cut texts end in "…", behind a whole
/// character.
std::string marker_text(const std::vector<KeptRecord>& records, size_t at);

/// Writes the file. The table and the ring stay while it does.
Result<KeptCounts> write_kept(const KeptExcerpt& excerpt, const event::WatchTable& table, const RingFile& ring,
                              const std::vector<std::string>& command);

}  // namespace tacho::watch

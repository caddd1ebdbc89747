// Where one trace ends and the next begins in a file that holds several, one put behind the other.
#pragma once

#include <tsl/robin_set.h>

#include <cstdint>
#include <string>

#include "format/perfetto/packet_head.h"

namespace tacho::format::perfetto {

/// Perfetto's service writes the trace's UUID and its configuration once, before any event, and marks the first packet
/// of each sequence. Without the service, a trace may begin with clocks that clear the state of a sequence, as tacho's
/// do. What comes again is another trace's.
class DocumentStarts {
 public:
  /// Whether the packet is the first of another trace. To be asked about every packet, in the order of the file.
  bool begins(const PacketHead& head);

 private:
  bool again(const PacketHead& head) const;

  bool any_ = false, uuid_ = false, configuration_ = false, events_ = false;
  uint32_t first_sequence_ = 0;  // of the clocks that the trace began with; 0 = it did not
  tsl::robin_set<uint32_t> sequences_;
};

}  // namespace tacho::format::perfetto

// What the return of a call of a vendor's API tells about device work.
#pragma once

#include <cstdint>

namespace tacho::event {

enum class CallRole : uint8_t {
  kPlain,           ///< nothing
  kCopies,          ///< copies to the host that the call launched have ended
  kWaitsForQueue,   ///< work on a queue or stream, which the call's record does not name, has ended
  kWaitsForDevice,  ///< work on a device, which the call's record does not name, has ended
};

}  // namespace tacho::event

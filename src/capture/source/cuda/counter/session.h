// Sessions of CUPTI's range profiler: one for each context, with the counter data that its ranges fill and the records
// that name the launches (event/spool_ranges.h). Sessions of several GPUs run side by side. Of two contexts on one GPU,
// only one may have a profiler object at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "capture/source/cuda/counter/collection.h"
#include "event/spool_ranges.h"
#include "vendor/nvidia/cupti_range.h"

namespace tacho::capture::counter {

namespace abi = vendor::cupti::range;

/// CUPTI reserves as many ranges as an object's first configuration asks for. A killed program loses what its session
/// holds. With a single pass the session is the only cost, as much as 25 launches, so it may hold more.
inline constexpr size_t kMaxRanges = 64, kMaxRangesOnePass = 256;

struct Session {
  void* context;  ///< nullptr: the place is free
  uint32_t device;
  abi::Profiler profiler;
  int range;  ///< kind of ranges, which an object keeps
  bool running;
  size_t used;       ///< ranges since start()
  uint32_t carried;  ///< launches in a row that ran in it though the filter leaves them out
  uint32_t number;   ///< of the image that is being filled, among those of its GPU
  Bytes image, records;
};
inline constexpr size_t kMaxSessions = 32;
/// All places; those without a context are free.
extern constinit Session g_sessions[kMaxSessions];

/// Looks up what sessions need of CUPTI and of the driver, and tells which of the two lacks something.
enum class Found { kAll, kNoRangeProfiler, kNoDriver };
Found find_session_functions();
/// Sets what is called when the program exits. CUPTI registers exit handlers of its own when it first does something, and
/// handlers run in reverse order. Ours must run before CUPTI's, so it is registered again after each first use.
void set_exit_function(void (*finish)());

bool current_context(void** context);
/// CU_FUNC_ATTRIBUTE_*; 0 when it is not told.
uint32_t function_attribute(void* function, int attribute);
/// True while launches into the stream go into a graph and do not run.
bool is_capturing(void* stream);

/// The context's session; makes its object if there is none or if it is of another kind (13 ms). The context must be
/// current. nullptr: collecting has ended.
Session* session_of(void* context, int range = abi::kAutoRange);
/// The context's session as it is, nullptr when it has none.
Session* known_session(void* context);
/// The session of another context on the GPU of the current context: it has to end before this one's can start.
Session* rival_of(void* context);
/// Ends the object; with `context_goes` ignores what CUPTI answers.
void disable(Session& session, bool context_goes = false);
/// Ranges that an image has room for; 0 before the first object was made.
size_t ranges();
/// From the next object on, images have room for `most` ranges.
void choose_ranges_afresh(size_t most);

/// A new image, in application replay that of the run before; its number is the next.
bool fresh_image(Session& session);
bool configure(Session& session, int replay, size_t pass);
bool start(Session& session);
bool stop(Session& session);
/// A range pushed by hand. It holds only what is launched between push() and pop(), and all of that.
bool push(Session& session);
bool pop(Session& session);
bool decode(Session& session);
/// Ranges that are in the image, SIZE_MAX when CUPTI does not tell.
size_t ranges_in(const Session& session);

/// Returns where the record lies in the session's records, SIZE_MAX without memory.
size_t add_record(Bytes& records, const spool::CounterRecord& record, const char* name);
inline spool::CounterRecord* record_at(Bytes& records, size_t offset) {
  return reinterpret_cast<spool::CounterRecord*>(records.data + offset);
}
/// Writes the image under its final name, then the records of its ranges.
void write_image(Session& session);
void write_records(Bytes& records);

}  // namespace tacho::capture::counter

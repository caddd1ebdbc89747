// Sessions of CUPTI's range profiler: one for each context, with the counter data that its ranges fill and the records
// that name the launches (event/spool/spool_ranges.h). Sessions of several GPUs run side by side. Of two contexts on
// one GPU,
// only one may have a profiler object at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "capture/source/cuda/counter/collection.h"
#include "event/spool/spool_ranges.h"
#include "vendor/nvidia/cupti_range.h"

namespace tacho::capture::counter {

namespace abi = vendor::cupti::range;

/// CUPTI reserves as many ranges as an object's first configuration asks for. A killed program loses what its session
/// holds. With a single pass the session is the only cost, as much as 25 launches, so it may hold more.
inline constexpr size_t kMaxRanges = 64, kMaxRangesOnePass = 256;

struct CounterSession {
  void* context;  ///< nullptr: the place is free
  uint32_t device;
  abi::Profiler profiler;
  int range;  ///< kind of ranges, which an object keeps
  bool running;
  size_t used;       ///< ranges since start()
  uint32_t carried;  ///< launches in a row that ran in it though the filter leaves them out
  uint32_t number;   ///< of the image that is being filled, among those of its GPU
  MappedBytes image, records;
};
inline constexpr size_t kMaxSessions = 32;
/// Slots without a context are free.
extern constinit CounterSession g_sessions[kMaxSessions];

/// Looks up the functions that sessions need; the result says which of CUPTI and the driver lacks one.
enum class Found { kAll, kNoRangeProfiler, kNoDriver };
Found find_session_functions();
/// Sets the function to call when the program exits. CUPTI registers exit handlers when a part of it is first used, and
/// handlers run in reverse order. Ours must run before CUPTI's, so tacho registers it again after each first use.
void set_exit_function(void (*finish)());

bool current_context(void** context);
/// The value of a CU_FUNC_ATTRIBUTE_* of a CUfunction or CUkernel; 0 when the driver does not give it.
uint32_t function_attribute(void* function, int attribute);
/// True while the stream is captured: launches go into a graph and do not run.
bool is_capturing(void* stream);

/// The context's session. Makes its profiler object if there is none or if it is of another kind (13 ms). The context
/// must be current. nullptr when collection has ended.
CounterSession* session_of(void* context, int range = abi::kAutoRange);
/// The context's existing session, nullptr when it has none.
CounterSession* known_session(void* context);
/// The session of another context on the current context's GPU, which must end before this context's session can start.
CounterSession* rival_of(void* context);
/// Destroys the session's object. `context_goes`: the context is being destroyed, so ignore CUPTI's errors.
void disable(CounterSession& session, bool context_goes = false);
/// Ranges that an image has room for; 0 before the first object was made.
size_t ranges();
/// Images have room for `most` ranges from the next object on.
void choose_ranges_afresh(size_t most);

/// Starts the image with the next number: an empty one or, in application replay, that of the run before.
bool fresh_image(CounterSession& session);
bool configure(CounterSession& session, int replay, size_t pass);
bool start(CounterSession& session);
bool stop(CounterSession& session);
/// Opens a user range, which holds exactly the launches between push() and pop().
bool push(CounterSession& session);
bool pop(CounterSession& session);
bool decode(CounterSession& session);
/// Number of ranges in the image, SIZE_MAX when CUPTI does not give it.
size_t ranges_in(const CounterSession& session);

/// Appends a record. Returns its offset in `records`, SIZE_MAX when there is no memory.
size_t add_record(MappedBytes& records, const spool::CounterRecord& record, const char* name);
inline spool::CounterRecord* record_at(MappedBytes& records, size_t offset) {
  return reinterpret_cast<spool::CounterRecord*>(records.data + offset);
}
/// Writes the image under its final name, then the records of its ranges.
void write_image(CounterSession& session);
void write_records(MappedBytes& records);

}  // namespace tacho::capture::counter

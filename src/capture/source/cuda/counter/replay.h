// Kernel replay: runs a batch of launches again. This part knows which driver calls end a batch. It saves the memory
// that kernels can write before the batch and restores it before every further pass, and it keeps launches with copies
// of their arguments. After the last pass it restores the results of the first execution, the only ones that the
// program ever sees.
//
// Replay does not save arrays (surfaces), memory of other processes and of graphics interfaces, or device-side heaps.
// While a program has any of the first two, problem() says so and tacho falls back to CUPTI's own kernel replay.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::capture::counter {

/// The effect of a driver call on an open batch.
enum class Effect : uint8_t {
  kNone,
  kLaunch,         ///< a kernel or graph
  kReads,          ///< copies memory to the host: not while launches are being run again
  kChanges,        ///< memory, modules or streams: the batch ends before it
  kCaptureBegins,  ///< of a stream; launches into it do not run
  kCaptureEnds,
};
Effect effect_of(const char* function);

namespace replay {

/// Looks up the driver's functions; false when the driver is too old (arguments can be queried from 12.4 on).
bool find_functions();

/// Call after a driver call of effect kChanges: notes what it allocated and freed. `function`: CUPTI's name for the
/// call.
void note_call(const char* function, const void* parameters, void* context);
/// Reads the names of variables from a module's image (cubin) when it is loaded.
void note_module(const void* image, size_t bytes);

/// Why tacho cannot run launches again; nullptr = it can.
const char* problem();
/// Grows whenever a module is loaded or unloaded; prepare() must then be called again for every function.
uint32_t generation();

/// A launching call as CUPTI's callback shows it.
struct LaunchCall {
  enum class Kind : uint8_t { kKernel, kCooperative, kExtended, kGraph };
  Kind kind;
  void* handle;            ///< function or executable graph
  const void* parameters;  ///< the call's arguments, in a structure
};
LaunchCall::Kind kind_of(const char* function);

/// Loads the function's module and notes its variables. False if that found new ones, which an open batch has not
/// saved.
bool prepare(const LaunchCall& call);
/// False once the driver failed to name a kernel's module or the size of a variable: replay could then not restore what
/// the kernels of a graph change.
bool variables_known();
/// True if an argument points to memory that the host can write too. Such a launch must be a batch of its own.
bool touches_host(const LaunchCall& call);

/// Opens a batch: saves device memory and, with `with_host`, host memory. Returns nullptr, or why it cannot.
const char* begin(void* context, bool with_host);
/// Keeps a launch of the batch. False when it cannot be run again; nothing is kept then.
bool keep(const LaunchCall& call);
/// The cache was emptied before the launch kept last; run_again() will empty it there too.
void note_emptied();
size_t kept();
/// Call after the first execution: finds what it wrote and saves that. Returns nullptr, or why it cannot.
const char* first_done();
/// Restores memory to the start of the batch. Returns nullptr, or what failed.
const char* put_back();
/// Runs the kept launches again, in order. Returns nullptr, or what failed.
const char* run_again();
/// Ends the batch and leaves memory as the first execution left it.
const char* end();
/// Ends the batch and leaves memory as if the batch had never run.
const char* drop();

/// Waits until the GPU has finished all work of this context. False on an error.
bool settle(void* context);
/// How tacho empties the caches before it measures a kernel, so that they hold no data of the kernel and no dirty
/// lines. kByDriver: the driver writes back and invalidates the L2, if a check has shown that this works, and loading a
/// module makes it invalidate the instruction and constant caches. kBySweep: a kernel, as a range of its own, reads
/// twice the size of the L2, which fills the L2 with lines of that memory. (Every launch begins with an empty L1.)
enum class Emptied : uint8_t { kFailed, kByDriver, kBySweep };
/// The method for this context; kFailed if neither works.
Emptied emptied_by(void* context);
Emptied empty_cache(void* context);

/// Call when the program allocates: if little device memory is left, frees the part that saved memory takes.
void give_memory_back();
/// Forgets a destroyed context and everything in it.
void forget(void* context);

}  // namespace replay
}  // namespace tacho::capture::counter

// Running a batch of launches again: which driver calls end a batch, the memory that kernels can write, saved
// before the batch and put back before every further pass, and the launches kept with copies of their
// arguments. The program only ever sees what the first execution wrote: after the last pass that is put back
// as well.
//
// Not saved: arrays (surfaces), memory of other processes and of graphics interfaces, device-side heaps.
// While a program has any of the first two, problem() says so and CUPTI's own kernel replay is used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::capture::counter {

/// What a driver call means for a batch that is open.
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

/// Looks up the driver's functions; false when the driver is too old (12.4: arguments can be asked for).
bool find_functions();

/// After a call of effect kChanges: notes what was allocated and given back. `function` is the name that
/// CUPTI gives.
void note_call(const char* function, const void* parameters, void* context);
/// Images of modules (cubins) as they are loaded: the names of variables in them.
void note_module(const void* image, size_t bytes);

/// Why launches cannot be run again by us, nullptr = they can.
const char* problem();
/// Grows whenever modules come or go: then prepare() is to be asked again for every function.
uint32_t generation();

/// A launching call as CUPTI's callback shows it.
struct Call {
  enum class Kind : uint8_t { kKernel, kCooperative, kExtended, kGraph };
  Kind kind;
  void* handle;            ///< function or executable graph
  const void* parameters;  ///< the call's arguments, in a structure
};
Call::Kind kind_of(const char* function);

/// Loads the function's module and notes its variables. False: there are new ones, which an open batch has
/// not saved.
bool prepare(const Call& call);
/// False once the driver has kept from us whose module a kernel is of or how large a variable is: what kernels of a graph
/// change could not be put back then.
bool variables_known();
/// True if an argument points to memory that the host can write too: such a launch is a batch of its own.
bool touches_host(const Call& call);

/// Saves memory; host memory too where `with_host`. nullptr, or why it cannot be.
const char* begin(void* context, bool with_host);
/// Keeps a launch of the batch; false when it cannot be run again (nothing is kept then).
bool keep(const Call& call);
/// The cache was emptied before the launch kept last, as it will be when it runs again.
void note_emptied();
size_t kept();
/// After the first execution: finds what was written and saves it. nullptr, or why it cannot be.
const char* first_done();
/// Memory as it was when the batch began.
const char* put_back();
/// Runs kept launches again, in their order. nullptr, or what failed.
const char* run_again();
/// Memory as the first execution left it; the batch is over.
const char* end();
/// Memory as it was when the batch began; the batch is over, as if it had never run.
const char* drop();

/// Waits until the GPU has done what was asked of it in this context.
bool settle(void* context);
/// How the caches are emptied before a kernel is measured, so that it finds nothing of its own in them and no line that has to
/// be written back. By the driver: it writes back and invalidates the L2 where that is seen to work, and loading a module makes it
/// invalidate the caches of instructions and constants. Else a kernel reads as much memory as fills the L2 twice, which
/// leaves it full of lines of that memory and is a range of its own. (Every launch begins with an empty L1.)
enum class Emptied : uint8_t { kFailed, kByDriver, kBySweep };
/// How it is done in this context; kFailed: there is neither.
Emptied emptied_by(void* context);
Emptied empty_cache(void* context);

/// The program wants memory: if little is left, what saved memory takes goes back to the device.
void give_memory_back();
/// A context is gone, and what was in it.
void forget(void* context);

}  // namespace replay
}  // namespace tacho::capture::counter

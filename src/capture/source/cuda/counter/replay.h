// Running a batch of launches again. This part knows which driver calls end a batch. It saves the memory that kernels can
// write before the batch and puts it back before every further pass, and it keeps launches with copies of their arguments.
// The program only ever sees what the first execution wrote, since that is put back after the last pass.
//
// Not saved: arrays (surfaces), memory of other processes and of graphics interfaces, device-side heaps. While a program
// has any of the first two, problem() says so and CUPTI's own kernel replay is used.
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

/// Looks up the driver's functions; false when the driver is too old (arguments can be queried from 12.4 on).
bool find_functions();

/// Call after a call of effect kChanges: notes what it allocated and freed. `function`: the name that CUPTI gives.
void note_call(const char* function, const void* parameters, void* context);
/// Reads the names of variables from a module's image (cubin) when it is loaded.
void note_module(const void* image, size_t bytes);

/// Why tacho cannot run launches again; nullptr = it can.
const char* problem();
/// Grows whenever a module is loaded or unloaded; prepare() must then be called again for every function.
uint32_t generation();

/// A launching call as CUPTI's callback shows it.
struct Call {
  enum class Kind : uint8_t { kKernel, kCooperative, kExtended, kGraph };
  Kind kind;
  void* handle;            ///< function or executable graph
  const void* parameters;  ///< the call's arguments, in a structure
};
Call::Kind kind_of(const char* function);

/// Loads the function's module and notes its variables. False if there are new ones, which an open batch has not saved.
bool prepare(const Call& call);
/// False once the driver has not told which module a kernel belongs to or how large a variable is: what kernels of a graph
/// change could then not be put back.
bool variables_known();
/// True if an argument points to memory that the host can write too: such a launch is a batch of its own.
bool touches_host(const Call& call);

/// Saves memory, with `with_host` also host memory. nullptr, or why it cannot.
const char* begin(void* context, bool with_host);
/// Keeps a launch of the batch; false, keeping nothing, when it cannot be run again.
bool keep(const Call& call);
/// The cache was emptied before the launch kept last; run_again() will empty it there too.
void note_emptied();
size_t kept();
/// Call after the first execution: finds what was written and saves it. nullptr, or why it cannot.
const char* first_done();
/// Puts memory back as it was when the batch began.
const char* put_back();
/// Runs kept launches again, in their order. nullptr, or what failed.
const char* run_again();
/// Ends the batch with memory as the first execution left it.
const char* end();
/// Ends the batch with memory as it was when the batch began, as if it had never run.
const char* drop();

/// Waits until the GPU has done what was asked of it in this context.
bool settle(void* context);
/// How the caches are emptied before a kernel is measured, so that the kernel finds no data of its own in them and no dirty
/// lines. kByDriver: the driver writes back and invalidates the L2, where that is seen to work, and loading a module makes it
/// invalidate the caches of instructions and constants. kBySweep: a kernel reads twice the size of the L2, which leaves the
/// L2 full of lines of that memory and is a range of its own. (Every launch begins with an empty L1.)
enum class Emptied : uint8_t { kFailed, kByDriver, kBySweep };
/// How it is done in this context; kFailed: there is neither.
Emptied emptied_by(void* context);
Emptied empty_cache(void* context);

/// The program wants memory: if little is left, frees what saved memory takes on the device.
void give_memory_back();
/// A context is gone, with everything in it.
void forget(void* context);

}  // namespace replay
}  // namespace tacho::capture::counter

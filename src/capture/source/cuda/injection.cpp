// Where the CUDA source begins and ends in a process: CUDA's driver loads libtacho.so because CUDA_INJECTION64_PATH
// names it and calls InitializeInjection() inside cuInit(). A run either traces (session.cpp) or collects counters
// (counter/).
#include <string.h>

#include <string_view>

#include "capture/capture.h"
#include "capture/source/cuda/counter/range_profiler.h"
#include "capture/source/cuda/cupti_api.h"
#include "tape/writer.h"

namespace tacho::capture {

void finish_cuda_before_exit() {
  cuda::finish_before_exit();
  counter::finish_before_exit();
}

}  // namespace tacho::capture

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  if (!tacho::capture::start()) return 1;
  char folder[1024];
  const std::string_view counters = tacho::tape::configuration().counter_folder;
  if (!counters.empty() && counters.size() < sizeof folder) {
    memcpy(folder, counters.data(), counters.size());
    folder[counters.size()] = '\0';
    tacho::capture::counter::start_range_profiler(folder);
    return 1;
  }
  tacho::capture::cuda::start_session();
  return 1;  // never a reason for the driver to complain: the program runs in any case
}

// The interface of a vendor in tacho's own process, without counters (counter/provider.h): how its source gets into a
// program, which of its devices this machine has, and their telemetry. vendors.def lists the vendors; the rest of tacho
// asks all of them and knows no name.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment_block.h"
#include "event/schema.h"
#include "vendor/check.h"
#include "vendor/gpu_monitor.h"

namespace tacho::vendor {

/// An environment variable through which a runtime of the vendor's loads libtacho.so.
struct Injection {
  enum class Kind {
    kSole,     ///< holds one library: left alone when the user has set it
    kPrepend,  ///< holds a list: libtacho.so comes first
  };
  const char* variable;
  Kind kind;
  const char* source;  ///< the API that is not traced if the variable is taken: "CUDA"
};

/// The facts that `tacho avail` shows.
struct DeviceFacts {
  std::string api;       ///< "CUDA"
  std::string platform;  ///< "CUDA 13.0, sm_90"
  std::string type;      ///< "GPU"
  int64_t units = 0;     ///< multiprocessors, compute units
  uint64_t memory = 0;   ///< bytes
  std::string driver, name;
};
struct SourceFacts {
  std::string source, state, meaning;
};
struct Inspection {
  std::vector<DeviceFacts> devices;
  std::vector<SourceFacts> sources;
};

class Vendor {
 public:
  virtual ~Vendor() = default;
  /// As the catalog calls it: "nvidia", "amd".
  virtual std::string_view name() const = 0;
  /// Whether a runtime that says `maker` of a device means this vendor ("Advanced Micro Devices, Inc.").
  virtual bool made(std::string_view maker) const = 0;
  /// Words with which its marketing names begin and that name no model, in their order: "NVIDIA ", "Tesla ".
  virtual std::span<const std::string_view> prefixes() const = 0;
  /// The API that the vendor's source records.
  virtual event::Domain api() const = 0;
  /// Whether people write the grids of its kernels in blocks of threads; else in work-items.
  virtual bool grids_in_blocks() const { return false; }
  virtual std::span<const Injection> injections() const { return {}; }
  /// Environment variables that change the behaviour of the vendor's programs and are therefore recorded.
  virtual std::span<const char* const> recorded_variables() const { return {}; }
  /// Further changes to a target's environment. `library`: path of libtacho.so.
  virtual void prepare(EnvironmentBlock& variables, const std::string& library) const {
    static_cast<void>(variables);
    static_cast<void>(library);
  }
  /// Parts of names of files that only processes that use the vendor's GPUs have in their memory map: runtimes and
  /// device files.
  virtual std::span<const char* const> device_marks() const { return {}; }
  /// Models of the GPUs that the vendor's kernel driver has in this machine ("H200"). Reads files only.
  virtual std::vector<std::string> installed_gpus() const = 0;
  /// Looks at the machine. May initialise the vendor's driver in this process: do not fork afterwards.
  virtual Inspection inspect() const { return {}; }
  /// The results of `tacho doctor` for the vendor's GPUs, driver, libraries and permissions here. As inspect(), may
  /// initialise the driver.
  virtual std::vector<Check> checks() const = 0;
  /// Why `executable`, which holds code for the vendor's GPUs, cannot reach one here, in one sentence; empty when it
  /// holds none or nothing is wrong. Reads files only.
  virtual std::string program_problem(const std::string& executable) const {
    static_cast<void>(executable);
    return {};
  }
  /// nullptr without the vendor's management library or without GPUs; `problems` names parts that exist but do not
  /// work.
  virtual std::unique_ptr<GpuMonitor> monitor(std::vector<std::string>& problems) const = 0;
};

/// All vendors of this build, in the order of vendors.def.
std::span<const Vendor* const> vendors();
/// nullptr when there is no vendor of that name.
const Vendor* vendor_named(std::string_view name);
/// How Perfetto numbers the API that a device's contexts belong to: by `api`, the word for it ("OpenCL"), if there is
/// one, else the API of the vendor that `maker` names ("Advanced Micro Devices, Inc."). 0 = not known.
uint32_t viewer_api(std::string_view maker, std::string_view api);

}  // namespace tacho::vendor

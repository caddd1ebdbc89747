// The checks of `tacho doctor`: one Check a thing, with the command that mends it. Vendors add their own (vendor.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tacho::vendor {

struct Check {
  enum class State : uint8_t {
    kGood,
    kNote,  ///< missing, or less than possible; tacho works without it, or its use is not wanted
    kBad,   ///< broken: something that this machine has, or that everything needs, does not work
  };
  std::string what;  ///< "NVIDIA driver"
  State state;
  std::string found;  ///< one sentence
  std::string mend;   ///< a command to type, or what to do; empty = nothing to do
};

/// The command that installs a package on this system, by /etc/os-release ("sudo apt-get install pocl-opencl-icd").
/// Without sudo for root. `fedora`: the name there; empty = the same.
std::string install_command(const std::string& debian, const std::string& fedora = {});
/// "sudo " for everybody but root.
std::string sudo();
/// Whether this process runs in a container, as far as can be seen: "docker", "podman", "lxc", "kubernetes",
/// "container"; empty = no.
std::string container();
/// Whether the PCI bus has a display or processing device of this vendor (0x10de).
bool pci_device_of(uint32_t vendor);

}  // namespace tacho::vendor

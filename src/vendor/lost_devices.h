// Results of calls after which nothing that a process has on its device is of use: a kernel did what it may not do, or
// the device failed.
#pragma once

#include <cstdint>
#include <string_view>

namespace tacho::vendor {

/// What happened, as in "an illegal memory access", when a call returned this; empty otherwise. Runtimes of GPUs number
/// these alike; those of OpenCL have none, and their results are negative.
inline std::string_view lost_device(int64_t result) {
  switch (result) {
    case 214:
      return "an uncorrectable ECC error";
    case 220:
      return "an uncorrectable NVLink error";
    case 700:
      return "an illegal memory access";
    case 702:
      return "a launch that timed out";
    case 710:
      return "a failed assertion in a kernel";
    case 714:
      return "a hardware stack error";
    case 715:
      return "an illegal instruction";
    case 716:
      return "a misaligned address";
    case 717:
      return "an invalid address space";
    case 718:
      return "an invalid program counter";
    case 719:
      return "a failed launch";
    default:
      return {};
  }
}

}  // namespace tacho::vendor

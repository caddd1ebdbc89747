// The NVIDIA kernel driver's resource manager, for the few things that CUDA has no call for: a GPU opened by its PCI
// address and asked directly. The layouts are those of the driver's open sources (NVIDIA/open-gpu-kernel-modules:
// nvos.h, ctrl0000gpu.h, cl0080.h, cl2080.h). Used in tacho and in targets.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>

namespace tacho::vendor::rm {

struct Allocate {  // NVOS64_PARAMETERS
  uint32_t client, parent, object, kind;
  const void* parameters;
  const void* rights;
  uint32_t parameter_bytes, flags, status, padding;
};
struct Control {  // NVOS54_PARAMETERS
  uint32_t client, object, command, flags;
  void* parameters;
  uint32_t parameter_bytes, status;
};
struct DeviceAllocation {  // NV0080_ALLOC_PARAMETERS
  uint32_t device, sharing, target_client, target_device, flags;
  uint64_t space_bytes, space_start, space_limit;
  uint32_t space_mode;
};
struct Attached {
  uint32_t gpus[32];
};
struct PciPlace {
  uint32_t gpu, domain;
  uint16_t bus, slot;
};
struct Identity {
  uint32_t gpu, flags, device, subdevice, sli, board, instance;
  int32_t numa;
};
static_assert(sizeof(Allocate) == 48 && sizeof(Control) == 32 && sizeof(DeviceAllocation) == 56 &&
              sizeof(PciPlace) == 12 && sizeof(Identity) == 32);

inline constexpr unsigned long kAllocate = _IOWR('F', 0x2b, Allocate), kControl = _IOWR('F', 0x2a, Control);
inline constexpr uint32_t kClient = 0x41, kDevice = 0x80, kSubdevice = 0x2080;  // classes
inline constexpr uint32_t kGetAttached = 0x201, kGetIdentity = 0x205, kGetPlace = 0x21b;

/// A GPU opened through the kernel driver.
struct Gpu {
  int file = -1;
  uint32_t client = 0, subdevice = 0;
};

inline bool ask(int file, unsigned long request, void* parameters) {
  int result = 0;
  do result = ioctl(file, request, parameters);
  while (result != 0 && (errno == EINTR || errno == EAGAIN));
  return result == 0;
}

template <typename Parameters>
bool control(int file, uint32_t client, uint32_t object, uint32_t command, Parameters& parameters) {
  Control call{client, object, command, 0, &parameters, sizeof parameters, 0};
  return ask(file, kControl, &call) && call.status == 0;
}
/// A command to the GPU's subdevice. False when the driver refuses.
template <typename Parameters>
bool control(const Gpu& gpu, uint32_t command, Parameters& parameters) {
  return gpu.file >= 0 && control(gpu.file, gpu.client, gpu.subdevice, command, parameters);
}

/// The new object's handle, 0 when it cannot be.
inline uint32_t allocate(int file, uint32_t client, uint32_t parent, uint32_t kind, const void* parameters,
                         uint32_t bytes) {
  Allocate call{client, parent, 0, kind, parameters, nullptr, bytes, 0, 0, 0};
  return ask(file, kAllocate, &call) && call.status == 0 ? call.object : 0;
}

inline const char* open_objects(int file, const char* pci, Gpu& into) {
  unsigned domain = 0, bus = 0, slot = 0;
  if (sscanf(pci, "%x:%x:%x", &domain, &bus, &slot) != 3) return "the GPU's PCI address is unknown";
  into.client = allocate(file, 0, 0, kClient, nullptr, 0);
  if (into.client == 0) return "the kernel driver gives no client";
  Attached attached{};
  if (!control(file, into.client, into.client, kGetAttached, attached))
    return "the kernel driver does not list its GPUs";
  for (const uint32_t gpu : attached.gpus) {
    if (gpu == 0xffffffff) break;
    PciPlace place{gpu, 0, 0, 0};
    if (!control(file, into.client, into.client, kGetPlace, place)) continue;
    if (place.domain != domain || place.bus != bus || place.slot != slot) continue;
    Identity identity{};
    identity.gpu = gpu;
    if (!control(file, into.client, into.client, kGetIdentity, identity))
      return "the kernel driver does not identify the GPU";
    DeviceAllocation device{};
    device.device = identity.device;
    const uint32_t parent = allocate(file, into.client, into.client, kDevice, &device, sizeof device);
    if (parent == 0) return "the kernel driver does not open the GPU";
    into.subdevice = allocate(file, into.client, parent, kSubdevice, &identity.subdevice, sizeof identity.subdevice);
    return into.subdevice == 0 ? "the kernel driver does not open the GPU itself" : nullptr;
  }
  return "the kernel driver does not know the GPU";
}

inline void close_gpu(Gpu& gpu) {
  if (gpu.file >= 0) close(gpu.file);
  gpu = Gpu{};
}

/// Opens the GPU with this PCI address, written as by cuDeviceGetPCIBusId() ("0000:1b:00.0"). Returns nullptr, or the
/// error.
inline const char* open_gpu(const char* pci, Gpu& into) {
  into.file = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
  if (into.file < 0) return "/dev/nvidiactl cannot be opened";
  const char* const problem = open_objects(into.file, pci, into);
  if (problem != nullptr) close_gpu(into);
  return problem;
}

}  // namespace tacho::vendor::rm

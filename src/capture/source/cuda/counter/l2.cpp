// The kernel driver's resource manager, as far as it is needed to flush a cache (l2.h). The layouts are those of its
// open sources (NVIDIA/open-gpu-kernel-modules: nvos.h, ctrl0000gpu.h, ctrl2080fb.h, cl0080.h, cl2080.h).
#include "capture/source/cuda/counter/l2.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace tacho::capture::counter {
namespace {

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
struct Device {  // NV0080_ALLOC_PARAMETERS
  uint32_t device, sharing, target_client, target_device, flags;
  uint64_t space_bytes, space_start, space_limit;
  uint32_t space_mode;
};
struct Attached {
  uint32_t gpus[32];
};
struct Place {
  uint32_t gpu, domain;
  uint16_t bus, slot;
};
struct Identity {
  uint32_t gpu, flags, device, subdevice, sli, board, instance;
  int32_t numa;
};
struct Flush {
  uint64_t addresses[500];
  uint32_t address_count, alignment;
  uint64_t block_bytes;
  uint32_t flags;
};
static_assert(sizeof(Allocate) == 48 && sizeof(Control) == 32 && sizeof(Device) == 56 && sizeof(Place) == 12 &&
              sizeof(Identity) == 32 && sizeof(Flush) == 4024);

constexpr unsigned long kAllocate = _IOWR('F', 0x2b, Allocate), kControl = _IOWR('F', 0x2a, Control);
constexpr uint32_t kClient = 0x41, kDevice = 0x80, kSubdevice = 0x2080;  // classes
constexpr uint32_t kGetAttached = 0x201, kGetIdentity = 0x205, kGetPlace = 0x21b, kFlush = 0x2080130e;
constexpr uint32_t kWriteBack = 1u << 2, kInvalidate = 1u << 3, kWholeCache = 1u << 4;  // of video memory

bool ask(int file, unsigned long request, void* parameters) {
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

/// The new object's handle, 0 when it cannot be.
uint32_t allocate(int file, uint32_t client, uint32_t parent, uint32_t kind, const void* parameters, uint32_t bytes) {
  Allocate call{client, parent, 0, kind, parameters, nullptr, bytes, 0, 0, 0};
  return ask(file, kAllocate, &call) && call.status == 0 ? call.object : 0;
}

const char* open_objects(int file, const char* pci, L2& into) {
  unsigned domain = 0, bus = 0, slot = 0;
  if (sscanf(pci, "%x:%x:%x", &domain, &bus, &slot) != 3) return "the GPU's PCI address is unknown";
  into.client = allocate(file, 0, 0, kClient, nullptr, 0);
  if (into.client == 0) return "the kernel driver gives no client";
  Attached attached{};
  if (!control(file, into.client, into.client, kGetAttached, attached))
    return "the kernel driver does not list its GPUs";
  for (const uint32_t gpu : attached.gpus) {
    if (gpu == 0xffffffff) break;
    Place place{gpu, 0, 0, 0};
    if (!control(file, into.client, into.client, kGetPlace, place)) continue;
    if (place.domain != domain || place.bus != bus || place.slot != slot) continue;
    Identity identity{};
    identity.gpu = gpu;
    if (!control(file, into.client, into.client, kGetIdentity, identity))
      return "the kernel driver does not identify the GPU";
    Device device{};
    device.device = identity.device;
    const uint32_t parent = allocate(file, into.client, into.client, kDevice, &device, sizeof device);
    if (parent == 0) return "the kernel driver does not open the GPU";
    into.subdevice = allocate(file, into.client, parent, kSubdevice, &identity.subdevice, sizeof identity.subdevice);
    return into.subdevice == 0 ? "the kernel driver does not open the GPU's memory" : nullptr;
  }
  return "the kernel driver does not know the GPU";
}

}  // namespace

const char* open_l2(const char* pci, L2& into) {
  into.file = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
  if (into.file < 0) return "/dev/nvidiactl cannot be opened";
  const char* const problem = open_objects(into.file, pci, into);
  if (problem != nullptr) close_l2(into);
  return problem;
}

void close_l2(L2& l2) {
  if (l2.file >= 0) close(l2.file);
  l2 = L2{};
}

bool empty_l2(const L2& l2) {
  static Flush s_flush;  // large for a stack; callers take turns
  memset(&s_flush, 0, sizeof s_flush);
  s_flush.flags = kWriteBack | kInvalidate | kWholeCache;
  return l2.file >= 0 && control(l2.file, l2.client, l2.subdevice, kFlush, s_flush);
}

}  // namespace tacho::capture::counter

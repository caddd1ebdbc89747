// PC sampling on NVIDIA in the target (pc_sampler.h). CUPTI samples continuously, kernels run as they would; it adds up
// samples by instruction and stall reason, and we fetch the sums before modules go, every second, and at the end.
#include "capture/source/cuda/counter/pc_sampler.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <type_traits>

#include "base/clock.h"
#include "capture/room/pages.h"
#include "event/spool/spool_samples.h"
#include "vendor/nvidia/cupti_sampling.h"

namespace tacho::capture::counter {
namespace {

namespace abi = vendor::cupti::sampling;

struct Functions {
  int (*enable)(abi::ContextCall*);
  int (*disable)(abi::ContextCall*);
  int (*reason_count)(abi::ReasonCount*);
  int (*reasons)(abi::Reasons*);
  int (*configure)(abi::Configure*);
  int (*get_data)(abi::GetData*);
  int (*crc)(abi::Crc*);
};

constexpr size_t kContexts = 16, kInstructions = 4096, kMaxReasons = 256, kName = 128;
constexpr int64_t kPeriod = 1'000'000'000;

constinit Functions g_call{};
constinit char g_folder[1024] = {};
constinit unsigned g_number = 0;
constinit void* g_contexts[kContexts] = {};
constinit size_t g_reason_count = 0;
constinit abi::Data g_data{};
constinit bool g_ready = false;
constinit std::atomic<bool> g_busy{false};
constinit std::atomic<int64_t> g_last{0};

template <typename T>
T* zeroed(size_t count) {
  void* const map = map_pages(count * sizeof(T));
  return map == nullptr ? nullptr : static_cast<T*>(map);
}

void append(const char* suffix, const void* bytes, size_t size) {
  if (size == 0) return;
  char path[1152];
  snprintf(path, sizeof path, "%s/%u.%s", g_folder, g_number, suffix);
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  const auto* at = static_cast<const char*>(bytes);
  while (size != 0) {
    const ssize_t written = write(file, at, size);
    if (written <= 0) break;
    at += written;
    size -= static_cast<size_t>(written);
  }
  close(file);
}

bool make_buffers() {
  if (g_data.sampled != nullptr) return true;
  auto* const sampled = zeroed<abi::Sampled>(kInstructions);
  auto* const reasons = zeroed<abi::Reason>(kInstructions * g_reason_count);
  if (sampled == nullptr || reasons == nullptr) return false;
  for (size_t i = 0; i < kInstructions; ++i) {
    sampled[i].size = sizeof(abi::Sampled);
    sampled[i].reasons = reasons + i * g_reason_count;
  }
  g_data.size = sizeof g_data;
  g_data.wanted = kInstructions;
  g_data.sampled = sampled;
  return true;
}

void write_data() {
  static constinit uint8_t* s_bytes = nullptr;
  constexpr size_t kBytes = 1 << 20;
  if (s_bytes == nullptr) s_bytes = zeroed<uint8_t>(kBytes);
  if (s_bytes == nullptr) return;
  size_t used = 0;
  const auto put = [&](spool::PcSampleRecord record, const abi::Reason* reasons, const char* name) {
    const size_t name_bytes = strlen(name), padded = (name_bytes + 7) / 8 * 8;
    const size_t bytes = sizeof record + record.reasons * sizeof(abi::Reason) + padded;
    if (bytes > kBytes) return;
    if (used + bytes > kBytes) {
      append("samples", s_bytes, used);
      used = 0;
    }
    record.magic = spool::kSampleMagic;
    record.bytes = static_cast<uint32_t>(bytes);
    record.name_bytes = static_cast<uint32_t>(name_bytes);
    uint8_t* at = s_bytes + used;
    memcpy(at, &record, sizeof record);
    at += sizeof record;
    if (reasons != nullptr && record.reasons != 0) memcpy(at, reasons, record.reasons * sizeof(abi::Reason));
    at += record.reasons * sizeof(abi::Reason);
    memset(at, 0, padded);
    if (name_bytes != 0) memcpy(at, name, name_bytes);
    used += bytes;
  };
  for (size_t i = 0; i < g_data.got && i < kInstructions; ++i) {
    const abi::Sampled& each = g_data.sampled[i];
    spool::PcSampleRecord record{};
    record.cubin = each.cubin;
    record.offset = each.offset;
    record.function = each.function;
    record.reasons = static_cast<uint32_t>(each.reason_count < g_reason_count ? each.reason_count : g_reason_count);
    put(record, each.reasons, each.name == nullptr ? "" : each.name);
  }
  spool::PcSampleRecord totals{};
  totals.function = spool::kNoSamples;
  totals.total = g_data.total;
  totals.dropped = g_data.dropped;
  if (g_data.total != 0 || g_data.dropped != 0) put(totals, g_data.sampled[0].reasons, "");
  append("samples", s_bytes, used);
  g_data.got = 0;
  g_data.total = g_data.dropped = 0;
}

void fetch(void* context) {
  if (!g_ready) return;
  for (int rounds = 0; rounds < 1000; ++rounds) {
    abi::GetData get{sizeof get, nullptr, context, &g_data};
    g_data.got = g_data.remaining = 0;
    const int result = g_call.get_data(&get);
    const size_t remaining = g_data.remaining;
    if (g_data.hardware_buffer_full != 0)
      cuda::say_warning("CUPTI's buffer for PC samples was full: samples of some time are missing");
    write_data();
    if (result != 0 || remaining == 0) return;
  }
}

bool enter() {
  return !g_busy.exchange(true, std::memory_order_acquire);
}
void leave() {
  g_busy.store(false, std::memory_order_release);
}

bool set_up(void* context) {
  abi::ContextCall enable{sizeof enable, nullptr, context};
  if (const int result = g_call.enable(&enable); result != 0) {
    char line[256];
    snprintf(line, sizeof line, "PC samples cannot be taken: CUPTI refuses (error %d)%s", result,
             result == cuda::abi::kInsufficientPrivileges
                 ? "; the driver lets only administrators profile (ERR_NVGPUCTRPERM)"
                 : "");
    cuda::say_warning(line);
    return false;
  }
  if (!g_ready) {
    abi::ReasonCount count{sizeof count, nullptr, context, &g_reason_count};
    if (g_call.reason_count(&count) != 0 || g_reason_count == 0 || g_reason_count > kMaxReasons) return false;
    auto* const names = zeroed<char>(g_reason_count * kName);
    auto* const pointers = zeroed<char*>(g_reason_count);
    auto* const indices = zeroed<uint32_t>(g_reason_count);
    if (names == nullptr || pointers == nullptr || indices == nullptr || !make_buffers()) return false;
    for (size_t i = 0; i < g_reason_count; ++i) pointers[i] = names + i * kName;
    abi::Reasons reasons{sizeof reasons, nullptr, context, g_reason_count, indices, pointers};
    if (g_call.reasons(&reasons) != 0) return false;
    for (size_t i = 0; i < g_reason_count; ++i) {
      char line[kName + 16];
      const int length = snprintf(line, sizeof line, "%u %s\n", indices[i], pointers[i]);
      if (length > 0) append("reasons", line, static_cast<size_t>(length));
    }
  }
  abi::SamplingSetting settings[4] = {};
  settings[0].type = abi::kCollectionMode;
  settings[0].value.number = abi::kContinuous;
  settings[1].type = abi::kOutputFormat;
  settings[1].value.number = abi::kParsed;
  settings[2].type = abi::kScratchBuffer;
  settings[2].value.bytes = size_t{16} << 20;
  settings[3].type = abi::kDataBuffer;
  settings[3].value.buffer = &g_data;
  abi::Configure configure{sizeof configure, nullptr, context, 4, settings};
  if (const int result = g_call.configure(&configure); result != 0) {
    char line[256];
    snprintf(line, sizeof line, "PC samples cannot be taken: CUPTI does not take its settings (error %d; %d %d %d %d)",
             result, settings[0].status, settings[1].status, settings[2].status, settings[3].status);
    cuda::say_warning(line);
    return false;
  }
  g_ready = true;
  return true;
}

void close_context(void* context) {
  fetch(context);
  abi::ContextCall disable{sizeof disable, nullptr, context};
  if (g_call.disable(&disable) == 0) write_data();  // the remaining samples went to the data buffer
}

}  // namespace

bool start_pc_sampler(const cuda::Cupti& cupti, const char* folder, unsigned number, const char** why) {
  snprintf(g_folder, sizeof g_folder, "%s", folder);
  g_number = number;
  void* const library = dlopen(cupti.path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  const auto find = [&](auto& to, const char* symbol) {
    to = library == nullptr ? nullptr : reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, symbol));
    return to != nullptr;
  };
  if (find(g_call.enable, "cuptiPCSamplingEnable") && find(g_call.disable, "cuptiPCSamplingDisable") &&
      find(g_call.reason_count, "cuptiPCSamplingGetNumStallReasons") &&
      find(g_call.reasons, "cuptiPCSamplingGetStallReasons") &&
      find(g_call.configure, "cuptiPCSamplingSetConfigurationAttribute") &&
      find(g_call.get_data, "cuptiPCSamplingGetData") && find(g_call.crc, "cuptiGetCubinCrc"))
    return true;
  *why = "this CUPTI has no PC sampling";
  return false;
}

void on_context(void* context, bool created) {
  if (!enter()) return;
  for (void*& slot : g_contexts) {
    if (created && slot == nullptr) {
      if (set_up(context)) slot = context;
      break;
    }
    if (!created && slot == context) {
      close_context(context);
      slot = nullptr;
      break;
    }
  }
  leave();
}

void on_module(void* context, const void* image, size_t bytes, bool loaded) {
  if (loaded && image != nullptr && bytes != 0) {
    abi::Crc crc{sizeof crc, bytes, image, 0};
    if (g_call.crc(&crc) == 0) {
      char path[1152];
      snprintf(path, sizeof path, "%s/%llx.cubin", g_folder, static_cast<unsigned long long>(crc.crc));
      const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      const auto* at = static_cast<const char*>(image);
      for (size_t left = bytes; file >= 0 && left != 0;) {
        const ssize_t written = write(file, at, left);
        if (written <= 0) break;
        at += written;
        left -= static_cast<size_t>(written);
      }
      if (file >= 0) close(file);
    }
  }
  // Sums are by module and offset: they are fetched before one takes the place of another.
  if (!loaded && enter()) {
    for (void* const each : g_contexts)
      if (each != nullptr && (context == nullptr || each == context)) fetch(each);
    leave();
  }
}

void on_launch() {
  const int64_t now = raw_now();
  int64_t last = g_last.load(std::memory_order_relaxed);
  if (last == 0) g_last.compare_exchange_strong(last, now);
  if (now - last < kPeriod || !g_last.compare_exchange_strong(last, now) || !enter()) return;
  for (void* const each : g_contexts)
    if (each != nullptr) fetch(each);
  leave();
}

void finish_pc_sampler() {
  if (!enter()) return;
  for (void*& slot : g_contexts) {
    if (slot == nullptr) continue;
    close_context(slot);
    slot = nullptr;
  }
  leave();
}

}  // namespace tacho::capture::counter

// NVTX 3 without CUDA: NVTX's header-only library loads the file that NVTX_INJECTION64_PATH names and calls
// InitializeInjectionNvtx2, which puts our functions into the program's table. The default domain appears as "NVTX".
// Handles of domains and registered strings are the numbers of interned strings; resources are ignored.
#include "capture/source/marker/nvtx.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "capture/capture.h"
#include "capture/room/pages.h"
#include "capture/source/marker/marker.h"
#include "capture/source/marker/nvtx_abi.h"
#include "tape/writer.h"

namespace tacho::capture::nvtx {
namespace {

using marker::Marker;
using Domain = const void*;
using StringHandle = const void*;

const void* to_handle(uint32_t number) {
  return reinterpret_cast<const void*>(static_cast<uintptr_t>(uint64_t{tape::late_session()} << 32 | number));
}

constinit std::atomic<uint32_t> g_default_domain{0};
// Of a registered text whose number is not known: the program had registered it before tacho attached.
constexpr std::string_view kTextFromBefore = "(text from before tacho attached)";
constinit std::atomic<uint64_t> g_unknown_texts{0};

// Wide text as UTF-8 in memory of this call. Text that does not fit is cut and counted.
class Narrow {
 public:
  explicit Narrow(const wchar_t* text) {
    if (text == nullptr) return;
    size_t bytes = 0;
    const wchar_t* end = text;
    for (; *end != 0; ++end) {
      const size_t more = width(static_cast<uint32_t>(*end));
      if (bytes + more > tape::kLongestText) {
        marker::count_cut();
        break;
      }
      bytes += more;
    }
    data_ = small_;
    if (bytes > sizeof small_) {
      void* const at = map_pages(bytes);
      if (at == nullptr) return;
      data_ = static_cast<char*>(at);
      mapped_ = bytes;
    }
    for (; text != end; ++text) put(static_cast<uint32_t>(*text));
  }
  ~Narrow() {
    if (mapped_ != 0) munmap(data_, mapped_);
  }
  Narrow(const Narrow&) = delete;
  Narrow& operator=(const Narrow&) = delete;
  std::string_view view() const { return {data_, size_}; }

 private:
  static size_t width(uint32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 || c > 0x10ffff ? 3 : 4; }
  void byte(uint32_t value) { data_[size_++] = static_cast<char>(value); }
  void put(uint32_t c) {
    if (c > 0x10ffff) c = 0xfffd;
    if (c < 0x80) return byte(c);
    if (c < 0x800) {
      byte(0xc0 | c >> 6);
    } else {
      if (c < 0x10000) {
        byte(0xe0 | c >> 12);
      } else {
        byte(0xf0 | c >> 18);
        byte(0x80 | (c >> 12 & 0x3f));
      }
      byte(0x80 | (c >> 6 & 0x3f));
    }
    byte(0x80 | (c & 0x3f));
  }
  char small_[1024];
  char* data_ = small_;
  size_t size_ = 0;
  size_t mapped_ = 0;
};

// Names of categories by (domain, number): open addressing, filled once each, never shrunk. More than it holds appear
// under their numbers.
struct CategoryName {
  std::atomic<uint64_t> key;  // domain << 32 | category; 0 = empty (domains are never 0)
  std::atomic<uint32_t> name;
};
constexpr uint32_t kCategories = 4096;
constinit CategoryName g_categories[kCategories] = {};

CategoryName* find_category(uint32_t domain, uint32_t category, bool add) {
  const uint64_t key = static_cast<uint64_t>(domain) << 32 | category;
  auto at = static_cast<uint32_t>((key * 0x9e3779b97f4a7c15ULL) >> 52);
  for (uint32_t i = 0; i < kCategories; ++i, at = (at + 1) % kCategories) {
    uint64_t there = g_categories[at].key.load(std::memory_order_acquire);
    if (there == 0 && !add) return nullptr;
    if (there == 0 && g_categories[at].key.compare_exchange_strong(there, key, std::memory_order_acq_rel))
      return &g_categories[at];
    if (there == key) return &g_categories[at];
  }
  return nullptr;
}

void name_category(uint32_t domain, uint32_t category, std::string_view name) {
  if (CategoryName* entry = find_category(domain, category, true))
    entry->name.store(tape::intern(name), std::memory_order_release);
}

uint32_t category_name(uint32_t domain, uint32_t category) {
  if (const CategoryName* entry = find_category(domain, category, false))
    if (const uint32_t name = entry->name.load(std::memory_order_acquire); name != 0) return name;
  char text[16];
  const int size = snprintf(text, sizeof text, "%u", category);
  return tape::intern({text, static_cast<size_t>(size)});
}

// Calls `body` with the marker that NVTX's attributes describe.
template <typename Body>
auto with_event(Domain domain, const EventAttributes* given, Body body) {
  Payloads payloads;
  EventAttributes event{};  // fields that the caller's NVTX does not have stay 0
  if (given != nullptr) memcpy(&event, given, given->size < sizeof event ? given->size : sizeof event);
  Marker marker;
  marker.domain = domain_number(domain);
  if (event.category != 0) marker.category = category_name(marker.domain, event.category);
  marker.has_color = event.color_type == 1;
  marker.color = event.color;
  switch (event.payload_type) {
    case kUnsigned64:
    case kSigned64:
      marker.payload = event.payload.u64;
      break;
    case kUnsigned32:
      marker.payload = event.payload.u32;
      break;
    case kSigned32:
      marker.payload = static_cast<uint64_t>(static_cast<int64_t>(event.payload.i32));
      break;
    case kFloat64:
      marker.payload = std::bit_cast<uint64_t>(event.payload.f64);
      break;
    case kFloat32:
      marker.payload = std::bit_cast<uint64_t>(static_cast<double>(event.payload.f32));
      break;
    case kExtendedPayload:
      if (!marker::active()) break;
      read_payloads(marker.domain, reinterpret_cast<const PayloadData*>(event.payload.u64),
                    static_cast<size_t>(event.reserved > 0 ? event.reserved : 0), payloads);
      marker.fields = {payloads.bytes, payloads.size};
      break;
    default:
      break;
  }
  if (event.payload_type == kFloat64 || event.payload_type == kFloat32)
    marker.payload_flag = event::kMarkerDouble;
  else if (event.payload_type >= kUnsigned64 && event.payload_type <= kSigned32)
    marker.payload_flag = event::kMarkerInteger;
  if (event.message_type == kUnicode) {
    const Narrow text(event.message.unicode);
    marker.text = text.view();
    return body(marker);
  }
  if (event.message_type == kRegistered) {
    marker.interned = to_number(event.message.registered);
    if (marker.interned == 0 && tape::attached_late()) {
      marker.text = kTextFromBefore;
      if (marker::active()) g_unknown_texts.fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (event.message_type == kAscii) marker.text = marker::clip(event.message.ascii);
  return body(marker);
}

Marker plain(std::string_view text) {
  return {.text = text, .domain = domain_number(nullptr)};
}

void mark_ex(const EventAttributes* event) {
  with_event(nullptr, event, marker::mark);
}
void mark_a(const char* text) {
  marker::mark(plain(marker::clip(text)));
}
void mark_w(const wchar_t* text) {
  marker::mark(plain(Narrow(text).view()));
}
uint64_t range_start_ex(const EventAttributes* event) {
  return with_event(nullptr, event, marker::start);
}
uint64_t range_start_a(const char* text) {
  return marker::start(plain(marker::clip(text)));
}
uint64_t range_start_w(const wchar_t* text) {
  return marker::start(plain(Narrow(text).view()));
}
void range_end(uint64_t id) {
  marker::stop(id);
}
int range_push_ex(const EventAttributes* event) {
  return with_event(nullptr, event, marker::push);
}
int range_push_a(const char* text) {
  return marker::push(plain(marker::clip(text)));
}
int range_push_w(const wchar_t* text) {
  return marker::push(plain(Narrow(text).view()));
}
int range_pop() {
  return marker::pop(domain_number(nullptr));
}
void name_category_a(uint32_t category, const char* name) {
  name_category(domain_number(nullptr), category, marker::clip(name));
}
void name_category_w(uint32_t category, const wchar_t* name) {
  name_category(domain_number(nullptr), category, Narrow(name).view());
}
void name_thread_a(uint32_t tid, const char* name) {
  marker::name_thread(tid, marker::clip(name));
}
void name_thread_w(uint32_t tid, const wchar_t* name) {
  marker::name_thread(tid, Narrow(name).view());
}

void domain_mark_ex(Domain domain, const EventAttributes* event) {
  with_event(domain, event, marker::mark);
}
uint64_t domain_range_start_ex(Domain domain, const EventAttributes* event) {
  return with_event(domain, event, marker::start);
}
void domain_range_end(Domain, uint64_t id) {
  marker::stop(id);
}
int domain_range_push_ex(Domain domain, const EventAttributes* event) {
  return with_event(domain, event, marker::push);
}
int domain_range_pop(Domain domain) {
  return marker::pop(domain_number(domain));
}
void domain_name_category_a(Domain domain, uint32_t category, const char* name) {
  name_category(domain_number(domain), category, marker::clip(name));
}
void domain_name_category_w(Domain domain, uint32_t category, const wchar_t* name) {
  name_category(domain_number(domain), category, Narrow(name).view());
}
StringHandle register_string_a(Domain, const char* text) {
  return to_handle(tape::intern(marker::clip(text)));
}
StringHandle register_string_w(Domain, const wchar_t* text) {
  return to_handle(tape::intern(Narrow(text).view()));
}
Domain create_domain_a(const char* name) {
  return to_handle(tape::intern(marker::clip(name)));
}
Domain create_domain_w(const wchar_t* name) {
  return to_handle(tape::intern(Narrow(name).view()));
}

template <typename Signature>
Hook hook(NvtxModule module, unsigned number, const char* name, Signature* function) {
  return {module, number, name, reinterpret_cast<Function>(function)};
}

bool install(const ExportCallbacks& callbacks, NvtxModule module, const Hook (&hooks)[kHooks]) {
  FunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks.get_module_function_table(module, &table, &size) == 0 || table == nullptr) return false;
  for (const Hook& hook : hooks)
    if (hook.module == module && hook.number < size && table[hook.number] != nullptr)
      *table[hook.number] = hook.function;
  return true;
}

}  // namespace

void list_hooks(Hook (&to)[kHooks]) {
  const Hook hooks[] = {
      hook(kCore, kMarkEx, "nvtxMarkEx", mark_ex),
      hook(kCore, kMarkA, "nvtxMarkA", mark_a),
      hook(kCore, kMarkW, "nvtxMarkW", mark_w),
      hook(kCore, kRangeStartEx, "nvtxRangeStartEx", range_start_ex),
      hook(kCore, kRangeStartA, "nvtxRangeStartA", range_start_a),
      hook(kCore, kRangeStartW, "nvtxRangeStartW", range_start_w),
      hook(kCore, kRangeEnd, "nvtxRangeEnd", range_end),
      hook(kCore, kRangePushEx, "nvtxRangePushEx", range_push_ex),
      hook(kCore, kRangePushA, "nvtxRangePushA", range_push_a),
      hook(kCore, kRangePushW, "nvtxRangePushW", range_push_w),
      hook(kCore, kRangePop, "nvtxRangePop", range_pop),
      hook(kCore, kNameCategoryA, "nvtxNameCategoryA", name_category_a),
      hook(kCore, kNameCategoryW, "nvtxNameCategoryW", name_category_w),
      hook(kCore, kNameOsThreadA, "nvtxNameOsThreadA", name_thread_a),
      hook(kCore, kNameOsThreadW, "nvtxNameOsThreadW", name_thread_w),
      hook(kCore2, kDomainMarkEx, "nvtxDomainMarkEx", domain_mark_ex),
      hook(kCore2, kDomainRangeStartEx, "nvtxDomainRangeStartEx", domain_range_start_ex),
      hook(kCore2, kDomainRangeEnd, "nvtxDomainRangeEnd", domain_range_end),
      hook(kCore2, kDomainRangePushEx, "nvtxDomainRangePushEx", domain_range_push_ex),
      hook(kCore2, kDomainRangePop, "nvtxDomainRangePop", domain_range_pop),
      hook(kCore2, kDomainNameCategoryA, "nvtxDomainNameCategoryA", domain_name_category_a),
      hook(kCore2, kDomainNameCategoryW, "nvtxDomainNameCategoryW", domain_name_category_w),
      hook(kCore2, kDomainRegisterStringA, "nvtxDomainRegisterStringA", register_string_a),
      hook(kCore2, kDomainRegisterStringW, "nvtxDomainRegisterStringW", register_string_w),
      hook(kCore2, kDomainCreateA, "nvtxDomainCreateA", create_domain_a),
      hook(kCore2, kDomainCreateW, "nvtxDomainCreateW", create_domain_w),
  };
  static_assert(sizeof hooks / sizeof *hooks == kHooks);
  memcpy(to, hooks, sizeof hooks);
}

void forget_names() {
  g_default_domain.store(0, std::memory_order_relaxed);
  for (CategoryName& each : g_categories) {
    each.name.store(0, std::memory_order_relaxed);
    each.key.store(0, std::memory_order_relaxed);
  }
}

uint64_t take_unknown_texts() {
  return g_unknown_texts.exchange(0, std::memory_order_relaxed);
}

uint32_t domain_number(const void* domain) {
  if (domain != nullptr)
    if (const uint32_t known = to_number(domain); known != 0) return known;
  uint32_t number = g_default_domain.load(std::memory_order_relaxed);
  if (number == 0) g_default_domain.store(number = tape::intern("NVTX"), std::memory_order_relaxed);
  return number;
}

}  // namespace tacho::capture::nvtx

/// Called by a program's NVTX on its first use, once per copy of NVTX in the process. 1: we take part; 0: this process
/// is not traced, and NVTX turns all its functions into nothing.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    tacho::capture::nvtx::GetExportTable get_table) {
  using namespace tacho::capture::nvtx;
  if (get_table == nullptr || !tacho::capture::start()) return 0;
  const auto* callbacks = static_cast<const ExportCallbacks*>(get_table(kExportCallbacks));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(ExportCallbacks) ||
      callbacks->get_module_function_table == nullptr)
    return 0;
  domain_number(nullptr);
  Hook hooks[kHooks];
  list_hooks(hooks);
  if (!install(*callbacks, kCore, hooks)) return 0;
  install(*callbacks, kCore2, hooks);  // absent in NVTX 2
  return 1;
}

// A tool of rocprofiler-sdk that asks for the same records as tacho (vendor/amd/sdk.h) and does nothing with them: the
// cost of the library itself (bench/rocm.py).
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "vendor/amd/sdk.h"

namespace {

namespace sdk = tacho::vendor::sdk;
using namespace tacho::vendor::sdk::signature;

sdk::Functions g_call{};
KindName* g_request_name = nullptr;
sdk::Context g_names = 0, g_context = 0;
sdk::Buffer g_buffer = 0;

void drop(sdk::Context, sdk::Buffer, sdk::SdkRecordHeader**, size_t, void*, uint64_t) {}
void see_code(sdk::CallbackRecordWide, uint64_t*, void*) {}
int see_work(uint64_t, sdk::Context, int32_t, int32_t, uint64_t, uint64_t* external, void*) {
  *external = 1;
  return 0;
}

struct Wanted {
  int32_t operations[1024];
  size_t count;
} g_wanted{};
int see_operation(int32_t kind, int32_t operation, void*) {
  const char* name = nullptr;
  uint64_t length = 0;
  if (g_call.buffer_operation_name(kind, operation, &name, &length) == sdk::kSuccess && name != nullptr &&
      !sdk::only_asks(name) && g_wanted.count < 1024)
    g_wanted.operations[g_wanted.count++] = operation;
  return 0;
}

int record(int32_t kind, void*) {
  const char* name = nullptr;
  uint64_t length = 0;
  g_call.buffer_kind_name(kind, &name, &length);
  for (const char* const wanted : sdk::asked::kAll) {
    if (name == nullptr || strcmp(name, wanted) != 0) continue;
    g_wanted.count = 0;
    g_call.buffer_operations(kind, see_operation, nullptr);
    g_call.trace_buffered(g_context, kind, g_wanted.operations, g_wanted.count, g_buffer);
  }
  return 0;
}

int initialize(sdk::Finalize*, void*) {
  g_call.create_context(&g_names);
  g_call.create_context(&g_context);
  g_call.trace_callback(g_names, 10, nullptr, 0, reinterpret_cast<AnyCallback*>(&see_code), nullptr);
  g_call.create_buffer(g_context, sdk::kBufferBytes, sdk::kFlushAt, sdk::kPolicyLossless, drop, nullptr, &g_buffer);
  g_call.buffer_kinds(record, nullptr);
  int32_t kinds[2], count = 0;
  for (int32_t kind = 1; kind < 64 && count < 2; ++kind) {
    const char* name = nullptr;
    uint64_t length = 0;
    if (g_request_name(kind, &name, &length) == sdk::kSuccess && name != nullptr &&
        (strcmp(name, "KERNEL_DISPATCH") == 0 || strcmp(name, "MEMORY_COPY") == 0))
      kinds[count++] = kind;
  }
  g_call.external_request(g_context, kinds, static_cast<size_t>(count), see_work, nullptr);
  g_call.start_context(g_names);
  g_call.start_context(g_context);
  return 0;
}
void finalize(void*) {
  g_call.flush_buffer(g_buffer);
}
sdk::ConfigureResult g_result{sizeof g_result, initialize, finalize, nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) sdk::ConfigureResult* rocprofiler_configure(uint32_t version,
                                                                                              const char*, uint32_t,
                                                                                              sdk::ClientId* client) {
  if (version < sdk::kFirstWide) return nullptr;
  client->name = "empty";
#define TACHO_BIND(member, type, name) \
  g_call.member = reinterpret_cast<type*>(dlsym(RTLD_DEFAULT, "rocprofiler_" name));
  TACHO_SDK_FUNCTIONS(TACHO_BIND)
  g_call.external_request = reinterpret_cast<ExternalRequest*>(
      dlsym(RTLD_DEFAULT, "rocprofiler_configure_external_correlation_id_request_service"));
  g_request_name =
      reinterpret_cast<KindName*>(dlsym(RTLD_DEFAULT, "rocprofiler_query_external_correlation_id_request_kind_name"));
  if (g_call.status_text == nullptr || g_call.external_request == nullptr || g_request_name == nullptr) {
    fputs("rocm_empty_tool: this rocprofiler-sdk lacks a function\n", stderr);
    return nullptr;
  }
  return &g_result;
}

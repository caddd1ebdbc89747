// What vendor.def of each vendor says.
#include "vendor/definitions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "vendor/call_roles.h"

namespace tacho::vendor {
namespace {

using event::Domain;

constexpr Domain kNoApis[] = {Domain::kUnknown, Domain::kMarker, Domain::kPython,
                              Domain::kMpi,     Domain::kHost,   Domain::kOperator};

// The lists are complete: a domain that is appended to event/enums.def belongs to a vendor, or is named here.
TEST(Definitions, EveryDomainIsAnApiOrKnownToBeNone) {
  std::set<std::string_view> kinds;
  for (int64_t at = 0; at < static_cast<int64_t>(Domain::kEnd); ++at) {
    const auto domain = static_cast<Domain>(at);
    const ApiDefinition* const api = api_definition(domain);
    const bool none = std::find(std::begin(kNoApis), std::end(kNoApis), domain) != std::end(kNoApis);
    EXPECT_EQ(api == nullptr, none) << event::to_string(domain);
    EXPECT_EQ(api_family(domain).empty(), none) << event::to_string(domain);
    if (api == nullptr) continue;
    EXPECT_EQ(api->domain, domain);
    EXPECT_TRUE(kinds.insert(api->kind).second) << api->kind << " means two domains";
  }
  EXPECT_EQ(api_definition(static_cast<Domain>(255)), nullptr);
}

TEST(Definitions, ResultsThatMeanNoMemory) {
  EXPECT_TRUE(out_of_memory(Domain::kCudaRuntime, 2));
  EXPECT_TRUE(out_of_memory(Domain::kCudaDriver, 2));
  EXPECT_TRUE(out_of_memory(Domain::kHipRuntime, 2));
  EXPECT_TRUE(out_of_memory(Domain::kOpenCL, -4));
  EXPECT_TRUE(out_of_memory(Domain::kOpenCL, -6));
  EXPECT_FALSE(out_of_memory(Domain::kOpenCL, 2));
  EXPECT_FALSE(out_of_memory(Domain::kCudaRuntime, 0));
  EXPECT_FALSE(out_of_memory(Domain::kCudaRuntime, 700));
  EXPECT_FALSE(out_of_memory(Domain::kMpi, 2));
  EXPECT_FALSE(out_of_memory(Domain::kUnknown, event::kUnknown));
}

TEST(Definitions, ResultsFailByTheRuleOfTheirApi) {
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  struct {
    Domain domain;
    std::initializer_list<int64_t> failures, others;
  } const cases[] = {
      {Domain::kCudaRuntime, {1, 2, 700, -1, kMost}, {0, 600, event::kUnknown}},
      {Domain::kCudaDriver, {1, 100, 999}, {0, 600, event::kUnknown}},
      {Domain::kHipRuntime, {1, 2, 719}, {0, 600, event::kUnknown}},
      {Domain::kHipCompiler, {1}, {0, 600}},
      {Domain::kHsa, {2, 0x1000, 4096}, {0, 1, -1, event::kUnknown}},
      {Domain::kRccl, {1, 5}, {0, event::kUnknown}},
      {Domain::kOpenCL, {-1, -5, -1001}, {0, 1, 600, event::kUnknown}},
      {Domain::kUnknown, {}, {0, 1, -1}},
      {Domain::kMpi, {}, {0, 1, -1}},
  };
  for (const auto& each : cases) {
    for (const int64_t result : each.failures)
      EXPECT_TRUE(call_failed(each.domain, result)) << event::to_string(each.domain) << ' ' << result;
    for (const int64_t result : each.others)
      EXPECT_FALSE(call_failed(each.domain, result)) << event::to_string(each.domain) << ' ' << result;
  }
}

TEST(Definitions, FunctionsBelongToTheApiOfTheirPrefix) {
  constexpr std::pair<const char*, Domain> kFunctions[] = {
      {"cudaMalloc", Domain::kCudaRuntime},
      {"cuMemAlloc_v2", Domain::kCudaDriver},
      {"hipMalloc", Domain::kHipRuntime},
      {"hsa_init", Domain::kHsa},
      {"ncclAllReduce", Domain::kRccl},
      {"rcclSend", Domain::kRccl},
      {"clFinish", Domain::kOpenCL},
      {"roctxMarkA", Domain::kMarker},
      {"cumulative", Domain::kUnknown},
      {"close", Domain::kUnknown},
      {"cu", Domain::kUnknown},
      {"cl", Domain::kUnknown},
      {"", Domain::kUnknown},
      {"aten::mm", Domain::kUnknown},
  };
  for (const auto& [function, domain] : kFunctions) EXPECT_EQ(domain_by_prefix(function), domain) << function;
}

TEST(Definitions, WordsMeanTheFirstApiThatTheyContain) {
  constexpr std::pair<const char*, Domain> kWords[] = {
      {"cuda_runtime", Domain::kCudaRuntime},
      {"CUDA_DRIVER_API", Domain::kCudaDriver},
      {"cuda_driver", Domain::kCudaDriver},
      {"HIP_RUNTIME_API_EXT", Domain::kHipRuntime},
      {"hip_compiler", Domain::kHipCompiler},
      {"HSA_AMD_EXT_API", Domain::kHsa},
      {"RCCL_API", Domain::kRccl},
      {"nccl", Domain::kRccl},
      {"roctx", Domain::kMarker},
      {"OpenCL", Domain::kOpenCL},
      {"xpu_runtime", Domain::kUnknown},
      {"", Domain::kUnknown},
  };
  for (const auto& [word, domain] : kWords) EXPECT_EQ(domain_by_word(word), domain) << word;
}

TEST(Definitions, EveryApiIsMeantByItsOwnKind) {
  for (int64_t at = 0; at < static_cast<int64_t>(Domain::kEnd); ++at) {
    const ApiDefinition* const api = api_definition(static_cast<Domain>(at));
    if (api != nullptr) {
      EXPECT_EQ(domain_by_word(api->kind), api->domain) << api->kind;
    }
  }
}

TEST(Definitions, KnowsMarkersSoftwareAndSources) {
  for (const char* const library : {"NVTX", "ROCTx"}) EXPECT_TRUE(is_marker_library(library)) << library;
  for (const char* const library : {"", "nvtx", "CCCL", "NCCL"}) EXPECT_FALSE(is_marker_library(library)) << library;
  for (const char* const path :
       {"/opt/rocm-6.4/lib/libamdhip64.so.6", "/usr/local/cuda-13.0/lib64/libcudart.so", "/opt/nvidia/nsight/x",
        "/sw/nvidia/hpc_sdk/24/lib/x.so", "/driver/lib64/libcuda.so.580.159.04"})
    EXPECT_TRUE(is_vendor_software(path)) << path;
  for (const char* const path : {"", "/home/me/opt/rocm/x", "/usr/local/bin/cuda", "/opt/nvidia"})
    EXPECT_FALSE(is_vendor_software(path)) << path;
  for (const char* const path : {"saxpy.cu", "a/b.hip", "k.cl"}) EXPECT_TRUE(is_vendor_source(path)) << path;
  for (const char* const path : {"", "a.out", "cu", "x.cpp"}) EXPECT_FALSE(is_vendor_source(path)) << path;
}

TEST(Definitions, KnowsCallsThatWait) {
  using event::CallRole;
  EXPECT_EQ(call_role("clFinish"), CallRole::kWaitsForQueue);
  EXPECT_EQ(call_role("clFlush"), CallRole::kPlain);
  EXPECT_EQ(call_role("cudaDeviceSynchronize"), CallRole::kWaitsForDevice);
  EXPECT_EQ(call_role("cudaStreamSynchronize_ptsz"), CallRole::kWaitsForQueue);
  EXPECT_EQ(call_role("cuMemcpyDtoH_v2"), CallRole::kCopies);
  EXPECT_EQ(call_role("cuMemcpyDtoHAsync_v2"), CallRole::kPlain);
  EXPECT_EQ(call_role("hipMemcpy"), CallRole::kCopies);
  EXPECT_EQ(call_role("hipMemcpyAsync"), CallRole::kPlain);
  EXPECT_EQ(call_role(""), CallRole::kPlain);
}

}  // namespace
}  // namespace tacho::vendor

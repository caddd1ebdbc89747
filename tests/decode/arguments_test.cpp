// Arguments as text.
#include "decode/records/arguments.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "decode/cupti/arguments.h"
#include "event/functions/functions_opencl.h"
#include "vendor/amd/call_parameters.h"
#include "vendor/nvidia/call_parameters.h"

namespace tacho::decode {
namespace {

using event::opencl::Function;
using Kind = event::KernelArgument::Kind;

std::string call(Function function, std::vector<uint64_t> words) {
  return opencl_call_text(static_cast<uint16_t>(function), words);
}

TEST(Arguments, OfOpenClCalls) {
  EXPECT_EQ(call(Function::clEnqueueMapBuffer, {0x10, 0x20, 1, 3, 0, 4096, 0, 0, 0, 0x7f}),
            "command_queue=0x10, buffer=0x20, blocking_map=1, map_flags=READ|WRITE, offset=0, size=4096, "
            "num_events_in_wait_list=0, event_wait_list=NULL, event=NULL");
  EXPECT_EQ(call(Function::clCreateBuffer, {1, 1 << 2 | 1 << 5 | 1ull << 40, 64, 0x30, 0}),
            "context=0x1, flags=READ_ONLY|COPY_HOST_PTR|0x10000000000, size=64, host_ptr=0x30");
  EXPECT_EQ(call(Function::clCreateCommandQueue, {1, 2, 0, 0}), "context=0x1, device=0x2, properties=0");
  // Fewer or more words than parameters, and numbers that are no function.
  EXPECT_EQ(call(Function::clFlush, {}), "");
  EXPECT_EQ(call(Function::clFlush, {1, 2, 3}), "command_queue=0x1");
  for (const uint16_t number : std::initializer_list<uint16_t>{0, 500, 5000, 65535})
    EXPECT_EQ(opencl_call_text(number, std::vector<uint64_t>{1}), "");
  // Every function of the table names as many parameters as it has.
  EXPECT_EQ(event::opencl::function_parameters(static_cast<uint16_t>(Function::clEnqueueMemcpyINTEL)),
            "command_queue:p blocking:b dst_ptr:p src_ptr:p size:u "
            "num_events_in_wait_list:u event_wait_list:p event:p");
}

template <typename T>
event::KernelArgument value(uint8_t index, const T& of, uint32_t size = sizeof(T)) {
  event::KernelArgument argument{};
  argument.size = size;
  argument.index = index;
  argument.kind = Kind::kValue;
  std::memcpy(argument.value, &of, sizeof of);
  return argument;
}

TEST(Arguments, OfKernels) {
  const auto one = [](const event::KernelArgument& argument) { return kernel_arguments_text({&argument, 1}); };
  EXPECT_EQ(one(value(0, int32_t{-5})), "0: -5");
  EXPECT_EQ(one(value(1, 0.25f)), "1: 0.25");
  EXPECT_EQ(one(value(2, -3e6)), "2: -3e+06");
  EXPECT_EQ(one(value(3, int64_t{1} << 50)), "3: 1125899906842624");
  EXPECT_EQ(one(value(3, int32_t{0x7fffffff})),
            "3: 2147483647");  // no plausible number of either kind but itself
  EXPECT_EQ(one(value(4, int8_t{-1})), "4: -1");
  EXPECT_EQ(one(value(5, int16_t{300})), "5: 300");
  const unsigned char three[3] = {1, 2, 255};
  EXPECT_EQ(one(value(6, three)), "6: 0x0102ff");
  EXPECT_EQ(one(value(7, int64_t{1}, 64)), "7: 0x01000000000000000000000000000000\u2026 (64 B)");
  event::KernelArgument buffer{8, 0, Kind::kBuffer, 0, {0xabc, 4096}}, local{512, 2, Kind::kLocal, 0, {}},
      pointer{8, 1, Kind::kPointer, 0, {0, 0}};
  const event::KernelArgument all[] = {local, buffer, pointer};
  EXPECT_EQ(kernel_arguments_text(all), "0: buffer 0xabc of 4096 B, 1: NULL, 2: 512 B local");
  EXPECT_EQ(kernel_arguments_text({}), "");
}

TEST(Arguments, OfCudaCalls) {
  const struct {
    void* dst;
    const void* src;
    size_t count;
    int kind;
    void* stream;
  } copy = {reinterpret_cast<void*>(0x10), nullptr, 4096, 1, reinterpret_cast<void*>(0x20)};
  const auto bytes = std::as_bytes(std::span(&copy, 1));
  for (const char* name : {"cudaMemcpyAsync_v3020", "cudaMemcpyAsync_ptsz_v7000"})
    EXPECT_EQ(cuda_call_text(name, bytes), "dst=0x10, src=NULL, count=4096, kind=host to device, stream=0x20");
  EXPECT_EQ(cuda_call_text("cudaMemcpyAsync_v3020", bytes.first(39)), "");
  EXPECT_EQ(cuda_call_text("cudaUnheardOf_v3020", bytes), "");
  const struct {
    uint64_t device;
    unsigned char byte;
    size_t count;
  } fill = {0x30, 255, 7};
  EXPECT_EQ(cuda_call_text("cuMemsetD8_v2_ptds", std::as_bytes(std::span(&fill, 1))), "dstDevice=0x30, uc=255, N=7");
  // The first version's sizes had 32 bits: nothing is better than nonsense.
  EXPECT_EQ(cuda_call_text("cuMemsetD8", std::as_bytes(std::span(&fill, 1))), "");
  const struct {
    const void* function;
    unsigned grid[3], block[3];
    void** arguments;
    size_t shared;
    void* stream;
  } launch = {reinterpret_cast<void*>(1), {2, 3, 4}, {5, 6, 7}, nullptr, 8, nullptr};
  EXPECT_EQ(cuda_call_text("cudaLaunchKernel_v7000", std::as_bytes(std::span(&launch, 1))),
            "func=0x1, gridDim=2x3x4, blockDim=5x6x7, args=NULL, sharedMem=8, stream=NULL");
}

// Words as hip.cpp has them: six registers, then the stack. A dim3 takes two, next to each other.
TEST(Arguments, OfHipCalls) {
  const auto pair = [](uint64_t x, uint64_t y) { return x | y << 32; };
  const uint64_t launch[] = {0x10, pair(2, 3), 4, pair(5, 6), 7, 0x20, 512, 0x30};
  EXPECT_EQ(hip_call_text("hipLaunchKernel", launch),
            "function_address=0x10, numBlocks=2x3x4, dimBlocks=5x6x7, args=0x20, sharedMemBytes=512, stream=0x30");
  EXPECT_EQ(hip_call_text("hipLaunchKernel_spt", std::span(launch).first(7)),
            "function_address=0x10, numBlocks=2x3x4, dimBlocks=5x6x7, args=0x20, sharedMemBytes=512");
  const uint64_t copy[] = {1, 0, 4096, 2, 0xffffffff00000000};
  EXPECT_EQ(hip_call_text("hipMemcpyAsync", copy),
            "dst=0x1, src=NULL, sizeBytes=4096, kind=device to host, stream=0xffffffff00000000");
  // The upper half of a register that holds an int is anything.
  const uint64_t fill[] = {1, 0xabcd'ffff'ffff, 16};
  EXPECT_EQ(hip_call_text("hipMemset", fill), "dst=0x1, value=-1, sizeBytes=16");
  EXPECT_EQ(hip_call_text("hipUnheardOf", fill), "");
  EXPECT_EQ(hip_call_text("hipMemset", {}), "");
  for (const auto& call : vendor::amd::kHipCallParameters) {
    EXPECT_GT(vendor::amd::words_of(call), 0u) << call.function;
    EXPECT_LE(vendor::amd::words_of(call), 14u) << call.function;
    EXPECT_EQ(vendor::amd::find_hip_call(call.function), &call);
  }
}

TEST(Arguments, CudaStructuresFitIntoARecord) {
  for (const auto& call : vendor::nvidia::kCallParameters) {
    EXPECT_GT(vendor::bytes_of(call), 0u) << call.function;
    EXPECT_LE(vendor::bytes_of(call), vendor::nvidia::kMostCallParameterBytes) << call.function;
    EXPECT_EQ(vendor::nvidia::find_call_parameters(call.function), &call);
  }
}

}  // namespace
}  // namespace tacho::decode

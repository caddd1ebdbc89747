// A program's view of OpenCL, case by case, printed so that two runs can be compared: with and without a tracer the
// output must be the same byte for byte. `opencl_cases CASE [n]`; `opencl_cases list` prints the cases.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tacho/tacho.h"

namespace {

const char* const kSource = R"(
kernel void add_one(global int* a) { a[get_global_id(0)] += 1; }
kernel void scale(global int* a, int factor) { a[get_global_id(0)] *= factor; }
kernel void shape(global int* a) {
  size_t x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
  a[(z * get_global_size(1) + y) * get_global_size(0) + x - get_global_offset(0)] = (int)(x + 10 * y + 100 * z);
}
kernel void with_local(global int* a, local int* scratch) {
  scratch[get_local_id(0)] = a[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  a[get_global_id(0)] = scratch[get_local_size(0) - 1 - get_local_id(0)];
}
struct five { int v[5]; };
kernel void blend(global int* a, float f, struct five s) { a[get_global_id(0)] += (int)f + s.v[0] + s.v[4]; }
kernel void slow(global int* a) {
  int v = a[get_global_id(0)];
  for (int i = 0; i < 20000; ++i) v = v * 1664525 + 1013904223;
  a[get_global_id(0)] = v;
}
)";

int failures = 0;
#define CHECK(expression)                                     \
  do {                                                        \
    const cl_int check_result = (expression);                 \
    if (check_result != CL_SUCCESS) {                         \
      printf("FAILED %s -> %d\n", #expression, check_result); \
      ++failures;                                             \
    }                                                         \
  } while (0)

struct Setup {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_program program = nullptr;

  explicit Setup(bool with_program = true) {
    CHECK(clGetPlatformIDs(1, &platform, nullptr));
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
    cl_int code = 0;
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
    CHECK(code);
    if (!with_program) return;
    const char* text = kSource;
    program = clCreateProgramWithSource(context, 1, &text, nullptr, &code);
    CHECK(code);
    CHECK(clBuildProgram(program, 1, &device, "", nullptr, nullptr));
  }
  cl_command_queue queue(cl_command_queue_properties properties = 0) const {
    cl_int code = 0;
    const cl_command_queue made = clCreateCommandQueue(context, device, properties, &code);
    CHECK(code);
    return made;
  }
  cl_kernel kernel(const char* name) const {
    cl_int code = 0;
    const cl_kernel made = clCreateKernel(program, name, &code);
    CHECK(code);
    return made;
  }
  cl_mem buffer(size_t bytes, cl_mem_flags flags = CL_MEM_READ_WRITE) const {
    cl_int code = 0;
    const cl_mem made = clCreateBuffer(context, flags, bytes, nullptr, &code);
    CHECK(code);
    return made;
  }
};

cl_uint references(cl_event event) {
  cl_uint count = 0;
  CHECK(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof count, &count, nullptr));
  return count;
}

void zero(cl_command_queue queue, cl_mem buffer, size_t bytes) {
  const int nothing = 0;
  CHECK(clEnqueueFillBuffer(queue, buffer, &nothing, sizeof nothing, 0, bytes, 0, nullptr, nullptr));
  CHECK(clFinish(queue));
}

long sum(cl_command_queue queue, cl_mem buffer, size_t count) {
  std::vector<int> values(count);
  CHECK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, count * sizeof(int), values.data(), 0, nullptr, nullptr));
  long total = 0;
  for (const int value : values) total += value;
  return total;
}

void print_profiling(const char* what, cl_event event) {
  cl_ulong times[4] = {};
  cl_int codes[5];
  for (cl_uint i = 0; i < 4; ++i)
    codes[i] = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED + i, sizeof(cl_ulong), times + i, nullptr);
  size_t size = 0;
  codes[4] = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 0, nullptr, &size);
  printf("%s: codes %d %d %d %d size query %d -> %zu ordered %d\n", what, codes[0], codes[1], codes[2], codes[3],
         codes[4], size, times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3]);
}

void print_queue(const char* what, cl_command_queue queue) {
  cl_command_queue_properties properties = 0;
  size_t size = 0;
  const cl_int code = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, &size);
  cl_queue_properties array[16] = {};
  size_t array_size = 0;
  const cl_int array_code = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, sizeof array, array, &array_size);
  size_t asked_size = 0;
  const cl_int size_code = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, 0, nullptr, &asked_size);
  const cl_int small_code = clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, 1, array, nullptr);
  cl_uint count = 0;
  const cl_int count_code = clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, nullptr);
  printf("%s: properties %d %llu size %zu, array %d size %zu/%d/%zu:", what, code,
         static_cast<unsigned long long>(properties), size, array_code, array_size, size_code, asked_size);
  for (size_t i = 0; i < array_size / sizeof *array && array_code == CL_SUCCESS; ++i)
    printf(" %llx", static_cast<unsigned long long>(array[i]));
  printf(", small %d, references %d %u\n", array_size != 0 ? small_code : 0, count_code, count);
}

// Cases

void queue_properties(int) {
  const Setup cl;
  cl_int code = 0;
  print_queue("legacy 0", cl.queue());
  print_queue("legacy profiling", cl.queue(CL_QUEUE_PROFILING_ENABLE));
  print_queue("legacy out of order", cl.queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE));
  print_queue("null", clCreateCommandQueueWithProperties(cl.context, cl.device, nullptr, &code));
  const cl_queue_properties empty[] = {0};
  print_queue("empty", clCreateCommandQueueWithProperties(cl.context, cl.device, empty, nullptr));
  const cl_queue_properties none[] = {CL_QUEUE_PROPERTIES, 0, 0};
  print_queue("none", clCreateCommandQueueWithProperties(cl.context, cl.device, none, &code));
  const cl_queue_properties order[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
  print_queue("order", clCreateCommandQueueWithProperties(cl.context, cl.device, order, &code));
  const cl_queue_properties both[] = {CL_QUEUE_PROPERTIES,
                                      CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE, 0};
  print_queue("both", clCreateCommandQueueWithProperties(cl.context, cl.device, both, &code));
  const cl_queue_properties wrong[] = {0x1234567, 1, 0};
  code = 0;
  const cl_command_queue bad = clCreateCommandQueueWithProperties(cl.context, cl.device, wrong, &code);
  printf("wrong: %d %d\n", bad == nullptr, code);
  const cl_command_queue lost = clCreateCommandQueue(nullptr, cl.device, 0, &code);
  printf("no context: %d %d\n", lost == nullptr, code);
  const cl_command_queue queue = cl.queue();
  CHECK(clRetainCommandQueue(queue));
  print_queue("retained", queue);
  CHECK(clReleaseCommandQueue(queue));
  print_queue("released once", queue);
  CHECK(clReleaseCommandQueue(queue));
}

void profiling(int) {
  const Setup cl;
  const cl_kernel kernel = cl.kernel("add_one");
  const cl_mem buffer = cl.buffer(4096);
  CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
  const size_t global = 1024;
  for (const bool asked : {false, true}) {
    const cl_command_queue queue = cl.queue(asked ? CL_QUEUE_PROFILING_ENABLE : 0);
    cl_event event = nullptr;
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, &event));
    CHECK(clFinish(queue));
    print_profiling(asked ? "kernel, asked" : "kernel, not asked", event);
    CHECK(clReleaseEvent(event));
    CHECK(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event));
    CHECK(clFinish(queue));
    print_profiling(asked ? "marker, asked" : "marker, not asked", event);
    CHECK(clReleaseCommandQueue(queue));
    print_profiling("after the queue was released", event);
    CHECK(clReleaseEvent(event));
  }
  cl_int code = 0;
  const cl_event user = clCreateUserEvent(cl.context, &code);
  CHECK(code);
  print_profiling("user event", user);
  CHECK(clReleaseEvent(user));
}

void reference_counts(int) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  const cl_kernel kernel = cl.kernel("add_one");
  const cl_mem buffer = cl.buffer(4096);
  CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
  const size_t global = 1024;
  cl_int code = 0;
  const cl_event gate = clCreateUserEvent(cl.context, &code);
  cl_event event = nullptr;
  CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 1, &gate, &event));
  printf("waiting: %u\n", references(event));
  CHECK(clRetainEvent(event));
  printf("waiting, retained: %u\n", references(event));
  CHECK(clSetUserEventStatus(gate, CL_COMPLETE));
  CHECK(clWaitForEvents(1, &event));
  CHECK(clFinish(queue));
  usleep(20000);  // the runtime may give its own reference back a little later
  printf("complete: %u\n", references(event));
  CHECK(clReleaseEvent(event));
  printf("complete, released once: %u\n", references(event));
  CHECK(clReleaseEvent(event));
  std::vector<cl_event> events(200);
  for (cl_event& one : events)
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, &one));
  CHECK(clFinish(queue));
  usleep(20000);
  unsigned total = 0;
  for (const cl_event one : events) total += references(one);
  printf("200 complete: %u\n", total);
  for (const cl_event one : events) CHECK(clReleaseEvent(one));
  cl_uint count = 0;
  CHECK(clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, nullptr));
  printf("queue: %u\n", count);
  CHECK(clGetContextInfo(cl.context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, nullptr));
  printf("context: %u\n", count);
  CHECK(clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof count, &count, nullptr));
  printf("buffer: %u\n", count);
  CHECK(clGetKernelInfo(kernel, CL_KERNEL_REFERENCE_COUNT, sizeof count, &count, nullptr));
  printf("kernel: %u\n", count);
  CHECK(clReleaseEvent(gate));
}

void copies(int) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  constexpr size_t kBytes = 4096;
  const cl_mem a = cl.buffer(kBytes), b = cl.buffer(kBytes, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR);
  std::vector<unsigned char> in(kBytes), out(kBytes);
  for (size_t i = 0; i < kBytes; ++i) in[i] = static_cast<unsigned char>(i * 7);
  CHECK(clEnqueueWriteBuffer(queue, a, CL_TRUE, 0, kBytes, in.data(), 0, nullptr, nullptr));
  CHECK(clEnqueueCopyBuffer(queue, a, b, 0, 0, kBytes, 0, nullptr, nullptr));
  CHECK(clEnqueueReadBuffer(queue, b, CL_FALSE, 0, kBytes, out.data(), 0, nullptr, nullptr));
  CHECK(clFinish(queue));
  printf("write, copy, read: %d\n", in == out);
  const size_t origin[3] = {0, 0, 0}, region[3] = {16, 8, 2};
  CHECK(clEnqueueWriteBufferRect(queue, a, CL_TRUE, origin, origin, region, 64, 512, 64, 512, in.data(), 0, nullptr,
                                 nullptr));
  CHECK(clEnqueueCopyBufferRect(queue, a, b, origin, origin, region, 64, 512, 64, 512, 0, nullptr, nullptr));
  CHECK(clEnqueueReadBufferRect(queue, b, CL_TRUE, origin, origin, region, 64, 512, 64, 512, out.data(), 0, nullptr,
                                nullptr));
  printf("rectangles: %d\n", in == out);
  const unsigned pattern = 0xdeadbeef;
  CHECK(clEnqueueFillBuffer(queue, a, &pattern, sizeof pattern, 0, kBytes, 0, nullptr, nullptr));
  cl_int code = 0;
  auto* const mapped = static_cast<unsigned*>(
      clEnqueueMapBuffer(queue, a, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, 1024, 0, nullptr, nullptr, &code));
  CHECK(code);
  printf("fill, map: %x %x\n", mapped[0], mapped[255]);
  mapped[1] = 5;
  CHECK(clEnqueueUnmapMemObject(queue, a, mapped, 0, nullptr, nullptr));
  void* const nowhere = clEnqueueMapBuffer(queue, a, CL_TRUE, CL_MAP_READ, 0, 1 << 20, 0, nullptr, nullptr, nullptr);
  printf("map too much: %d\n", nowhere == nullptr);
  CHECK(clEnqueueMigrateMemObjects(queue, 1, &a, CL_MIGRATE_MEM_OBJECT_HOST, 0, nullptr, nullptr));
  CHECK(clEnqueueMigrateMemObjects(queue, 1, &a, 0, 0, nullptr, nullptr));
  CHECK(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, 8, out.data(), 0, nullptr, nullptr));
  unsigned second;
  memcpy(&second, out.data() + 4, 4);
  printf("unmapped: %x\n", second);
  printf("bad read: %d\n", clEnqueueReadBuffer(queue, a, CL_TRUE, 0, 1 << 20, out.data(), 0, nullptr, nullptr));
  printf("null event list: %d\n", clEnqueueReadBuffer(queue, a, CL_TRUE, 0, 4, out.data(), 3, nullptr, nullptr));
  CHECK(clReleaseMemObject(a));
  CHECK(clReleaseMemObject(b));
  CHECK(clReleaseCommandQueue(queue));
}

void images(int) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
  cl_image_desc shape{};
  shape.image_type = CL_MEM_OBJECT_IMAGE2D;
  shape.image_width = 32;
  shape.image_height = 16;
  cl_int code = 0;
  const cl_mem image = clCreateImage(cl.context, CL_MEM_READ_WRITE, &format, &shape, nullptr, &code);
  CHECK(code);
  const cl_mem other = clCreateImage(cl.context, CL_MEM_READ_WRITE, &format, &shape, nullptr, nullptr);
  const cl_mem buffer = cl.buffer(32 * 16 * 4);
  const size_t origin[3] = {0, 0, 0}, region[3] = {32, 16, 1};
  std::vector<unsigned char> in(32 * 16 * 4), out(in.size());
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 3);
  CHECK(clEnqueueWriteImage(queue, image, CL_TRUE, origin, region, 0, 0, in.data(), 0, nullptr, nullptr));
  CHECK(clEnqueueCopyImage(queue, image, other, origin, origin, region, 0, nullptr, nullptr));
  CHECK(clEnqueueCopyImageToBuffer(queue, other, buffer, origin, region, 0, 0, nullptr, nullptr));
  CHECK(clEnqueueCopyBufferToImage(queue, buffer, image, 0, origin, region, 0, nullptr, nullptr));
  CHECK(clEnqueueReadImage(queue, image, CL_TRUE, origin, region, 0, 0, out.data(), 0, nullptr, nullptr));
  printf("images: %d\n", in == out);
  const unsigned color[4] = {1, 2, 3, 4};
  CHECK(clEnqueueFillImage(queue, image, color, origin, region, 0, nullptr, nullptr));
  size_t pitch = 0;
  const auto* const mapped = static_cast<unsigned char*>(clEnqueueMapImage(
      queue, image, CL_TRUE, CL_MAP_READ, origin, region, &pitch, nullptr, 0, nullptr, nullptr, &code));
  CHECK(code);
  printf("fill, map: %d %d pitch %zu\n", mapped[0], mapped[3], pitch);
  CHECK(clEnqueueUnmapMemObject(queue, image, const_cast<unsigned char*>(mapped), 0, nullptr, nullptr));
  CHECK(clFinish(queue));
  CHECK(clReleaseMemObject(image));
  CHECK(clReleaseMemObject(other));
  CHECK(clReleaseMemObject(buffer));
}

void svm(int) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  auto* const a = static_cast<int*>(clSVMAlloc(cl.context, CL_MEM_READ_WRITE, 4096, 0));
  auto* const b = static_cast<int*>(clSVMAlloc(cl.context, CL_MEM_READ_WRITE, 4096, 0));
  printf("allocated: %d %d\n", a != nullptr, b != nullptr);
  const int seven = 7;
  CHECK(clEnqueueSVMMemFill(queue, a, &seven, sizeof seven, 4096, 0, nullptr, nullptr));
  CHECK(clEnqueueSVMMemcpy(queue, CL_TRUE, b, a, 4096, 0, nullptr, nullptr));
  const cl_kernel kernel = cl.kernel("add_one");
  CHECK(clSetKernelArgSVMPointer(kernel, 0, b));
  const size_t global = 1024;
  CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, nullptr));
  CHECK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, b, 4096, 0, nullptr, nullptr));
  printf("svm: %d %d\n", b[0], b[1023]);
  CHECK(clEnqueueSVMUnmap(queue, b, 0, nullptr, nullptr));
  std::vector<int> host(1024);
  CHECK(clEnqueueSVMMemcpy(queue, CL_TRUE, host.data(), b, 4096, 0, nullptr, nullptr));
  printf("to host: %d\n", host[500]);
  CHECK(clFinish(queue));
  clSVMFree(cl.context, a);
  void* pointers[] = {b};
  CHECK(clEnqueueSVMFree(queue, 1, pointers, nullptr, nullptr, 0, nullptr, nullptr));
  CHECK(clFinish(queue));
}

void sub_buffers(int) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  const cl_mem parent = cl.buffer(8192);
  cl_buffer_region region{4096, 1024};
  cl_int code = 0;
  const cl_mem part = clCreateSubBuffer(parent, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  CHECK(code);
  const int nine = 9;
  CHECK(clEnqueueFillBuffer(queue, part, &nine, sizeof nine, 0, 1024, 0, nullptr, nullptr));
  CHECK(clReleaseMemObject(parent));
  printf("sum: %ld\n", sum(queue, part, 256));
  CHECK(clReleaseMemObject(part));
}

void shapes(int) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  const cl_kernel kernel = cl.kernel("shape");
  const cl_mem buffer = cl.buffer(8 * 4 * 2 * sizeof(int));
  zero(queue, buffer, 8 * 4 * 2 * sizeof(int));
  CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
  const size_t global[3] = {8, 4, 2}, local[3] = {4, 2, 1}, offset[3] = {3, 0, 0};
  CHECK(clEnqueueNDRangeKernel(queue, kernel, 3, nullptr, global, local, 0, nullptr, nullptr));
  printf("3D: %ld\n", sum(queue, buffer, 64));
  CHECK(clEnqueueNDRangeKernel(queue, kernel, 2, nullptr, global, nullptr, 0, nullptr, nullptr));
  CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, offset, global, nullptr, 0, nullptr, nullptr));
  printf("offset: %ld\n", sum(queue, buffer, 64));
  const cl_kernel local_kernel = cl.kernel("with_local");
  CHECK(clSetKernelArg(local_kernel, 0, sizeof buffer, &buffer));
  CHECK(clSetKernelArg(local_kernel, 1, 64, nullptr));
  const size_t sixteen = 16;
  CHECK(clEnqueueNDRangeKernel(queue, local_kernel, 1, nullptr, &sixteen, &sixteen, 0, nullptr, nullptr));
  const cl_kernel task = cl.kernel("add_one");
  CHECK(clSetKernelArg(task, 0, sizeof buffer, &buffer));
  CHECK(clEnqueueTask(queue, task, 0, nullptr, nullptr));
  printf("after task: %ld\n", sum(queue, buffer, 64));
  const size_t wrong = 7;
  printf("bad group: %d\n", clEnqueueNDRangeKernel(queue, task, 1, nullptr, &sixteen, &wrong, 0, nullptr, nullptr));
  printf("no queue: %d\n", clEnqueueNDRangeKernel(nullptr, task, 1, nullptr, &sixteen, nullptr, 0, nullptr, nullptr));
  printf("four dimensions: %d\n",
         clEnqueueNDRangeKernel(queue, task, 4, nullptr, global, nullptr, 0, nullptr, nullptr));
}

std::atomic<int> native_calls{0};
void CL_CALLBACK native_function(void*) {
  ++native_calls;
}

void native(int) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  int argument = 3;
  const cl_int code = clEnqueueNativeKernel(queue, native_function, &argument, sizeof argument, 0, nullptr, nullptr, 0,
                                            nullptr, nullptr);
  CHECK(clFinish(queue));
  printf("native: %d, calls %d\n", code, native_calls.load());
}

void user_event(int) {
  const Setup cl;
  const cl_command_queue queue = cl.queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const cl_kernel kernel = cl.kernel("add_one");
  const cl_mem a = cl.buffer(4096), b = cl.buffer(4096);
  zero(queue, a, 4096);
  cl_int code = 0;
  const cl_event gate = clCreateUserEvent(cl.context, &code);
  const size_t global = 1024;
  CHECK(clSetKernelArg(kernel, 0, sizeof b, &b));
  cl_event blocked = nullptr;
  CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 1, &gate, &blocked));
  CHECK(clSetKernelArg(kernel, 0, sizeof a, &a));
  cl_event last = nullptr;
  for (int i = 0; i < 300; ++i) {
    const cl_event before = last;
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, before != nullptr ? 1 : 0,
                                 before != nullptr ? &before : nullptr, &last));
    if (before != nullptr) CHECK(clReleaseEvent(before));
  }
  CHECK(clFlush(queue));
  CHECK(clWaitForEvents(1, &last));
  cl_int status = 0;
  CHECK(clGetEventInfo(blocked, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
  printf("others ran, the blocked one still waits: %d\n", status > CL_COMPLETE);
  // The gate is never opened: the program leaves.
  fflush(stdout);
  _exit(failures != 0);
}

void failed_gate(int) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  const cl_kernel kernel = cl.kernel("add_one");
  const cl_mem buffer = cl.buffer(4096);
  CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
  cl_int code = 0;
  const cl_event gate = clCreateUserEvent(cl.context, &code);
  const size_t global = 1024;
  cl_event event = nullptr;
  CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 1, &gate, &event));
  CHECK(clSetUserEventStatus(gate, -5));
  const cl_int waited = clWaitForEvents(1, &event);
  cl_int status = 0;
  CHECK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
  printf("waited %d, negative status %d\n", waited, status < 0);
}

void no_finish(int count) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  const cl_kernel kernel = cl.kernel("slow");
  const cl_mem buffer = cl.buffer(65536 * sizeof(int));
  CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
  const size_t global = 65536;
  // The first launch compiles: a runtime in the middle of that does not survive exit().
  CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, nullptr));
  CHECK(clFinish(queue));
  for (int i = 0; i < count; ++i)
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, nullptr));
  CHECK(clFlush(queue));
  printf("leaving with %d kernels on their way\n", count);
  fflush(stdout);
  // exit() without clFinish; PoCL's own threads may be inside the kernels.
  exit(failures != 0);
}

void storm(int count) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  const cl_kernel kernel = cl.kernel("add_one");
  const cl_mem buffer = cl.buffer(256 * sizeof(int));
  zero(queue, buffer, 256 * sizeof(int));
  CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
  const size_t global = 256, local = 64;
  for (int i = 0; i < count; ++i)
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr));
  printf("sum %ld\n", sum(queue, buffer, 256));
}

// What the runtime itself says of a queue, past the loader and its layers: an object begins with the runtime's table.
void runtime_queue(int) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  cl_command_queue_properties properties = 0;
  const auto* const runtime = *reinterpret_cast<const cl_icd_dispatch* const*>(queue);
  CHECK(runtime->clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr));
  printf("profiling %d\n", (properties & CL_QUEUE_PROFILING_ENABLE) != 0);
}

void early_release(int count) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  const cl_kernel kernel = cl.kernel("add_one");
  const cl_mem buffer = cl.buffer(256 * sizeof(int));
  zero(queue, buffer, 256 * sizeof(int));
  CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
  const size_t global = 256;
  for (int i = 0; i < count; ++i) {
    cl_event event = nullptr;
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, &event));
    CHECK(clReleaseEvent(event));
  }
  printf("sum %ld\n", sum(queue, buffer, 256));
  CHECK(clReleaseCommandQueue(queue));
}

void threads(int count) {
  const Setup cl;
  std::vector<std::thread> workers;
  std::vector<long> sums(8);
  const cl_command_queue common = cl.queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  for (size_t t = 0; t < sums.size(); ++t)
    workers.emplace_back([&, t] {
      // Half of the threads with a queue and context of their own, half on the common queue.
      const bool own = t % 2 == 0;
      const Setup* mine = own ? new Setup : &cl;
      const cl_command_queue queue = own ? mine->queue() : common;
      const cl_kernel kernel = mine->kernel("add_one");
      const cl_mem buffer = mine->buffer(64 * sizeof(int));
      std::vector<int> zeros(64);
      CHECK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 64 * sizeof(int), zeros.data(), 0, nullptr, nullptr));
      CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
      const size_t global = 64;
      cl_event last = nullptr;
      for (int i = 0; i < count; ++i) {
        const cl_event before = last;
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, before != nullptr ? 1 : 0,
                                     before != nullptr ? &before : nullptr, &last));
        if (before != nullptr) CHECK(clReleaseEvent(before));
      }
      CHECK(clWaitForEvents(1, &last));
      CHECK(clReleaseEvent(last));
      sums[t] = sum(queue, buffer, 64);
      CHECK(clReleaseMemObject(buffer));
      CHECK(clReleaseKernel(kernel));
      if (own) CHECK(clReleaseCommandQueue(queue));
    });
  for (std::thread& worker : workers) worker.join();
  CHECK(clFinish(common));
  for (const long one : sums) printf("%ld ", one);
  printf("\n");
}

// 64 threads that launch on a common queue, each launch within a range of its thread's name.
void marked_threads(int count) {
  const Setup cl;
  const cl_command_queue queue = cl.queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  std::vector<std::thread> workers;
  std::vector<long> sums(64);
  for (size_t t = 0; t < sums.size(); ++t)
    workers.emplace_back([&, t] {
      const std::string name = "thread " + std::to_string(t);
      const cl_kernel kernel = cl.kernel("add_one");
      const cl_mem buffer = cl.buffer(64 * sizeof(int));
      std::vector<int> zeros(64);
      CHECK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 64 * sizeof(int), zeros.data(), 0, nullptr, nullptr));
      CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
      const size_t global = 64;
      for (int i = 0; i < count; ++i) {
        cl_event done = nullptr;
        tacho_range_push(name.c_str());
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, &done));
        tacho_range_pop();
        CHECK(clWaitForEvents(1, &done));
        CHECK(clReleaseEvent(done));
      }
      sums[t] = sum(queue, buffer, 64);
      CHECK(clReleaseMemObject(buffer));
      CHECK(clReleaseKernel(kernel));
    });
  for (std::thread& worker : workers) worker.join();
  CHECK(clFinish(queue));
  for (const long one : sums) printf("%ld ", one);
  printf("\n");
}

std::atomic<int> contexts_gone{0}, buffers_gone{0}, events_called{0}, events_queued{0};

void callbacks(int) {
  cl_event events[20];
  {
    const Setup cl;
    const cl_int has = clSetContextDestructorCallback(
        cl.context, [](cl_context, void*) { ++contexts_gone; }, nullptr);
    const cl_command_queue queue = cl.queue();
    const cl_kernel kernel = cl.kernel("add_one");
    const cl_mem buffer = cl.buffer(4096);
    CHECK(clSetMemObjectDestructorCallback(
        buffer, [](cl_mem, void*) { ++buffers_gone; }, nullptr));
    CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    const size_t global = 1024;
    for (cl_event& event : events) {
      CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, &event));
      CHECK(clSetEventCallback(
          event, CL_COMPLETE, [](cl_event, cl_int status, void*) { events_called += status == CL_COMPLETE; }, nullptr));
      CHECK(clReleaseEvent(event));
    }
    CHECK(clFinish(queue));
    usleep(50000);
    printf("event callbacks: %d\n", events_called.load());
    CHECK(clReleaseKernel(kernel));
    CHECK(clReleaseMemObject(buffer));
    printf("buffers gone: %d\n", buffers_gone.load());
    CHECK(clReleaseProgram(cl.program));
    CHECK(clReleaseCommandQueue(queue));
    CHECK(clReleaseContext(cl.context));
    printf("context destructor set %d, contexts gone: %d\n", has, contexts_gone.load());
  }
}

void many_objects(int count) {
  const Setup cl;
  const size_t global = 64;
  long total = 0;
  for (int i = 0; i < count; ++i) {
    const cl_command_queue queue = cl.queue();
    const cl_kernel kernel = cl.kernel(i % 2 == 0 ? "add_one" : "slow");
    const cl_mem buffer = cl.buffer(64 * sizeof(int));
    CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    zero(queue, buffer, 64 * sizeof(int));
    if (i % 2 == 0) {
      CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, nullptr));
      total += sum(queue, buffer, 64);
    }
    CHECK(clReleaseKernel(kernel));
    CHECK(clReleaseMemObject(buffer));
    CHECK(clReleaseCommandQueue(queue));
  }
  printf("sum %ld\n", total);
}

void command_buffer(int) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
#define EXTENSION(name) \
  const auto name = reinterpret_cast<name##_fn>(clGetExtensionFunctionAddressForPlatform(cl.platform, #name))
  EXTENSION(clCreateCommandBufferKHR);
  EXTENSION(clFinalizeCommandBufferKHR);
  EXTENSION(clReleaseCommandBufferKHR);
  EXTENSION(clEnqueueCommandBufferKHR);
  EXTENSION(clCommandNDRangeKernelKHR);
  EXTENSION(clCommandFillBufferKHR);
  if (clCreateCommandBufferKHR == nullptr) {
    printf("no command buffers\n");
    return;
  }
  const cl_kernel one = cl.kernel("add_one"), two = cl.kernel("scale");
  const cl_mem buffer = cl.buffer(64 * sizeof(int));
  const int factor = 3, five = 5;
  CHECK(clSetKernelArg(one, 0, sizeof buffer, &buffer));
  CHECK(clSetKernelArg(two, 0, sizeof buffer, &buffer));
  CHECK(clSetKernelArg(two, 1, sizeof factor, &factor));
  cl_int code = 0;
  const cl_command_buffer_khr commands = clCreateCommandBufferKHR(1, &queue, nullptr, &code);
  CHECK(code);
  const size_t global = 64;
  cl_sync_point_khr filled = 0, added = 0;
  CHECK(clCommandFillBufferKHR(commands, nullptr, buffer, &five, sizeof five, 0, 64 * sizeof(int), 0, nullptr, &filled,
                               nullptr));
  CHECK(clCommandNDRangeKernelKHR(commands, nullptr, nullptr, one, 1, nullptr, &global, nullptr, 1, &filled, &added,
                                  nullptr));
  CHECK(clCommandNDRangeKernelKHR(commands, nullptr, nullptr, two, 1, nullptr, &global, nullptr, 1, &added, nullptr,
                                  nullptr));
  CHECK(clFinalizeCommandBufferKHR(commands));
  for (int i = 0; i < 4; ++i) {
    CHECK(clEnqueueCommandBufferKHR(0, nullptr, commands, 0, nullptr, nullptr));
    CHECK(clFinish(queue));
  }
  printf("sum %ld\n", sum(queue, buffer, 64));
  CHECK(clReleaseCommandBufferKHR(commands));
}

// OpenCL is used only by the two children: one forked, one forked by it.
void forked(int) {
  for (int level = 0; level < 2; ++level) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      storm(50 + level);
      fflush(stdout);
      _exit(failures != 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
  }
}

// The parent uses OpenCL, a child that does not is forked in the middle and leaves through exit().
void fork_beside(int count) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  const cl_kernel kernel = cl.kernel("add_one");
  const cl_mem buffer = cl.buffer(256 * sizeof(int));
  zero(queue, buffer, 256 * sizeof(int));
  CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
  const size_t global = 256;
  for (int i = 0; i < count; ++i) {
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, nullptr));
    if (i == count / 2) {
      const pid_t child = fork();
      if (child == 0) _exit(3);
      int status = 0;
      waitpid(child, &status, 0);
      printf("child %d\n", WEXITSTATUS(status));
    }
  }
  printf("sum %ld\n", sum(queue, buffer, 256));
}

// Enqueues until killed from outside or, after `milliseconds`, by its own hand; then prints how often it launched.
void killed(int milliseconds) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  const cl_kernel kernel = cl.kernel("add_one");
  const cl_mem buffer = cl.buffer(256 * sizeof(int));
  CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
  const size_t global = 256, local = 64;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  int launched = 0;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 100; ++i, ++launched)
      CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr));
    CHECK(clFlush(queue));
    usleep(200);
  }
  printf("%d\n", launched);
  fflush(stdout);
  kill(getpid(), SIGKILL);
}

// Kernels and copies with known arguments.
void arguments(int) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  const cl_mem buffer = cl.buffer(1024);
  const size_t global = 256, local = 64;
  int values[256] = {};
  CHECK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, 1024, values, 0, nullptr, nullptr));
  const cl_int factor = 3, other = -7;
  const cl_float half = 1.5f;
  const cl_int five[5] = {0, 1, 2, 3, 4};
  const cl_kernel scale = cl.kernel("scale"), shuffle = cl.kernel("with_local"), blend = cl.kernel("blend");
  CHECK(clSetKernelArg(scale, 1, sizeof factor, &factor));
  CHECK(clSetKernelArg(scale, 0, sizeof buffer, &buffer));
  CHECK(clSetKernelArg(scale, 1, sizeof other, &other));
  CHECK(clEnqueueNDRangeKernel(queue, scale, 1, nullptr, &global, &local, 0, nullptr, nullptr));
  CHECK(clSetKernelArg(scale, 1, sizeof factor, &factor));  // for no launch
  CHECK(clSetKernelArg(shuffle, 0, sizeof buffer, &buffer));
  CHECK(clSetKernelArg(shuffle, 1, local * sizeof(int), nullptr));
  CHECK(clEnqueueNDRangeKernel(queue, shuffle, 1, nullptr, &global, &local, 0, nullptr, nullptr));
  CHECK(clSetKernelArg(blend, 0, sizeof buffer, &buffer));
  CHECK(clSetKernelArg(blend, 1, sizeof half, &half));
  CHECK(clSetKernelArg(blend, 2, sizeof five, five));
  CHECK(clEnqueueNDRangeKernel(queue, blend, 1, nullptr, &global, &local, 0, nullptr, nullptr));
  CHECK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 64, 128, values, 0, nullptr, nullptr));
  cl_int code = 0;
  void* const at =
      clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, 1024, 0, nullptr, nullptr, &code);
  CHECK(code);
  CHECK(clEnqueueUnmapMemObject(queue, buffer, at, 0, nullptr, nullptr));
  CHECK(clFinish(queue));
  puts("done");
}

// Launches 500 small kernels and kills itself as soon as it knows, in one of the ways, that they are complete.
void waited(int way) {
  const Setup cl;
  const cl_command_queue queue = cl.queue(way == 6 ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0);
  const cl_command_queue other = cl.queue();
  const cl_kernel kernel = cl.kernel("add_one");
  const cl_mem buffer = cl.buffer(256 * sizeof(int));
  CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
  const size_t global = 256, local = 64;
  cl_event last = nullptr;
  for (int i = 0; i < 500; ++i)
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &local, 0, nullptr, i == 499 ? &last : nullptr));
  int values[256];
  cl_int code = 0;
  const auto end = [] { kill(getpid(), SIGKILL); };
  switch (way) {
    case 0:
    case 6:
      CHECK(clFinish(queue));
      break;
    case 1:
      CHECK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof values, values, 0, nullptr, nullptr));
      break;
    case 2:
      clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, sizeof values, 0, nullptr, nullptr, &code);
      CHECK(code);
      break;
    case 3:
      CHECK(clWaitForEvents(1, &last));
      break;
    case 4:
      CHECK(clSetEventCallback(
          last, CL_COMPLETE, [](cl_event, cl_int, void* act) { (*static_cast<decltype(end)*>(act))(); },
          const_cast<void*>(static_cast<const void*>(&end))));
      CHECK(clFlush(queue));
      sleep(20);
      break;
    case 5:
      CHECK(clFlush(queue));
      for (cl_int status = CL_QUEUED; status > CL_COMPLETE;)
        CHECK(clGetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
      break;
    case 7:  // through another queue
      CHECK(clEnqueueReadBuffer(other, buffer, CL_TRUE, 0, sizeof values, values, 1, &last, nullptr));
      break;
  }
  end();
}

// Three launches, then nothing until it kills itself.
void idle(int) {
  const Setup cl;
  const cl_command_queue queue = cl.queue();
  const cl_kernel kernel = cl.kernel("add_one");
  const cl_mem buffer = cl.buffer(256 * sizeof(int));
  CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
  const size_t global = 256;
  for (int i = 0; i < 3; ++i)
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, nullptr));
  CHECK(clFinish(queue));
  const char* const milliseconds = getenv("TACHO_TEST_IDLE_MS");
  usleep(static_cast<useconds_t>(milliseconds != nullptr ? atoi(milliseconds) : 10) * 1000);
  kill(getpid(), SIGKILL);
}

void usm(int) {
  const Setup cl(false);
  const cl_command_queue queue = cl.queue();
  EXTENSION(clHostMemAllocINTEL);
  EXTENSION(clDeviceMemAllocINTEL);
  EXTENSION(clMemFreeINTEL);
  EXTENSION(clEnqueueMemcpyINTEL);
  EXTENSION(clEnqueueMemFillINTEL);
  if (clHostMemAllocINTEL == nullptr) {
    printf("no unified shared memory\n");
    return;
  }
  auto* const host = static_cast<int*>(clHostMemAllocINTEL(cl.context, nullptr, 4096, 0, nullptr));
  cl_int code = 0;
  void* const device = clDeviceMemAllocINTEL(cl.context, cl.device, nullptr, 8192, 0, &code);
  CHECK(code);
  const int six = 6;
  CHECK(clEnqueueMemFillINTEL(queue, device, &six, sizeof six, 4096, 0, nullptr, nullptr));
  CHECK(clEnqueueMemcpyINTEL(queue, CL_TRUE, host, device, 4096, 0, nullptr, nullptr));
  printf("usm: %d\n", host[1023]);
  CHECK(clMemFreeINTEL(cl.context, host));
  CHECK(clMemFreeINTEL(cl.context, device));
}

// The same on every device of every platform.
void all_devices(int) {
  cl_platform_id platforms[8];
  cl_uint count = 0;
  CHECK(clGetPlatformIDs(8, platforms, &count));
  for (cl_uint i = 0; i < count; ++i) {
    cl_device_id device = nullptr;
    CHECK(clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
    cl_int code = 0;
    const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
    CHECK(code);
    const char* text = kSource;
    const cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &code);
    CHECK(clBuildProgram(program, 1, &device, "", nullptr, nullptr));
    const cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    const cl_kernel kernel = clCreateKernel(program, "add_one", &code);
    const cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 64 * sizeof(int), nullptr, &code);
    zero(queue, buffer, 64 * sizeof(int));
    CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    const size_t global = 64;
    for (int n = 0; n < 3; ++n)
      CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, nullptr));
    printf("sum %ld\n", sum(queue, buffer, 64));
  }
}

void builds(int) {
  const Setup cl;
  const char* bad = "kernel void broken(global int* a) { a[0] = nothing; }";
  cl_int code = 0;
  const cl_program program = clCreateProgramWithSource(cl.context, 1, &bad, nullptr, nullptr);
  printf("bad program: %d\n", clBuildProgram(program, 1, &cl.device, "", nullptr, nullptr));
  const cl_kernel kernel = clCreateKernel(cl.program, "not_there", &code);
  printf("bad kernel: %d %d\n", kernel == nullptr, code);
  cl_kernel kernels[8];
  cl_uint count = 0;
  CHECK(clCreateKernelsInProgram(cl.program, 8, kernels, &count));
  printf("kernels: %u\n", count);
  cl_ulong device_time = 0, host_time = 0;
  printf("timer: %d\n", clGetDeviceAndHostTimer(cl.device, &device_time, &host_time));
}

// Every entry point of OpenCL 2.0 and later that some runtimes cannot answer.
void late_functions(int) {
  const Setup cl;
  cl_int code = 0;
  cl_ulong device_time = 0, host_time = 0;
  printf("timer %d ", clGetDeviceAndHostTimer(cl.device, &device_time, &host_time));
  printf("%d\n", clGetHostTimer(cl.device, &host_time));
  const cl_command_queue queue = clCreateCommandQueueWithProperties(cl.context, cl.device, nullptr, &code);
  printf("queue %d %d\n", queue != nullptr, code);
  const cl_kernel kernel = cl.kernel("add_one");
  code = 0;
  const cl_kernel clone = clCloneKernel(kernel, &code);
  printf("clone %d %d\n", clone != nullptr, code);
  const cl_sampler sampler = clCreateSamplerWithProperties(cl.context, nullptr, &code);
  printf("sampler %d %d\n", sampler != nullptr, code);
  void* const shared = clSVMAlloc(cl.context, CL_MEM_READ_WRITE, 64, 0);
  printf("svm %d\n", shared != nullptr);
  const cl_mem pipe = clCreatePipe(cl.context, 0, 4, 16, nullptr, &code);
  printf("pipe %d %d\n", pipe != nullptr, code);
  const cl_mem buffer = clCreateBufferWithProperties(cl.context, nullptr, CL_MEM_READ_WRITE, 64, nullptr, &code);
  printf("buffer %d %d\n", buffer != nullptr, code);
  printf("svm argument %d\n", clSetKernelArgSVMPointer(kernel, 0, shared));
  size_t size = 0;
  printf("sub-groups %d\n", clGetKernelSubGroupInfo(kernel, cl.device, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, 0,
                                                    nullptr, 0, nullptr, &size));
  if (shared != nullptr) clSVMFree(cl.context, shared);
}

// The program links no OpenCL call of this case: everything through dlopen.
void loaded(int) {
  void* const library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto get = reinterpret_cast<decltype(&clGetPlatformIDs)>(dlsym(library, "clGetPlatformIDs"));
  const auto devices = reinterpret_cast<decltype(&clGetDeviceIDs)>(dlsym(library, "clGetDeviceIDs"));
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  printf("%d ", get(1, &platform, nullptr));
  printf("%d\n", devices(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
}

struct Case {
  const char* name;
  void (*run)(int);
  int argument;
};
const Case kCases[] = {
    {"queue_properties", queue_properties, 0},
    {"profiling", profiling, 0},
    {"reference_counts", reference_counts, 0},
    {"copies", copies, 0},
    {"images", images, 0},
    {"svm", svm, 0},
    {"sub_buffers", sub_buffers, 0},
    {"shapes", shapes, 0},
    {"native", native, 0},
    {"user_event", user_event, 0},
    {"failed_gate", failed_gate, 0},
    {"no_finish", no_finish, 5},
    {"storm", storm, 3000},
    {"runtime_queue", runtime_queue, 0},
    {"early_release", early_release, 2000},
    {"threads", threads, 300},
    {"marked_threads", marked_threads, 20},
    {"callbacks", callbacks, 0},
    {"many_objects", many_objects, 400},
    {"command_buffer", command_buffer, 0},
    {"forked", forked, 0},
    {"fork_beside", fork_beside, 500},
    {"killed", killed, 1500},
    {"arguments", arguments, 0},
    {"waited", waited, 0},
    {"idle", idle, 0},
    {"all_devices", all_devices, 0},
    {"usm", usm, 0},
    {"builds", builds, 0},
    {"late_functions", late_functions, 0},
    {"loaded", loaded, 0},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "list";
  for (const Case& one : kCases) {
    if (wanted == "list") puts(one.name);
    if (wanted != one.name) continue;
    one.run(argc > 2 ? atoi(argv[2]) : one.argument);
    return failures != 0;
  }
  return wanted == "list" ? 0 : 2;
}

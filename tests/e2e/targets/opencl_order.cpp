// What a program can see of the order in its queues, and of queues themselves, case by case, printed so that two runs
// can be compared. `opencl_order CASE`.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr size_t kItems = 1024, kBytes = kItems * sizeof(cl_uint);

void check(cl_int code, const char* what) {
  if (code == CL_SUCCESS) return;
  printf("%s: %d\n", what, code);
  exit(2);
}
#define CHECK(call) check(call, #call)

cl_device_id g_device;
cl_context g_context;
cl_program g_program;

cl_command_queue make_queue(cl_command_queue_properties properties = 0) {
  cl_int code = CL_SUCCESS;
  const cl_command_queue queue = clCreateCommandQueue(g_context, g_device, properties, &code);
  CHECK(code);
  return queue;
}
cl_mem make_buffer(size_t bytes = kBytes) {
  cl_int code = CL_SUCCESS;
  const cl_mem buffer = clCreateBuffer(g_context, CL_MEM_READ_WRITE, bytes, nullptr, &code);
  CHECK(code);
  return buffer;
}
cl_kernel make_kernel(const char* name, cl_mem buffer) {
  cl_int code = CL_SUCCESS;
  const cl_kernel kernel = clCreateKernel(g_program, name, &code);
  CHECK(code);
  CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
  return kernel;
}
void mix(cl_command_queue queue, cl_kernel kernel, cl_uint k, cl_event* event = nullptr) {
  const size_t items = kItems, group = 64;
  CHECK(clSetKernelArg(kernel, 1, sizeof k, &k));
  CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, &group, 0, nullptr, event));
}
void fill(cl_command_queue queue, cl_mem buffer, cl_uint value) {
  CHECK(clEnqueueFillBuffer(queue, buffer, &value, sizeof value, 0, kBytes, 0, nullptr, nullptr));
}
cl_uint read(cl_command_queue queue, cl_mem buffer) {
  std::vector<cl_uint> values(kItems);
  CHECK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, kBytes, values.data(), 0, nullptr, nullptr));
  for (const cl_uint value : values)
    if (value != values[0]) return 0xbad;
  return values[0];
}
template <typename T, typename Handle, typename Question, typename What>
T ask(Question question, Handle handle, What what) {
  T answer{};
  CHECK(question(handle, what, sizeof answer, &answer, nullptr));
  return answer;
}
cl_uint references_of_context() {
  return ask<cl_uint>(clGetContextInfo, g_context, CL_CONTEXT_REFERENCE_COUNT);
}

// Each result depends on all before it: kernels, copies and fills, with events and without, blocking or not.
void chain() {
  const cl_command_queue queue = make_queue();
  const cl_mem a = make_buffer(), b = make_buffer();
  const cl_kernel first = make_kernel("mix_up", a), second = make_kernel("mix_up", b);
  fill(queue, a, 7);
  std::vector<cl_event> events;
  for (cl_uint i = 0; i < 20; ++i) {
    cl_event event = nullptr;
    mix(queue, first, i);
    mix(queue, first, i + 5, &event);
    events.push_back(event);
    CHECK(clEnqueueCopyBuffer(queue, a, b, 0, 0, kBytes, 0, nullptr, nullptr));
    mix(queue, second, i + 1);
    CHECK(clEnqueueCopyBuffer(queue, b, a, 0, 0, kBytes, 1, &events.back(), nullptr));
    if (i % 4 == 0) printf("%u\n", read(queue, a));
    cl_int code = CL_SUCCESS;
    auto* const mapped = static_cast<cl_uint*>(
        clEnqueueMapBuffer(queue, a, i % 2, CL_MAP_READ | CL_MAP_WRITE, 0, kBytes, 0, nullptr, &event, &code));
    CHECK(code);
    CHECK(clWaitForEvents(1, &event));
    CHECK(clReleaseEvent(event));
    for (size_t at = 0; at < kItems; ++at) mapped[at] ^= i;
    CHECK(clEnqueueUnmapMemObject(queue, a, mapped, 0, nullptr, nullptr));
  }
  printf("%u\n", read(queue, a));
  for (const cl_event event : events) {
    if (ask<cl_command_queue>(clGetEventInfo, event, CL_EVENT_COMMAND_QUEUE) != queue) puts("another queue");
    if (ask<cl_command_type>(clGetEventInfo, event, CL_EVENT_COMMAND_TYPE) != CL_COMMAND_NDRANGE_KERNEL)
      puts("another type");
    cl_ulong time = 0;
    const cl_int code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr);
    if (code != CL_PROFILING_INFO_NOT_AVAILABLE) printf("profiling %d\n", code);
  }
  usleep(20000);  // the runtime may give its own references back a little later
  printf("queue %u, with %zu events; context %u\n",
         ask<cl_uint>(clGetCommandQueueInfo, queue, CL_QUEUE_REFERENCE_COUNT), events.size(), references_of_context());
  for (const cl_event event : events) CHECK(clReleaseEvent(event));
  printf("queue %u, context %u\n", ask<cl_uint>(clGetCommandQueueInfo, queue, CL_QUEUE_REFERENCE_COUNT),
         references_of_context());
  CHECK(clReleaseCommandQueue(queue));
  printf("context %u\n", references_of_context());
}

// Work of two threads in one queue in order never runs at the same time.
void threads() {
  const cl_command_queue queue = make_queue();
  const cl_mem a = make_buffer();
  fill(queue, a, 0);
  constexpr cl_uint kEach = 400;
  const auto body = [&] {
    const cl_kernel kernel = make_kernel("slowly_add", a);
    for (cl_uint i = 0; i < kEach; ++i) {
      const size_t items = kItems, group = 1024;
      CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, &group, 0, nullptr, nullptr));
      if (i % 50 == 0) read(queue, a);
    }
    CHECK(clFlush(queue));
    CHECK(clReleaseKernel(kernel));
  };
  std::thread one(body), two(body);
  one.join();
  two.join();
  body();
  printf("%u of %u\n", read(queue, a), 3 * kEach);
}

// Nothing waits for what a user's event holds up.
void blocked() {
  const cl_command_queue queue = make_queue();
  const cl_mem a = make_buffer();
  const cl_kernel kernel = make_kernel("mix_up", a);
  cl_int code = CL_SUCCESS;
  const cl_event gate = clCreateUserEvent(g_context, &code);
  CHECK(code);
  fill(queue, a, 3);
  CHECK(clEnqueueMarkerWithWaitList(queue, 1, &gate, nullptr));
  cl_event last = nullptr;
  for (cl_uint i = 0; i < 40; ++i) mix(queue, kernel, i, i == 39 ? &last : nullptr);
  CHECK(clFlush(queue));
  usleep(20000);
  printf("held up: %d\n", ask<cl_int>(clGetEventInfo, last, CL_EVENT_COMMAND_EXECUTION_STATUS) > CL_COMPLETE);
  // Another queue goes on.
  const cl_command_queue other = make_queue();
  const cl_mem b = make_buffer();
  const cl_kernel second = make_kernel("mix_up", b);
  fill(other, b, 1);
  mix(other, second, 5);
  printf("%u\n", read(other, b));
  std::thread opener([&] { CHECK(clSetUserEventStatus(gate, CL_COMPLETE)); });
  CHECK(clWaitForEvents(1, &last));
  opener.join();
  printf("%u\n", read(queue, a));
}

// What the runtime refuses leaves nothing behind.
void refused() {
  const cl_command_queue queue = make_queue();
  const cl_mem a = make_buffer();
  const cl_kernel kernel = make_kernel("mix_up", a);
  fill(queue, a, 11);
  const size_t items = kItems, wrong = 7;
  for (cl_uint i = 0; i < 10; ++i) {
    cl_uint k = 0;
    mix(queue, kernel, i);
    printf("%d ", clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, &wrong, 0, nullptr, nullptr));
    printf("%d ", clEnqueueReadBuffer(queue, a, CL_TRUE, 0, 4, &k, 3, nullptr, nullptr));
    printf("%d\n", clEnqueueCopyBuffer(queue, a, a, 0, 0, 2 * kBytes, 0, nullptr, nullptr));
  }
  printf("%u\n", read(queue, a));
  CHECK(clReleaseKernel(kernel));
  CHECK(clReleaseMemObject(a));
  CHECK(clReleaseCommandQueue(queue));
  usleep(20000);
  printf("context %u\n", references_of_context());
}

// A queue that the program has released while something in it has not ended, and whose events it keeps.
void released() {
  cl_int code = CL_SUCCESS;
  const cl_event gate = clCreateUserEvent(g_context, &code);
  CHECK(code);
  const cl_uint before = references_of_context();
  const cl_command_queue queue = make_queue();
  const cl_mem a = make_buffer();
  const cl_kernel kernel = make_kernel("mix_up", a);
  fill(queue, a, 2);
  CHECK(clEnqueueMarkerWithWaitList(queue, 1, &gate, nullptr));
  cl_event last = nullptr;
  for (cl_uint i = 0; i < 10; ++i) mix(queue, kernel, i, i == 9 ? &last : nullptr);
  CHECK(clRetainCommandQueue(queue));
  CHECK(clReleaseCommandQueue(queue));
  mix(queue, kernel, 10);
  CHECK(clReleaseCommandQueue(queue));
  CHECK(clSetUserEventStatus(gate, CL_COMPLETE));
  CHECK(clWaitForEvents(1, &last));
  usleep(20000);
  const auto of_event = ask<cl_command_queue>(clGetEventInfo, last, CL_EVENT_COMMAND_QUEUE);
  printf("queue %d, properties %d\n", of_event == queue,
         static_cast<int>(ask<cl_command_queue_properties>(clGetCommandQueueInfo, of_event, CL_QUEUE_PROPERTIES)));
  // It can still be used.
  CHECK(clRetainCommandQueue(of_event));
  printf("%u\n", read(of_event, a));
  CHECK(clReleaseCommandQueue(of_event));
  printf("held %d\n", references_of_context() > before);
  CHECK(clReleaseEvent(last));
  CHECK(clReleaseKernel(kernel));
  CHECK(clReleaseMemObject(a));
  usleep(20000);
  printf("context as before %d\n", references_of_context() == before);
}

// Without order, and with profiling of the program's own.
void others() {
  const cl_command_queue loose = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE),
                         own = make_queue(CL_QUEUE_PROFILING_ENABLE);
  const cl_mem a = make_buffer();
  const cl_kernel kernel = make_kernel("mix_up", a);
  fill(own, a, 1);
  CHECK(clFinish(own));
  cl_event before = nullptr, event = nullptr;
  cl_int code = CL_SUCCESS;
  const cl_event gate = clCreateUserEvent(g_context, &code);
  CHECK(code);
  // Behind an event that comes last: what follows must not wait for it.
  const cl_mem b = make_buffer();
  const cl_uint nine = 9;
  CHECK(clEnqueueFillBuffer(loose, b, &nine, sizeof nine, 0, kBytes, 1, &gate, nullptr));
  const size_t items = kItems, group = 64;
  for (cl_uint i = 0; i < 30; ++i) {
    CHECK(clSetKernelArg(kernel, 1, sizeof i, &i));
    CHECK(
        clEnqueueNDRangeKernel(loose, kernel, 1, nullptr, &items, &group, i != 0, i != 0 ? &before : nullptr, &event));
    if (before != nullptr) CHECK(clReleaseEvent(before));
    before = event;
  }
  CHECK(clWaitForEvents(1, &before));
  printf("%u\n", read(own, a));
  CHECK(clSetUserEventStatus(gate, CL_COMPLETE));
  CHECK(clFinish(loose));
  printf("%u\n", read(own, b));
  mix(own, kernel, 3, &event);
  CHECK(clFinish(own));
  cl_ulong time = 0;
  printf("profiling %d\n", clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr));
}

const char* const kSource = R"(
kernel void mix_up(global uint* a, uint k) { size_t i = get_global_id(0); a[i] = a[i] * 3u + k; }
kernel void slowly_add(global uint* a) {
  size_t i = get_global_id(0);
  uint before = a[i], v = before;
  for (int n = 0; n < 600; ++n) v = v * 1664525u + 1013904223u;
  a[i] = v == 12345u ? v : before + 1u;
}
)";

}  // namespace

int main(int argc, char** argv) {
  cl_platform_id platform = nullptr;
  CHECK(clGetPlatformIDs(1, &platform, nullptr));
  CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &g_device, nullptr));
  cl_int code = CL_SUCCESS;
  g_context = clCreateContext(nullptr, 1, &g_device, nullptr, nullptr, &code);
  CHECK(code);
  const char* text = kSource;
  g_program = clCreateProgramWithSource(g_context, 1, &text, nullptr, &code);
  CHECK(code);
  CHECK(clBuildProgram(g_program, 1, &g_device, "", nullptr, nullptr));
  constexpr struct {
    const char* name;
    void (*run)();
  } kCases[] = {{"chain", chain},     {"threads", threads},   {"blocked", blocked},
                {"refused", refused}, {"released", released}, {"others", others}};
  for (const auto& one : kCases)
    if (argc > 1 && strcmp(argv[1], one.name) == 0) return one.run(), 0;
  return 1;
}

/* A library that launches kernels from threads of its own while its caller waits, as PyTorch's autograd engine does:
 * what stacks of launches are tested on. Loaded by autograd.py through ctypes, which lets go of the interpreter's lock. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

static cl_context context;
static cl_command_queue queue;
static cl_program program;
static cl_mem buffer;
static pthread_barrier_t together;

static const char* const source = "kernel void first(global float* x) { size_t i = get_global_id(0); for (int k = 0; k "
                                  "< 900; ++k) x[i] = x[i] * 0.9f + 1; }\n"
                                  "kernel void second(global float* x) { size_t i = get_global_id(0); for (int k = 0; "
                                  "k < 100; ++k) x[i] = x[i] * 0.9f + 2; }\n"
                                  "kernel void of_two(global float* x) { x[get_global_id(0)] += 3; }\n"
                                  "kernel void of_nobody(global float* x) { x[get_global_id(0)] += 4; }\n";

int set_up(void) {
  cl_platform_id platform;
  cl_device_id device;
  if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS)
    return 1;
  context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, NULL);
  program = clCreateProgramWithSource(context, 1, (const char**)&source, NULL, NULL);
  if (clBuildProgram(program, 1, &device, "", NULL, NULL) != CL_SUCCESS) return 2;
  buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096 * sizeof(float), NULL, NULL);
  return pthread_barrier_init(&together, NULL, 2);
}

/* The same on the stand-in for CUPTI, which starts as CUDA's driver does. */
static void (*cuda_launch)(const char*);
static void (*cuda_complete)(void);
int set_up_cuda(void) {
  const char* const injection = getenv("CUDA_INJECTION64_PATH");
  void* const library = injection != NULL ? dlopen(injection, RTLD_NOW) : NULL;
  int (*const start)(void) = library != NULL ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
  if (start == NULL || start() != 1) return 1;
  void* const cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  if (cupti == NULL) return 2;
  cuda_launch = (void (*)(const char*))dlsym(cupti, "fake_launch");
  cuda_complete = (void (*)(void))dlsym(cupti, "fake_complete");
  ((void (*)(void))dlsym(cupti, "fake_start"))();
  return pthread_barrier_init(&together, NULL, 2);
}

struct Work {
  const char* kernel;
  int launches, partner;
};

static void* launcher(void* argument) {
  const struct Work* const work = argument;
  const size_t count = 4096;
  if (cuda_launch != NULL) {
    if (work->partner) pthread_barrier_wait(&together);
    for (int i = 0; i < work->launches; ++i) cuda_launch(work->kernel);
    cuda_complete();
    if (work->partner) pthread_barrier_wait(&together);
    return NULL;
  }
  cl_kernel kernel = clCreateKernel(program, work->kernel, NULL);
  clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
  if (work->partner) pthread_barrier_wait(&together);
  for (int i = 0; i < work->launches; ++i) clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &count, NULL, 0, NULL, NULL);
  clFinish(queue);
  if (work->partner) pthread_barrier_wait(&together);
  clReleaseKernel(kernel);
  return NULL;
}

/* Waits until a thread has launched; `partner`: that thread and the one of another caller begin and end together. */
void run_backward(const char* kernel, int launches, int partner) {
  struct Work work = {kernel, launches, partner};
  pthread_t thread;
  if (pthread_create(&thread, NULL, launcher, &work) == 0) pthread_join(thread, NULL);
}

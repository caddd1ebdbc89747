// The calls of the program about queues and events that tacho answers or follows.
#pragma once

#include "capture/source/opencl/core.h"

namespace tacho::capture::opencl {

using CreateQueue = cl_command_queue(CL_API_CALL*)(cl_context, cl_device_id, const cl_queue_properties*, cl_int*);
/// The hook of clCreateCommandQueueWithProperties and of its extension twin.
cl_command_queue create_queue_by(CreateQueue forward, uint16_t function, cl_context context, cl_device_id device,
                                 const cl_queue_properties* asked, cl_int* code);
void install_queue_hooks(cl_icd_dispatch& hooks);

}  // namespace tacho::capture::opencl

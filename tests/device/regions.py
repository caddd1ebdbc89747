"""rocprofv3 --selected-regions --pmc on an NVIDIA GPU: eight launches, of which the program lets the third to the fifth be recorded."""
import ctypes
import sys

PTX = b""".version 7.0
.target sm_52
.address_size 64
.visible .entry touch(.param .u64 out) { .reg .u64 %a; .reg .u32 %v; ld.param.u64 %a, [out]; cvta.to.global.u64 %a, %a;
 ld.global.u32 %v, [%a]; add.u32 %v, %v, 1; st.global.u32 [%a], %v; ret; }\0"""

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *words):
    code = getattr(cuda, name)(*words)
    if code != 0:
        sys.exit(f"{name}: {code}")


def ask(name):
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None and "never" not in sys.argv:
        function(ctypes.c_uint64(0))


device, context, module, kernel, memory = ctypes.c_int(), *(ctypes.c_void_p() for _ in range(4))
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), PTX)
call("cuModuleGetFunction", ctypes.byref(kernel), module, b"touch")
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(4))
call("cuMemsetD32_v2", memory, 0, ctypes.c_size_t(1))
for i in range(8):
    if i == 2:
        ask("roctxProfilerResume")
    if i == 5:
        ask("roctxProfilerPause")
    words = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    call("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, None, words, None)
result = ctypes.c_uint32()
call("cuMemcpyDtoH_v2", ctypes.byref(result), memory, ctypes.c_size_t(4))
print("result", result.value)

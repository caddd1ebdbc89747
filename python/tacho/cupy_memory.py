"""What CuPy's memory pool hands out and takes back: `--memory` of tacho trace.

torch_trace.py loads this file when the program imports CuPy. CuPy calls hooks around each array's memory, one set a thread; Python's
threads get theirs when they begin. The pools of cudaMallocAsync and allocators of the program's own call no hooks: of those
the calls of CUDA tell.
"""
import ctypes
import threading


def install(cupy, library, swap):
    """Tells libtacho.so of the pool's memory from now on. `swap`: torch_trace._swap."""
    tell = library.tacho_cupy_memory
    tell.argtypes, tell.restype = [ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int], None

    class Memory(cupy.cuda.MemoryHook):
        name = "tacho"

        def malloc_postprocess(self, device_id=-1, size=0, mem_size=0, mem_ptr=0, **_):
            if mem_ptr:
                tell(0, mem_ptr, mem_size, device_id)
            else:
                tell(2, 0, size, device_id)

        # Before: behind the free another thread may have the memory.
        def free_preprocess(self, device_id=-1, mem_size=0, mem_ptr=0, **_):
            tell(1, mem_ptr, mem_size, device_id)

    def begin(*_):
        try:
            Memory().__enter__()
        except KeyError:  # this thread has it
            pass
        return False

    # The line that holds memory is the program's: to whom looks at stacks these are functions of CuPy's.
    for function in (Memory.malloc_postprocess, Memory.free_preprocess, begin):
        function.__code__ = function.__code__.replace(co_filename=cupy.__file__)
    begin()
    swap(threading.Thread._bootstrap_inner, begin, lambda: None)

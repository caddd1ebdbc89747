"""Kernels launched by threads without Python while the thread that asked for them waits in torch/autograd (a stand-in).

usage: autograd.py LIBRARY ROUNDS [cuda]        cuda: on the stand-in for CUPTI, else OpenCL
"""
import ctypes
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from torch import autograd  # noqa: E402


def step(engine, launches):
    autograd.backward(engine, b"first", launches)  # first
    autograd.backward(engine, b"second", launches)  # second


def at_once(engine, launches):
    autograd.backward(engine, b"of_two", launches, 1)  # of_two


def elsewhere(engine, launches):
    engine.run_backward(b"of_nobody", launches, 0)  # of_nobody


def main():
    engine = ctypes.CDLL(sys.argv[1])
    engine.run_backward.restype = None
    if (engine.set_up_cuda() if "cuda" in sys.argv else engine.set_up()) != 0:
        sys.exit("autograd.py: no device")
    while time.process_time() < 0.2:  # long enough to be sampled: that is how this thread is known to be Python's
        pass
    idle, end = threading.Event(), threading.Event()

    def sleeper():  # another Python thread: it waits, but for no backward pass
        idle.set()
        end.wait()

    other = threading.Thread(target=sleeper)
    other.start()
    idle.wait()
    for _ in range(int(sys.argv[2])):
        step(engine, 5)
    threads = [threading.Thread(target=at_once, args=(engine, 20)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elsewhere(engine, 20)
    end.set()
    other.join()
    print("done")


main()

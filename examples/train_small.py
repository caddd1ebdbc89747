"""Trains a deep, narrow perceptron: many short CUDA kernels per step, so that launch overhead decides the time.

Prints milliseconds per step (median). With --profiler the steps run under torch.profiler; --counts FILE writes what it
saw (kernel name, count, total ns; copies with bytes) as JSON, to compare another profiler's trace with.
"""
import argparse
import collections
import json
import statistics
import sys
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=50)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--profiler", choices=["none", "cuda", "both"], default="none")
    parser.add_argument("--profiler-early", action="store_true", help="torch.profiler takes its memory on the GPU before the "
                        "program does (needs --warmup); it records the timed steps either way")
    parser.add_argument("--counts", help="JSON file for what torch.profiler saw")
    parser.add_argument("--trace", help="Chrome JSON file that torch.profiler writes")
    parser.add_argument("--mark-region", action="store_true", help="cudaProfilerStart/Stop around the timed steps")
    parser.add_argument("--nvtx", action="store_true", help="an NVTX range per operator in the timed steps (emit_nvtx)")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()

    try:
        import torch
    except ImportError:
        sys.exit("train_small.py: this Python has no torch; use one that has")
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit("train_small.py: torch sees no CUDA device; --device cpu trains on the CPU")

    profiler = None

    def start_profiler(schedule=None):
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CUDA]
        if arguments.profiler == "both":
            activities.append(ProfilerActivity.CPU)
        profiler = profile(activities=activities, schedule=schedule)
        profiler.__enter__()
        return profiler

    early = arguments.profiler_early and arguments.profiler != "none"
    if early:
        if arguments.warmup < 1:
            sys.exit("train_small.py: --profiler-early needs --warmup 1 or more")
        profiler = start_profiler(torch.profiler.schedule(wait=0, warmup=arguments.warmup, active=arguments.steps, repeat=1))

    torch.manual_seed(1)
    device = torch.device(arguments.device)
    layers = []
    for _ in range(arguments.layers):
        layers += [torch.nn.Linear(arguments.width, arguments.width), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs = torch.randn(arguments.batch, arguments.width)
    target = torch.randn(arguments.batch, arguments.width, device=device)

    def synchronize():
        if device.type == "cuda":
            torch.cuda.synchronize()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(model(inputs.to(device)), target)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(arguments.warmup):
        step()
        if early:
            synchronize()
            profiler.step()
    synchronize()
    if arguments.profiler != "none" and not early:
        profiler = start_profiler()

    ranges = torch.autograd.profiler.emit_nvtx() if arguments.nvtx else None
    if ranges is not None:
        ranges.__enter__()
    if arguments.mark_region:
        torch.cuda.profiler.start()
    times = []
    loss = None
    for _ in range(arguments.steps):
        begin = time.perf_counter()
        loss = step()
        synchronize()
        times.append(time.perf_counter() - begin)
        if early:
            profiler.step()

    if arguments.mark_region:
        torch.cuda.profiler.stop()
    if ranges is not None:
        ranges.__exit__(None, None, None)
    if profiler is not None:
        profiler.__exit__(None, None, None)
        if arguments.trace:
            profiler.export_chrome_trace(arguments.trace)
        if arguments.counts:
            work = collections.defaultdict(lambda: [0, 0, 0])
            for event in profiler.profiler.kineto_results.events():
                if "CUDA" in str(event.device_type()):
                    work[event.name()][0] += 1
                    work[event.name()][1] += event.duration_ns()
                    work[event.name()][2] += event.nbytes()
            with open(arguments.counts, "w") as file:
                json.dump({name: dict(zip(("count", "ns", "bytes"), values)) for name, values in work.items()}, file, indent=1)

    print(f"train_small: {arguments.layers} layers, {arguments.steps} steps: "
          f"{1000 * statistics.median(times):.3f} ms/step, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()

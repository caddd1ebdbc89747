#!/usr/bin/env python3
"""Small models for torch_ops.py: the same seeds give the same bits. Prints the losses' bits, or seconds with --time.

usage: torch_models.py MODEL [--steps N] [--profile FILE.json] [--time]
MODEL: mlp, cnn, transformer, gpt2 (needs transformers), resnet50 (needs torchvision), graph (replays of a CUDA graph of 12 encoder
layers), graph-kinds (pieces, threads, captured again), compiled, compiled-graphs. --profile: torch.profiler's trace of the same steps.
"""
import argparse
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Mlp(nn.Module):
    def __init__(self, width=1024, layers=12):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.head = nn.Linear(width, 16)

    def forward(self, x):
        for layer in self.layers:
            x = F.gelu(layer(x)) + x
        return self.head(x)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, padding=1)
        self.blocks = nn.Sequential(*[nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())
                                      for _ in range(4)])
        self.head = nn.Linear(32, 16)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.blocks(F.relu(self.stem(x))), 1).flatten(1))


class Encoder(nn.Module):
    def __init__(self, layers=6, width=512):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 16)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1))


def training(model, inputs, targets, steps, autocast=False):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
            loss = F.cross_entropy(model(inputs).float(), targets)
        loss.backward()
        optimizer.step()
        return loss

    return step


def make(name):
    torch.manual_seed(1)
    target = torch.randint(0, 16, (32,), device="cuda")
    if name == "mlp":
        return training(Mlp().cuda(), torch.randn(32, 1024, device="cuda"), target, 0)
    if name == "cnn":
        return training(Cnn().cuda(), torch.randn(32, 3, 64, 64, device="cuda"), target, 0)
    if name == "transformer":
        return training(Encoder().cuda(), torch.randn(32, 64, 512, device="cuda"), target, 0)
    if name == "resnet50":
        import torchvision
        model = torchvision.models.resnet50(num_classes=16).cuda()
        return training(model, torch.randn(32, 3, 128, 128, device="cuda"), target, 0, autocast=True)
    if name == "gpt2":
        import transformers
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=4, n_embd=256, n_head=4, vocab_size=1000)).cuda()
        ids = torch.randint(0, 1000, (4, 64), device="cuda")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

        def step():
            optimizer.zero_grad()
            loss = model(ids, labels=ids).loss
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                model.generate(ids[:1, :8], max_new_tokens=4, do_sample=False, pad_token_id=0)
            return loss

        return step
    if name == "graph":
        model = Encoder(12, 256).cuda().half().eval()
        x = torch.randn(4, 1, 256, device="cuda", dtype=torch.half)
        with torch.no_grad():
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                for _ in range(3):
                    model(x)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = model(x)

        def replay():
            graph.replay()
            return out.float().sum()

        return replay
    if name == "graph-kinds":
        # Pieces with eager attention between them, as servers of language models capture; a graph that another thread launches; one
        # that is captured again for another batch.
        import threading
        model = Encoder(4, 256).cuda().half().eval()
        pieces, held = [], []

        def capture(work, *inputs):
            for _ in range(2):
                work(*inputs)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                held.append(work(*inputs))
            return graph

        with torch.no_grad():
            x = torch.randn(4, 1, 256, device="cuda", dtype=torch.half)
            for layer in model.encoder.layers:
                pieces.append(capture(lambda layer=layer: layer.linear2(torch.relu(layer.linear1(layer.norm1(x))))))
            again = capture(model, x)
            again.replay()
            torch.cuda.synchronize()
            again.reset()
            again = capture(model, torch.randn(8, 1, 256, device="cuda", dtype=torch.half))

        def step():
            with torch.no_grad():
                for piece, layer in zip(pieces, model.encoder.layers):
                    piece.replay()
                    held.append(layer.self_attn(x, x, x, need_weights=False)[0])
                    held.pop()
                thread = threading.Thread(target=again.replay)
                thread.start()
                thread.join()
            return held[-1].float().sum()

        return step
    if name in ("compiled", "compiled-graphs"):
        model = Mlp(512, 4).cuda()
        mode = {"mode": "reduce-overhead"} if name == "compiled-graphs" else {"fullgraph": True}
        return training(torch.compile(model, **mode), torch.randn(32, 512, device="cuda"), target, 0)
    raise SystemExit(f"no model {name}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=0)
    parser.add_argument("--profile", default="")
    parser.add_argument("--profile-time", action="store_true", help="with --time: under torch.profiler, CPU and CUDA")
    parser.add_argument("--time", action="store_true")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    if options.profile:
        with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
            step = make(options.model)
            for _ in range(options.steps):
                step()
            torch.cuda.synchronize()
        profile.export_chrome_trace(options.profile)
        return
    step = make(options.model)
    for _ in range(options.warmup):
        step()
    torch.cuda.synchronize()
    if options.time:
        def timed():
            begin = time.perf_counter()
            for _ in range(options.steps):
                step()
            torch.cuda.synchronize()
            return time.perf_counter() - begin
        if options.profile_time:
            with torch.profiler.profile(activities=activities):
                print(timed())
        else:
            print(timed())
        return
    for _ in range(options.steps):
        print(float(step()).hex())
    sys.stdout.flush()


if __name__ == "__main__":
    main()

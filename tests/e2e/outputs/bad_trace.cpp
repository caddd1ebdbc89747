// Makes traces that writers find hard: bad_trace FILE CASE [NUMBER]. outputs_test.py has the meaning of each case.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "event/times.h"
#include "support/trace_maker.h"

namespace {

using namespace tacho;
using event::kUnknown;
using test::TraceMaker;
namespace row = event::row;

constexpr int64_t kStart = 1'000'000'000'000;

/// Rows of every table, with texts `prefix` + what they name + `suffix`.
struct Everything {
  TraceMaker& make;
  std::string prefix, suffix;
  int64_t start = kStart;

  std::string named(const char* what) const { return prefix + what + suffix; }

  int64_t host_rows(int64_t process, int64_t thread) const {
    const int64_t domains[] = {
        make.function(named("function"), event::Domain::kCudaRuntime),
        make.function(named("driver function"), event::Domain::kCudaDriver),
        make.function(named("operator"), event::Domain::kOperator),
        make.function(named("python function"), event::Domain::kPython),
        make.function(named("hip function"), event::Domain::kHipRuntime),
    };
    int64_t at = start;
    for (const int64_t function : domains) {
      at += 100;
      make.call(thread, at, 50, function, at);
    }
    for (const auto kind : {event::MarkerKind::kPushPop, event::MarkerKind::kStartStop, event::MarkerKind::kMark}) {
      const int64_t label = make.writer().dimension(row::Label{.name = make.text(named("label")),
                                                               .kind = kind,
                                                               .domain = make.text(named("domain")),
                                                               .category = make.text(named("category"))});
      const int64_t track = kind == event::MarkerKind::kStartStop ? make.range_track(process) : thread;
      make.marker(track, at += 100, kind == event::MarkerKind::kMark ? 0 : 60, label);
    }
    const int64_t outer = make.stack(0, make.writer().dimension(row::Frame{.kind = event::FrameKind::kNative,
                                                                           .function = make.text(named("outer frame")),
                                                                           .file = make.text(named("file")),
                                                                           .line = 3,
                                                                           .module = make.text(named("module")),
                                                                           .address = 16}));
    const int64_t inner =
        make.stack(outer, make.frame(event::FrameKind::kPython, named("inner frame"), named("file"), 4));
    for (int i = 0; i < 3; ++i) make.sample(thread, start + i * 10, 10, inner, start + 100);
    return at;
  }

  void device_rows(int64_t process, int64_t thread, int64_t device) const {
    const int64_t queue = make.writer().dimension(row::Track{.kind = event::TrackKind::kQueue,
                                                             .process = process,
                                                             .device = device,
                                                             .native = 7,
                                                             .context = 1,
                                                             .name = make.text(named("stream")),
                                                             .category = make.text("stream")});
    const int64_t call = make.function(named("launch"), event::Domain::kCudaRuntime);
    int64_t at = start + 10'000;
    for (int64_t i = 0; i < 3; ++i) {
      make.call(thread, at, 40, call, 1000 + i);
      make.dispatch(queue, at + 50, 500, make.kernel(named("kernel")), 1000 + i, i);
      make.counter_value(queue, at + 50, i, make.counter(named("counter"), named("unit")), 0, 1.5);
      at += 1000;
    }
    make.copy(queue, at, 100, event::CopyDirection::kHostToDevice, 4096, device, 0);
    make.fill(queue, at + 200, 100, 4096, device);
    make.allocation(thread, at, false, 4096, 0x1000, device);
    make.allocation(thread, at + 400, true, 4096, 0x1000, device);
    make.reading(process, device, make.counter(named("quantity"), named("unit")), named("reading"), at, 2.5);
    make.writer().add(
        row::Sync{.track = thread,
                  .start = at + 500,
                  .duration = 20,
                  .dim = make.writer().dimension(row::SyncShape{.kind = event::SyncKind::kDevice, .device = device})});
    make.writer().add(
        row::Overhead{.track = thread,
                      .start = at + 600,
                      .duration = 20,
                      .dim = make.writer().dimension(row::OverheadShape{.kind = event::OverheadKind::kProfiler,
                                                                        .name = make.text(named("overhead"))})});
    make.writer().add(row::Message{.track = thread,
                                   .start = at + 700,
                                   .duration = 20,
                                   .dim = make.writer().dimension(row::Communicator{
                                       .identity = 5, .name = make.text(named("communicator")), .size = 2}),
                                   .kind = event::MessageKind::kSend,
                                   .function = make.text(named("MPI_Send")),
                                   .sent = 8,
                                   .received = 0,
                                   .peer = 1,
                                   .tag = 4});
    make.writer().note(process, event::NoteSeverity::kInfo, named("note"));
  }

  void write(int64_t pid) const {
    const int64_t process = make.process(pid, named("app"), 0, named("host"));
    const int64_t device = make.writer().dimension(row::Device{.process = process,
                                                               .kind = event::DeviceKind::kGpu,
                                                               .index = 0,
                                                               .name = make.text(named("device")),
                                                               .vendor = make.text(named("vendor")),
                                                               .architecture = make.text(named("architecture")),
                                                               .driver = make.text(named("driver")),
                                                               .uuid = make.text(named("uuid"))});
    make.writer().property(event::Table::kDevice, device, named("key"), named("value"));
    const int64_t thread = make.thread_track(process, pid, named("thread"));
    host_rows(process, thread);
    device_rows(process, thread, device);
    make.clock(start, start + 1000);
    make.clock(start + 1'000'000, start + 1'001'000);
  }
};

void any_bytes(TraceMaker& make, int64_t) {
  // Every byte, the forms of invalid UTF-8, what CSV, JSON, XML and folded stacks escape, and text of two directions.
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const std::string suffix =
      bytes +
      " \"q\" 'a' ,;:|\t\r\n\\ <b>&amp; =1+1 \xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x80\xa8 \xd7\xa9 \xf0\x9f\x9a\x80 \xe2\x82";
  Everything{make, {}, suffix}.write(100);
  Everything{make, "\xff\"", "\xfe\n", kStart + 100'000}.write(101);
}

void long_names(TraceMaker& make, int64_t bytes) {
  Everything{make, {}, std::string(static_cast<size_t>(bytes), 'x')}.write(100);
  Everything{make, std::string(static_cast<size_t>(bytes), 'y'), "\xe2\x82\xac", kStart + 100'000}.write(101);
}

void times(TraceMaker& make, int64_t) {
  const int64_t process = make.process(100), device = make.device("GPU"), thread = make.thread_track(process, 100);
  const int64_t queue = make.queue_track(process, device, 7), kernel = make.kernel("kernel");
  const int64_t call = make.function("launch", event::Domain::kCudaRuntime), label = make.label("range");
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min() + 1, kMost = std::numeric_limits<int64_t>::max();
  // Rows that the writer of traces refuses, and the farthest that it keeps.
  constexpr int64_t kFarthest = event::kFarthestTime;
  for (const auto& [start, duration] :
       {std::pair{-kFarthest, int64_t{10}}, std::pair{-kFarthest, kFarthest}, std::pair{kFarthest, kFarthest},
        std::pair{kFarthest, int64_t{0}}, std::pair{kLeast, int64_t{10}}, std::pair{kLeast, kMost},
        std::pair{kMost - 5, kMost}, std::pair{kMost, int64_t{0}}, std::pair{int64_t{-5}, int64_t{10}},
        std::pair{kStart, kMost}, std::pair{kStart, kUnknown}}) {
    make.dispatch(queue, start, duration, kernel);
    make.call(thread, start, duration, call);
    make.marker(thread, start, duration, label);
  }
  make.clock(0, kMost - 2'000'000'000'000);  // trace time and the other clocks are as far apart as can be
}

void no_owners(TraceMaker& make, int64_t) {
  const int64_t kernel = make.kernel("kernel"), call = make.function("launch", event::Domain::kCudaRuntime);
  const int64_t bare = make.writer().dimension(row::Track{.kind = event::TrackKind::kQueue, .native = 3});
  const int64_t thread = make.writer().dimension(row::Track{.kind = event::TrackKind::kThread, .native = 9});
  for (const int64_t track : {bare, int64_t{0}}) {
    make.dispatch(track, kStart, 10, kernel);
    make.copy(track, kStart + 20, 10, event::CopyDirection::kUnknown, kUnknown, 0);
    make.fill(track, kStart + 40, 10, kUnknown, 0);
  }
  for (const int64_t track : {thread, int64_t{0}}) {
    make.call(track, kStart, 10, call);
    make.marker(track, kStart, 10, make.label("range"));
    make.sample(track, kStart, 10, make.stack(0, make.frame(event::FrameKind::kNative, "frame")));
  }
}

void beside_owners(TraceMaker& make, int64_t number) {
  no_owners(make, number);
  Everything{make, {}, {}}.write(100);
}

void nothing(TraceMaker& make, int64_t) {
  make.clock(kStart, kStart + 1000);
}

void process_alone(TraceMaker& make, int64_t) {
  make.process(100);
}

void one_pid(TraceMaker& make, int64_t) {
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t process = make.process(100, "app" + std::to_string(i), i, "host" + std::to_string(i));
    const int64_t device = make.writer().dimension(row::Device{.process = process,
                                                               .kind = event::DeviceKind::kGpu,
                                                               .index = 0,
                                                               .name = make.text("GPU of " + std::to_string(i))});
    const int64_t queue = make.queue_track(process, device, 7), thread = make.thread_track(process, 100);
    const int64_t call = make.function("launch", event::Domain::kCudaRuntime);
    for (int64_t k = 0; k <= i; ++k) {
      make.call(thread, kStart + k * 1000, 50, call, k + 1);
      make.dispatch(queue, kStart + k * 1000 + 100, 500, make.kernel("kernel of " + std::to_string(i)), k + 1, k);
    }
    make.sample(thread, kStart, 10, make.stack(0, make.frame(event::FrameKind::kNative, "frame")));
  }
}

void many_names(TraceMaker& make, int64_t names) {
  const int64_t process = make.process(100), device = make.device("GPU"), thread = make.thread_track(process, 100);
  const int64_t queue = make.queue_track(process, device, 7);
  const int64_t call = make.function("launch", event::Domain::kCudaRuntime);
  for (int64_t i = 0; i < names; ++i) {
    const std::string number = std::to_string(i);
    make.call(thread, kStart + i * 1000, 50, call, i + 1);
    make.dispatch(queue, kStart + i * 1000 + 100, 500, make.kernel("void kernel<" + number + ">(float*)"), i + 1, i);
    if (i % 8 == 0) make.marker(thread, kStart + i * 1000 + 60, 30, make.label("step " + number));
    if (i % 8 == 0)
      make.sample(thread, kStart + i * 1000, 1000, make.stack(0, make.frame(event::FrameKind::kNative, "f" + number)));
  }
}

// Each sample has a stack of its own, of five out of 160 functions; every fourth launches a kernel.
void many_stacks(TraceMaker& make, int64_t stacks) {
  const int64_t process = make.process(100), device = make.device("GPU"), thread = make.thread_track(process, 100);
  const int64_t queue = make.queue_track(process, device, 7), kernel = make.kernel("kernel");
  const int64_t call = make.function("launch", event::Domain::kCudaRuntime);
  constexpr int64_t kFunctions = 32, kDepth = 5;
  std::map<std::pair<int64_t, int64_t>, int64_t> known;  // a caller's stack and the function: the stack
  for (int64_t i = 0; i < stacks; ++i) {
    int64_t stack = 0, left = i;
    for (int64_t depth = kDepth; depth-- > 0; left /= kFunctions) {
      const std::string name = "function " + std::to_string(depth) + " " + std::to_string(left % kFunctions);
      const int64_t frame = make.frame(event::FrameKind::kNative, name);
      if (depth == 0) {
        stack = make.stack(stack, frame);  // no other stack is like it
        break;
      }
      int64_t& row = known[{stack, frame}];
      if (row == 0) row = make.stack(stack, frame);
      stack = row;
    }
    const bool launches = i % 4 == 0;
    make.sample(thread, kStart + i * 1000, 1000, stack, launches ? i + 1 : 0);
    if (!launches) continue;
    make.call(thread, kStart + i * 1000, 50, call, i + 1);
    make.dispatch(queue, kStart + i * 1000 + 100, 500, kernel, i + 1, i);
  }
}

}  // namespace

int main(int argc, char** argv) {
  static const std::map<std::string, std::function<void(TraceMaker&, int64_t)>> kCases = {
      {"any_bytes", any_bytes},
      {"long_names", long_names},
      {"times", times},
      {"no_owners", no_owners},
      {"beside_owners", beside_owners},
      {"nothing", nothing},
      {"process_alone", process_alone},
      {"one_pid", one_pid},
      {"many_names", many_names},
      {"many_stacks", many_stacks},
  };
  const auto chosen = argc < 3 ? kCases.end() : kCases.find(argv[2]);
  if (chosen == kCases.end()) return std::fprintf(stderr, "usage: bad_trace FILE CASE [NUMBER]\n"), 2;
  TraceMaker make(argv[1], {.overwrite = true});
  chosen->second(make, argc > 3 ? std::atoll(argv[3]) : 0);
  const Status done = make.writer().finish();
  if (!done) std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return done ? 0 : 1;
}

// Perfetto traces made by hand for tests, in the forms that other writers than tacho leave.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::test {

/// A protobuf message, field by field.
class Proto {
 public:
  Proto& number(uint32_t field, uint64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  Proto& fixed(uint32_t field, uint64_t value) {
    varint(static_cast<uint64_t>(field) << 3 | 1);
    char bytes[8];
    std::memcpy(bytes, &value, 8);
    text_.append(bytes, 8);
    return *this;
  }
  Proto& real(uint32_t field, double value) { return fixed(field, std::bit_cast<uint64_t>(value)); }
  Proto& bytes(uint32_t field, std::string_view content) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(content.size());
    text_ += content;
    return *this;
  }
  Proto& message(uint32_t field, const Proto& content) { return bytes(field, content.text_); }
  const std::string& text() const { return text_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

/// A trace: packets, one after the other.
class PacketsMaker {
 public:
  PacketsMaker& packet(const Proto& content) {
    trace_.message(1, content);
    return *this;
  }
  PacketsMaker& snapshot(std::initializer_list<std::pair<uint64_t, uint64_t>> clocks, uint64_t sequence = 0,
                         uint64_t incremental = 0, uint64_t multiplier = 0) {
    Proto snapshot;
    for (const auto& [id, time] : clocks) {
      Proto clock;
      clock.number(1, id).number(2, time);
      if (id == incremental) clock.number(3, 1);
      if (id == incremental && multiplier > 0) clock.number(4, multiplier);
      snapshot.message(1, clock);
    }
    Proto packet;
    packet.message(6, snapshot);
    if (sequence > 0) packet.number(10, sequence);
    return this->packet(packet);
  }
  PacketsMaker& process(uint64_t uuid, uint64_t pid, std::string_view name) {
    return packet(Proto().message(60, Proto().number(1, uuid).message(3, Proto().number(1, pid).bytes(6, name))));
  }
  PacketsMaker& thread(uint64_t uuid, uint64_t parent, uint64_t pid, uint64_t tid, std::string_view name) {
    return packet(Proto().message(60, Proto().number(1, uuid).number(5, parent).message(
                                          4, Proto().number(1, pid).number(2, tid).bytes(5, name))));
  }
  const std::string& text() const { return trace_.text(); }

 private:
  Proto trace_;
};

inline Proto interned_text(uint64_t iid, std::string_view text) {
  return Proto().number(1, iid).bytes(2, text);
}

/// As the newest profiler of a framework writes it: tracks first, all names in one packet, of each group of calls all
/// begins and then all ends, GPU work as render stages that calls name, counters by descriptor.
///
///   python3 (77)  main     aten::mm 100..900, in it cudaLaunchKernel 200..300 (correlation 7, causes GPU event 7)
///                          aten::relu 900..1000, cudaLaunchKernel 950..990 (causes GPU event 8; no correlation)
///   GPU 0         stream 7 gemm 1000..3000, relu 3000..3500, Memcpy HtoD 4000..4100 (4096 B), Memset 4200..4250
///   counter       power 300.5 W at 1500
inline std::string cuspy_trace(uint64_t base = 1'700'000'000'000'000'000) {
  PacketsMaker trace;
  Proto clocks;
  clocks.message(1, Proto().number(1, 6).number(2, base)).message(1, Proto().number(1, 1).number(2, base));
  trace.packet(Proto().number(8, base).number(10, 1).message(6, clocks));
  trace.process(1, 77, "python3").thread(2, 1, 77, 77, "main");
  Proto interned;
  interned.message(47, Proto().number(1, 1).number(3, 0).message(
                           2, Proto().message(1, Proto().number(1, 4).bytes(2, "power").number(7, 29))));
  int iid = 0;
  for (const std::string_view name : {"aten::mm", "cudaLaunchKernel", "aten::relu", "Memcpy HtoD (Pageable -> Device)",
                                      "Memset (Device)", "gemm", "relu"})
    interned.message(2, interned_text(static_cast<uint64_t>(++iid), name));
  interned.message(1, interned_text(1, "cpu_op")).message(1, interned_text(2, "cuda_runtime"));
  interned.message(24, Proto().number(1, 1).bytes(2, "Kernel").number(4, 2))
      .message(24, Proto().number(1, 2).bytes(2, "Memcpy").number(4, 0))
      .message(24, Proto().number(1, 3).bytes(2, "Memset").number(4, 0))
      .message(24, Proto().number(1, 100).bytes(2, "[0007] stream 7").number(4, 0));
  interned.message(23, Proto().number(1, 1).number(2, 77));
  interned.message(1000, Proto().number(1, 1).bytes(3, "void gemm<float>(int)"))
      .message(1000, Proto().number(1, 2).bytes(3, "relu(float*)"));
  interned.message(1001, interned_text(1, "registers_per_thread"))
      .message(1001, interned_text(2, "shared_mem_dynamic"));
  trace.packet(Proto().number(10, 1).number(13, 1).message(12, interned));
  const auto begin = [&](uint64_t time, uint64_t name, uint64_t category, uint64_t correlation, uint64_t causes) {
    Proto event;
    event.number(9, 1).number(11, 2).number(10, name).number(3, category);
    if (causes > 0) event.message(3000, Proto().number(1, causes));
    if (correlation > 0) event.message(4, Proto().bytes(10, "correlation").number(4, correlation));
    trace.packet(Proto().number(8, base + time).number(10, 1).number(13, 2).message(11, event));
  };
  const auto end = [&](uint64_t time) {
    trace.packet(Proto().number(8, base + time).number(10, 1).message(11, Proto().number(9, 2).number(11, 2)));
  };
  begin(100, 1, 1, 0, 0);
  begin(900, 3, 1, 0, 0);
  end(900);
  end(1000);
  begin(200, 2, 2, 7, 7);
  begin(950, 2, 2, 0, 8);
  end(300);
  end(990);
  const auto stage = [&](uint64_t time, uint64_t duration, uint64_t event, uint64_t kind, uint64_t name,
                         uint64_t kernel, std::initializer_list<std::pair<std::string_view, std::string_view>> extra) {
    Proto made;
    made.number(1, event).number(2, duration).number(11, 0).number(13, 100).number(14, kind).number(5, 1);
    if (name > 0) made.number(20, name);
    if (kernel > 0) {
      Proto launch;
      launch.message(1, Proto().number(1, 10).number(2, 2).number(3, 1))
          .message(2, Proto().number(1, 128).number(2, 1).number(3, 1))
          .message(3, Proto().number(1, 1).number(4, 40))
          .message(3, Proto().number(1, 2).number(4, 1024));
      made.number(19, kernel).message(21, launch);
    }
    for (const auto& [key, value] : extra) made.message(6, Proto().bytes(1, key).bytes(2, value));
    trace.packet(Proto().number(8, base + time).number(10, 1).number(13, 2).message(53, made));
  };
  stage(1000, 2000, 7, 1, 6, 1, {{"correlation", "7"}, {"stream id", "7"}, {"context id", "1"}, {"device id", "0"}});
  stage(3000, 500, 8, 1, 7, 2, {{"stream id", "7"}, {"context id", "1"}});
  stage(4000, 100, 9, 2, 4, 0, {{"stream id", "7"}, {"context id", "1"}, {"bytes", "4096"}});
  stage(4200, 50, 10, 3, 5, 0, {{"stream id", "7"}, {"context id", "1"}, {"bytes", "256"}});
  trace.packet(Proto()
                   .number(8, base + 1500)
                   .number(10, 1)
                   .number(13, 2)
                   .message(52, Proto().number(4, 1).message(2, Proto().number(1, 4).real(3, 300.5))));
  return trace.text();
}

/// As Perfetto's SDK writes it: two sequences, each with an incremental clock of its own in microseconds, names
/// interned apart, one thread each. Slices of 100 and 40 us (one in the other) on the first, an instant and a counter
/// on the second.
inline std::string sdk_trace() {
  PacketsMaker trace;
  trace.process(1, 500, "app");
  for (const uint64_t sequence : {3, 4}) {
    trace.snapshot({{6, 1'000'000'000}, {64, 1'000'000}}, sequence, 64, 1000);
    trace.packet(Proto()
                     .number(10, sequence)
                     .number(13, 1)
                     .number(87, 1)
                     .message(59, Proto().number(58, 64).message(11, Proto().number(11, 10 + sequence))));
    trace.thread(10 + sequence, 1, 500, 500 + sequence, sequence == 3 ? "worker" : "other");
  }
  const auto event = [&](uint64_t sequence, uint64_t delta, const Proto& content, const Proto& interned) {
    Proto packet;
    packet.number(8, delta).number(10, sequence).number(13, 2).message(11, content);
    if (!interned.text().empty()) packet.message(12, interned);
    trace.packet(packet);
  };
  Proto names;
  names.message(2, interned_text(1, "outer")).message(1, interned_text(1, "work"));
  Proto others;
  others.message(2, interned_text(1, "here")).message(1, interned_text(1, "other work"));
  event(3, 10, Proto().number(9, 1).number(10, 1).number(3, 1), names);
  event(4, 500, Proto().number(9, 3).number(10, 1).number(3, 1), others);
  event(3, 20, Proto().number(9, 1).bytes(23, "inner").number(3, 1).fixed(47, 99), {});
  event(3, 40, Proto().number(9, 2), {});
  event(3, 40, Proto().number(9, 2), {});
  trace.packet(
      Proto().message(60, Proto().number(1, 90).bytes(2, "depth").number(5, 1).message(8, Proto().bytes(6, "items"))));
  event(4, 5, Proto().number(9, 4).number(11, 90).number(30, 42), {});
  return trace.text();
}

/// Inputs for the fuzzer.
inline std::vector<std::string> perfetto_samples() {
  PacketsMaker more;
  more.packet(Proto().message(2, Proto()
                                     .message(1, Proto().number(1, 9).bytes(3, "/bin/app"))
                                     .message(2, Proto().number(1, 10).number(3, 9).bytes(2, "io"))));
  more.packet(Proto().message(128, Proto().message(1, Proto().bytes(1, "Big GPU").bytes(2, "Maker").bytes(5, "abc"))));
  more.packet(Proto().number(10, 1).number(13, 1).message(
      12, Proto()
              .message(5, interned_text(1, "main"))
              .message(17, interned_text(1, "/bin/app"))
              .message(19, Proto().number(1, 1).number(7, 1))
              .message(6, Proto().number(1, 1).number(2, 1).number(3, 1).number(4, 64))
              .message(7, Proto().number(1, 1).number(2, 1))));
  more.packet(Proto().number(8, 5000).number(10, 1).message(66, Proto().number(2, 9).number(3, 10).number(4, 1)));
  more.packet(Proto().number(8, 6000).number(10, 1).message(
      11, Proto().bytes(22, "c").bytes(23, "x").message(
              6, Proto().number(2, 'X').number(3, 9).number(18, 9).number(19, 10))));
  more.packet(Proto().number(8, 6000).number(10, 1).message(
      11, Proto().bytes(22, "c").bytes(23, "x").message(6, Proto().number(2, 'b').number(6, 9))));
  more.packet(Proto().number(8, 7000).number(10, 1).message(
      53, Proto()
              .message(7, Proto().message(2, Proto().bytes(1, "queue")).message(3, Proto().bytes(1, "render")))
              .number(3, 0)
              .number(4, 0)
              .number(2, 10)));
  return {cuspy_trace(), sdk_trace(), more.text()};
}

}  // namespace tacho::test

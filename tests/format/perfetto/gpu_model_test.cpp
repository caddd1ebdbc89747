// Perfetto's model of GPUs: what the packets hold, and that tacho reads all of it back.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/text/utf8.h"
#include "format/perfetto/perfetto.h"
#include "support/folder.h"
#include "support/trace_maker.h"
#include "trace/read/rows.h"

namespace tacho::test {
namespace {

using protozero::pbf_reader;
namespace row = event::row;

// A render stage, with what the numbers in it stand for.
struct Work {
  uint64_t id = 0, gpu = 0, machine = 0;
  int64_t duration = kUnknown, category = kUnknown, api = 0, pid = 0;
  std::string name, queue, kernel, demangled, architecture;
  std::vector<uint64_t> grid, group;
  std::map<std::string, std::string> args;
};
struct Model {
  std::vector<std::vector<std::string>> gpus;  // name, vendor, model, architecture by GPU
  std::vector<Work> works;                     // in file order
  std::vector<std::vector<uint64_t>> submissions;
  std::map<std::string, std::vector<double>> values;  // of counters, by name
  std::map<std::string, std::set<uint64_t>> groups;   // numbers of Perfetto's own, by counter
  std::map<std::string, std::string> custom;          // name of the other group
  std::map<uint64_t, std::string> machines;
  int slices = 0;  // begun by track events
};

using Fields = std::multimap<uint32_t, std::string>;  // numbers as text
Fields fields_of(std::string_view message) {
  Fields fields;
  for (pbf_reader in(message.data(), message.size()); in.next();) {
    const uint32_t tag = in.tag();
    if (in.wire_type() == protozero::pbf_wire_type::varint)
      fields.emplace(tag, std::to_string(in.get_uint64()));
    else if (in.wire_type() == protozero::pbf_wire_type::fixed64)
      fields.emplace(tag, fmt::format("{}", in.get_double()));
    else
      fields.emplace(tag, in.get_bytes());
  }
  return fields;
}
std::string first(const Fields& fields, uint32_t number) {
  const auto found = fields.find(number);
  return found == fields.end() ? std::string() : found->second;
}
uint64_t number(const Fields& fields, uint32_t number) {
  const std::string text = first(fields, number);
  return text.empty() ? 0 : std::stoull(text);
}
std::vector<std::string> all(const Fields& fields, uint32_t number) {
  std::vector<std::string> found;
  for (auto [at, end] = fields.equal_range(number); at != end; ++at) found.push_back(at->second);
  return found;
}

class Decoder {
 public:
  Model model;
  void packet(std::string_view bytes) {
    const Fields packet = fields_of(bytes);
    const uint64_t machine = number(packet, 98), sequence = number(packet, 10);
    for (const std::string& data : all(packet, 12))
      for (const auto& [kind, entry] : fields_of(data)) {
        const Fields fields = fields_of(entry);
        EXPECT_TRUE(interned_.emplace(std::array{sequence, uint64_t{kind}, number(fields, 1)}, fields).second) << kind;
      }
    const auto of = [&](uint32_t kind, uint64_t iid) {
      const auto found = interned_.find({sequence, kind, iid});
      EXPECT_TRUE(found != interned_.end()) << kind << " " << iid;
      return found == interned_.end() ? Fields() : found->second;
    };
    for (const std::string& info : all(packet, 128))
      for (const std::string& gpu : all(fields_of(info), 1)) {
        const Fields at = fields_of(gpu);
        model.gpus.push_back({first(at, 1), first(at, 2), first(at, 3), first(at, 4)});
      }
    for (const std::string& info : all(packet, 45)) model.machines[machine] = first(fields_of(info), 17);
    for (const std::string& event : all(packet, 11)) {
      const Fields at = fields_of(event);
      model.slices += number(at, 9) == 1 ? 1 : 0;
      for (const std::string& correlation : all(at, 3000)) {
        model.submissions.emplace_back();
        for (const std::string& id : all(fields_of(correlation), 1))
          model.submissions.back().push_back(std::stoull(id));
      }
    }
    for (const std::string& stage : all(packet, 53)) work(fields_of(stage), machine, of);
    for (const std::string& event : all(packet, 52)) counters(fields_of(event), of);
  }

 private:
  template <typename Of>
  void work(const Fields& at, uint64_t machine, Of of) {
    Work work;
    work.id = number(at, 1);
    work.gpu = number(at, 11);
    work.machine = machine;
    if (at.contains(2)) work.duration = static_cast<int64_t>(number(at, 2));
    work.queue = first(of(24, number(at, 13)), 2);
    work.category = static_cast<int64_t>(number(of(24, number(at, 14)), 4));
    const Fields context = of(23, number(at, 5));
    work.pid = static_cast<int64_t>(number(context, 2));
    work.api = static_cast<int64_t>(number(context, 3));
    work.name = at.contains(17) ? first(at, 17) : first(of(2, number(at, 20)), 2);
    if (at.contains(19)) {
      const Fields kernel = of(1000, number(at, 19));
      work.kernel = first(kernel, 2);
      work.demangled = first(kernel, 3);
      work.architecture = first(kernel, 4);
    }
    const Fields launch = fields_of(first(at, 21));
    const auto extent = [](const Fields& of_launch, uint32_t field) {
      std::vector<uint64_t> extent;
      if (!of_launch.contains(field)) return extent;
      const Fields three = fields_of(first(of_launch, field));
      for (const uint32_t dimension : {1, 2, 3}) extent.push_back(number(three, dimension));
      return extent;
    };
    work.grid = extent(launch, 1);
    work.group = extent(launch, 2);
    for (const std::string& argument : all(launch, 3)) {
      const Fields one = fields_of(argument);
      const std::string key = first(of(1001, number(one, 1)), 2);
      const std::string text = one.contains(7) ? first(of(29, number(one, 7)), 2) : std::string();
      for (const uint32_t value : {3, 4, 5, 6})
        if (one.contains(value)) work.args[key] = first(one, value);
      if (one.contains(7)) work.args[key] = text;
    }
    model.works.push_back(work);
  }
  template <typename Of>
  void counters(const Fields& event, Of of) {
    const Fields descriptor = fields_of(first(of(47, number(event, 4)), 2));
    std::map<uint64_t, std::string> names;
    for (const std::string& spec : all(descriptor, 1)) {
      const Fields at = fields_of(spec);
      names[number(at, 1)] = first(at, 2);
      for (const std::string& group : all(at, 10)) model.groups[first(at, 2)].insert(std::stoull(group));
      EXPECT_EQ(number(at, 11), 2u) << "values hold from their time on";
    }
    for (const std::string& group : all(descriptor, 6))
      for (const std::string& id : all(fields_of(group), 4))
        model.custom[names[std::stoull(id)]] = first(fields_of(group), 2);
    for (const std::string& counter : all(event, 2)) {
      const Fields at = fields_of(counter);
      ASSERT_TRUE(names.contains(number(at, 1)));
      model.values[names[number(at, 1)]].push_back(std::stod(first(at, 3)));
    }
  }
  std::map<std::array<uint64_t, 3>, Fields> interned_;
};

struct Exported {
  Model model;
  std::shared_ptr<const trace::Trace> back;
};
Exported exported(const trace::Trace& trace, const format::ExportOptions& options = {}) {
  Folder folder;
  std::vector<std::string> written;
  const Status done = format::write_perfetto(trace, {folder / "t.pftrace", "", ""}, options, written);
  EXPECT_TRUE(done) << done.error().message;
  const std::string bytes = read_file(folder / "t.pftrace");
  Decoder decoder;
  for (pbf_reader in(bytes); in.next();) {
    EXPECT_EQ(in.tag(), 1u);
    const auto packet = in.get_view();
    decoder.packet({packet.data(), packet.size()});
  }
  auto back = format::perfetto::read(folder / "t.pftrace");
  EXPECT_TRUE(back) << back.error().message;
  return {std::move(decoder.model), *back};
}
const Work& named(const Model& model, const std::string& name) {
  for (const Work& work : model.works)
    if (work.name == name) return work;
  ADD_FAILURE() << "no " << name;
  static const Work kNone;
  return kNone;
}

// Every column that the file holds of kernels, copies, fills and counters, as text.
std::multiset<std::string> facts_of(const trace::Trace& trace) {
  std::multiset<std::string> facts;
  Status status;
  const auto place = [&](int64_t track) {
    const auto at = trace::row<row::Track>(trace, track);
    const auto device = trace::row<row::Device>(trace, at.device);
    const auto process = trace::row<row::Process>(trace, at.process);
    return fmt::format("pid {} {} rank {} device {} {} {} {} {} queue {} context {}", process.pid,
                       trace.string(process.host), process.rank, device.index, trace.string(device.name),
                       trace.string(device.vendor), trace.string(device.architecture), trace.string(device.driver),
                       at.native, at.context);
  };
  using D = column::Dispatch;
  for (const auto& d :
       trace::rows<D::track, D::start, D::duration, D::dim, D::correlation, D::ordinal, D::graph_node, D::arguments>(
           trace, status)) {
    const auto k = trace::row<row::Kernel>(trace, d.dim);
    facts.insert(fmt::format("kernel {} {} {} {} {} {} {} {} | {} {}x{}x{} of {}x{}x{} {} {} {} {} {} {} {}",
                             place(d.track), d.start, d.duration, d.correlation, d.ordinal, d.graph_node,
                             trace.string(d.arguments), "", trace.string(k.name), k.grid_x, k.grid_y, k.grid_z,
                             k.group_x, k.group_y, k.group_z, k.registers, k.accum_registers, k.scalar_registers,
                             k.shared_static, k.shared_dynamic, k.private_bytes, k.graph));
  }
  using C = column::Copy;
  for (const auto& c :
       trace::rows<C::track, C::start, C::duration, C::dim, C::correlation, C::bytes, C::graph_node>(trace, status)) {
    const auto shape = trace::row<row::CopyShape>(trace, c.dim);
    const auto end = [&](int64_t device) { return device == 0 ? -1 : trace::row<row::Device>(trace, device).index; };
    facts.insert(fmt::format("copy {} {} {} {} {} {} | {} {} {}", place(c.track), c.start, c.duration, c.correlation,
                             c.bytes, c.graph_node, shape.direction.value, end(shape.source_device),
                             end(shape.target_device)));
  }
  using F = column::Fill;
  for (const auto& f : trace::rows<F::track, F::start, F::duration, F::dim, F::correlation, F::bytes>(trace, status))
    facts.insert(fmt::format("fill {} {} {} {} {} | {}", place(f.track), f.start, f.duration, f.correlation, f.bytes,
                             trace::row<row::FillShape>(trace, f.dim).memory.value));
  using V = column::CounterValue;
  const auto counter = [&](int64_t dim) {
    const auto at = trace::row<row::Counter>(trace, dim);
    return fmt::format("{} [{}] {}", trace.string(at.name), trace.string(at.unit), trace.string(at.block));
  };
  for (const auto& v : trace::rows<V::track, V::start, V::ordinal, V::dim, V::value>(trace, status))
    facts.insert(
        fmt::format("counter {} {} {} {} {}", place(v.track), v.start, v.ordinal, counter(v.dim), v.value.value()));
  using R = column::Reading;
  for (const auto& r : trace::rows<R::track, R::start, R::value>(trace, status)) {
    const auto at = trace::row<row::Track>(trace, r.track);
    facts.insert(fmt::format("reading {} {} {} {}", trace::row<row::Device>(trace, at.device).index, r.start,
                             counter(at.counter), r.value.value()));
  }
  EXPECT_TRUE(status);
  return facts;
}

// A trace whose times are BOOTTIME's, as those of files read back are.
void set_clock(TraceMaker& made) {
  made.clock(10, 10);
  made.clock(1'000'000, 1'000'000);
}
int64_t gpu_device(TraceMaker& made, std::string_view name, int64_t index, std::string_view vendor,
                   std::string_view architecture, int64_t process = 0) {
  return made.writer().dimension(row::Device{.process = process,
                                             .kind = event::DeviceKind::kGpu,
                                             .index = index,
                                             .name = made.text(name),
                                             .vendor = made.text(vendor),
                                             .architecture = made.text(architecture),
                                             .driver = made.text("driver 1")});
}

TEST(GpuModel, KernelsAreStagesWithLaunches) {
  TraceMaker made;
  set_clock(made);
  const int64_t process = made.process(77, "app", 3), gpu = gpu_device(made, "Big GPU", 2, "NVIDIA", "sm_90");
  const int64_t thread = made.thread_track(process, 77), stream = made.queue_track(process, gpu, 7, "stream");
  made.call(thread, 100, 50, made.function("cudaLaunchKernel", event::Domain::kCudaRuntime), 5);
  made.call(thread, 200, 50, made.function("cudaMalloc", event::Domain::kCudaRuntime), 6);
  made.dispatch(stream, 300, 40, made.kernel("_Z7vecCopyPdS_ii", 1024, 64, 24), 5, 0);
  const auto [model, back] = exported(*made.open());
  ASSERT_EQ(model.gpus.size(), 3u) << "GPU 2 keeps its number";
  EXPECT_EQ(model.gpus[2], (std::vector<std::string>{"Big GPU", "NVIDIA", "Big GPU", "sm_90"}));
  EXPECT_EQ(model.gpus[0], std::vector<std::string>(4));
  ASSERT_EQ(model.works.size(), 1u);
  const Work& work = model.works[0];
  EXPECT_EQ(work.name, "vecCopy(double*, double*, int, int)");
  EXPECT_EQ(work.kernel, "_Z7vecCopyPdS_ii");
  EXPECT_EQ(work.demangled, work.name);
  EXPECT_EQ(work.architecture, "sm_90");
  EXPECT_EQ(work.queue, "Stream 7");
  EXPECT_EQ(work.duration, 40);
  EXPECT_EQ(work.gpu, 2u);
  EXPECT_EQ(work.category, 2);
  EXPECT_EQ(work.api, 4);
  EXPECT_EQ(work.pid, 77);
  EXPECT_EQ(work.grid, (std::vector<uint64_t>{16, 1, 1})) << "workgroups";
  EXPECT_EQ(work.group, (std::vector<uint64_t>{64, 1, 1}));
  const std::map<std::string, std::string> expected = {{"grid_size", "16"},
                                                       {"workgroup_size", "64"},
                                                       {"thread_count", "1024"},
                                                       {"registers_per_thread", "24"},
                                                       {"shared_mem_static", "100"},
                                                       {"local_memory_per_thread", "0"},
                                                       {"device", "2"},
                                                       {"stream", "7"},
                                                       {"context", "0"},
                                                       {"process_id", "77"},
                                                       {"process_name", "app rank 3"},
                                                       {"correlation", "5"},
                                                       {"dispatch_id", "1"}};
  EXPECT_EQ(work.args, expected) << "what is not known is not 0";
  ASSERT_EQ(model.submissions.size(), 1u) << "cudaMalloc caused nothing";
  EXPECT_EQ(model.submissions[0], std::vector<uint64_t>{work.id});
  EXPECT_EQ(model.slices, 2) << "the calls; the kernel is not drawn twice";
}

TEST(GpuModel, ReadsBackWhatItWrote) {
  TraceMaker made;
  set_clock(made);
  const int64_t process = made.process(77, "app", 3), other = made.process(78, "app", 4);
  const int64_t one = gpu_device(made, "Big GPU", 0, "NVIDIA", "sm_90"),
                two = gpu_device(made, "Big GPU", 1, "NVIDIA", "sm_90");
  const int64_t thread = made.thread_track(process, 77), elsewhere = made.thread_track(other, 78);
  const int64_t stream = made.queue_track(process, one, 7, "stream"), queue = made.queue_track(process, two, 9),
                theirs = made.queue_track(other, two, 7, "stream");
  const int64_t launch = made.function("cudaLaunchKernel", event::Domain::kCudaRuntime);
  const int64_t unknown_groups = made.writer().dimension(
      row::Kernel{.name = made.text("of unknown groups"), .grid_x = 1000, .grid_y = 2, .grid_z = 1});
  for (int64_t i = 1; i <= 4; ++i) made.call(thread, 100 * i, 50, launch, i);
  made.call(elsewhere, 100, 20, launch, 1);
  made.dispatch(stream, 1000, 40, made.kernel("whole"), 1, 0);
  made.dispatch(stream, 1020, 40, made.kernel("overlapping", 2048, 128, 12), 2, 1);
  made.dispatch(stream, 1100, 0, made.kernel("of no time"), 3, 2);
  made.dispatch(queue, 1200, 40, made.kernel("of parts", 1000, 64), 4, 3);
  made.dispatch(queue, 1300, 40, unknown_groups, 0, kUnknown);
  made.dispatch(queue, 1400, kUnknown, made.kernel("never ended"), 4, 4);
  made.dispatch(theirs, 1000, 70, made.kernel("whole"), 1, 0);
  made.writer().add(row::Dispatch{.track = stream,
                                  .start = 1500,
                                  .duration = 10,
                                  .dim = made.kernel("node"),
                                  .correlation = 2,
                                  .graph_node = 12,
                                  .arguments = made.text("(0x10, 3)")});
  made.copy(stream, 1600, 50, event::CopyDirection::kHostToDevice, 4096, one, 3);
  made.copy(queue, 1700, 50, event::CopyDirection::kDeviceToHost, kUnknown, two);
  made.fill(stream, 1800, 20, 512, one);
  const int64_t power = made.counter("power", "W"), pages = made.counter("pages", "pages");
  made.reading(0, one, power, "power", 140, 250.5);
  made.reading(0, two, power, "power", 150, 0);
  made.reading(0, one, pages, "pages", 160, 3);
  const int64_t waves = made.counter("SQ_WAVES"), bytes = made.counter("dram__bytes.sum", "B/s");
  made.counter_value(stream, 1020, 1, waves, 0, 12.5);
  made.counter_value(stream, 1020, 1, bytes, 0, 7);
  made.counter_value(stream, 1100, 2, waves, 0, 0);
  const auto trace = made.open();
  const auto [model, back] = exported(*trace);
  EXPECT_EQ(facts_of(*back), facts_of(*trace));
  EXPECT_EQ(model.gpus[0][0], "Big GPU #0");
  EXPECT_EQ(model.gpus[1][0], "Big GPU #1");
  EXPECT_EQ(named(model, "of parts").args.at("grid"), "(1000,1,1)");
  EXPECT_TRUE(named(model, "of parts").grid.empty());
  EXPECT_EQ(named(model, "never ended").duration, kUnknown);
  EXPECT_EQ(named(model, "of no time").duration, 0);
  EXPECT_EQ(named(model, "node").queue, "Stream 7 of app rank 3 (77)") << "processes share GPUs";
  EXPECT_EQ(model.groups.at("SQ_WAVES"), std::set<uint64_t>{6});
  EXPECT_EQ(model.groups.at("power"), std::set<uint64_t>{1});
  EXPECT_EQ(model.custom.at("SQ_WAVES"), "Kernels");
  EXPECT_EQ(model.custom.at("power"), "Telemetry");
}

TEST(GpuModel, EveryWorkHasAnIdThatItsCallNames) {
  TraceMaker made;
  set_clock(made);
  const int64_t process = made.process(5), gpu = made.device("G");
  const int64_t thread = made.thread_track(process, 5), stream = made.queue_track(process, gpu, 1, "stream");
  const int64_t kernel = made.kernel("node"), launch = made.function("cudaGraphLaunch", event::Domain::kCudaRuntime);
  for (int64_t call = 1; call <= 50; ++call) made.call(thread, call * 100, 10, launch, call);
  for (int64_t i = 0; i < 5000; ++i) made.dispatch(stream, 100'000 + i * 10, 5, kernel, 1 + i % 50);
  made.dispatch(stream, 50, 5, kernel, 7);  // before its call
  made.dispatch(stream, 60, 5, kernel, 0);
  const auto [model, back] = exported(*made.open());
  std::set<uint64_t> ids, submitted;
  for (const Work& work : model.works) EXPECT_TRUE(ids.insert(work.id).second) << "ids are unique";
  EXPECT_EQ(ids.size(), 5002u);
  EXPECT_EQ(model.submissions.size(), 50u);
  for (const auto& of_call : model.submissions)
    for (const uint64_t id : of_call) EXPECT_TRUE(submitted.insert(id).second) << "one call's";
  for (const Work& work : model.works) EXPECT_EQ(submitted.contains(work.id), work.args.contains("correlation"));
}

TEST(GpuModel, HostsAreMachines) {
  TraceMaker made;
  set_clock(made);
  const int64_t first = made.process(5, "a", 0, "node1"), second = made.process(5, "a", 1, "node2");
  const int64_t here = gpu_device(made, "G", 0, "NVIDIA", "sm_90", first),
                there = gpu_device(made, "G", 0, "NVIDIA", "sm_90", second);
  made.call(made.thread_track(first, 5), 10, 5, made.function("f"), 1);
  made.call(made.thread_track(second, 5), 10, 5, made.function("f"), 1);
  made.dispatch(made.queue_track(first, here, 1, "stream"), 100, 10, made.kernel("k"), 1);
  made.dispatch(made.queue_track(second, there, 1, "stream"), 120, 20, made.kernel("k"), 1);
  const auto trace = made.open();
  const auto [model, back] = exported(*trace);
  EXPECT_EQ(model.machines, (std::map<uint64_t, std::string>{{1, "node1"}, {2, "node2"}}));
  ASSERT_EQ(model.works.size(), 2u);
  EXPECT_EQ(model.works[0].machine, 1u);
  EXPECT_EQ(model.works[1].machine, 2u);
  EXPECT_EQ(model.works[1].gpu, 0u) << "each machine counts its GPUs";
  std::map<std::string, int64_t> ranks;
  for (int64_t process = 1; process < back->rows(Table::kProcess); ++process) {
    const auto at = trace::row<row::Process>(*back, process);
    if (at.rank != kUnknown) ranks[std::string(back->string(at.host))] = at.rank;
    EXPECT_EQ(at.run, 0);
  }
  EXPECT_EQ(ranks, (std::map<std::string, int64_t>{{"node1", 0}, {"node2", 1}}));
  std::multiset<int64_t> durations;
  Status status;
  using D = column::Dispatch;
  for (const auto& d : trace::rows<D::track, D::duration>(*back, status)) durations.insert(d.duration);
  EXPECT_EQ(durations, (std::multiset<int64_t>{10, 20}));
}

// The page of kernels takes all values between a kernel's start and end.
TEST(GpuModel, CountersFallToZeroUnlessTheNextKernelHasBegun) {
  TraceMaker made;
  set_clock(made);
  const int64_t stream = made.queue_track(made.process(5), made.device("G"), 1, "stream"), kernel = made.kernel("k");
  const int64_t waves = made.counter("SQ_WAVES");
  for (const auto& [ordinal, start] : std::vector<std::pair<int64_t, int64_t>>{{0, 100}, {1, 150}, {2, 300}}) {
    made.dispatch(stream, start, 50, kernel, 0, ordinal);
    made.counter_value(stream, start, ordinal, waves, 0, 8);
    made.counter_value(stream, start, ordinal, waves, 1, 2);
  }
  const auto [model, back] = exported(*made.open());
  EXPECT_EQ(model.values.at("SQ_WAVES"), (std::vector<double>{10, 10, 0, 10, 0}));
}

TEST(GpuModel, NamesOfAnyBytesAndLength) {
  TraceMaker made;
  set_clock(made);
  const int64_t queue = made.queue_track(made.process(5), made.device("G"), 1);
  const std::vector<std::string> names = {"\u00e9 good utf-8", "with\nline", std::string(1 << 20, 'x'),
                                          std::string("nul\0inside", 10), "\xff\xfe bad utf-8 \xc3"};
  int64_t time = 100;
  for (const std::string& name : names) made.dispatch(queue, time += 10, 5, made.kernel(name));
  const auto trace = made.open();
  const auto [model, back] = exported(*trace);
  ASSERT_EQ(model.works.size(), names.size());
  for (size_t at = 0; at < names.size(); ++at) EXPECT_EQ(model.works[at].name, valid_utf8(names[at]));
  EXPECT_EQ(back->rows(Table::kDispatch), 5);
}

TEST(GpuModel, ProcessesAndMarkersStillChoose) {
  TraceMaker made;
  set_clock(made);
  const int64_t first = made.process(5), second = made.process(6), gpu = made.device("G");
  const int64_t thread = made.thread_track(first, 5), kernel = made.kernel("k");
  made.marker(thread, 0, 50, made.label("around"));
  made.call(thread, 20, 5, made.function("launch"), 1);
  made.dispatch(made.queue_track(first, gpu, 1), 100, 10, kernel, 1);
  made.dispatch(made.queue_track(second, gpu, 1), 200, 10, kernel, 1);
  const auto trace = made.open();
  format::ExportOptions options;
  options.process = second;
  EXPECT_EQ(exported(*trace, options).model.works.size(), 1u);
  format::ExportOptions renamed;
  renamed.kernel_rename = true;
  const Model model = exported(*trace, renamed).model;
  ASSERT_EQ(model.works.size(), 2u);
  EXPECT_EQ(model.works[0].name, "around");
  EXPECT_EQ(model.works[0].kernel, "k");
  EXPECT_EQ(model.works[1].name, "k");
}

}  // namespace
}  // namespace tacho::test

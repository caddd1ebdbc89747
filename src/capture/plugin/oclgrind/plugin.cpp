// The virtual GPU: an Oclgrind plugin that counts what a SIMT machine with waves of 32 work-items would do. Oclgrind
// runs work-items one after the other, from barrier to barrier; the plugin lines the work-items of a wave up again by
// where they are: basic block, iteration numbers of all enclosing loops, chain of calls. Work-items of a wave that come
// to the same place share one issue of its instructions, which is what reconvergence at the end of branches and loops
// gives. docs/virtual-gpu.md has the model; counters.def the counters; spool.h how they leave the process.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <oclgrind/Context.h>
#include <oclgrind/Kernel.h>
#include <oclgrind/KernelInvocation.h>
#include <oclgrind/Memory.h>
#include <oclgrind/Plugin.h>
#include <oclgrind/WorkGroup.h>
#include <oclgrind/WorkItem.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <tsl/robin_map.h>
#include <tsl/robin_set.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/plugin/oclgrind/classify.h"
#include "capture/plugin/oclgrind/memory_model.h"
#include "event/spool/launch_filter.h"
#include "event/spool/spool_layout.h"

namespace tacho::plugin {
namespace {

enum Counter : size_t {
#define TACHO_VIRTUAL_COUNTER(name, text) name,
#include "vendor/virtual/counters.def"
#undef TACHO_VIRTUAL_COUNTER
  kCounters
};
using Counts = std::array<uint64_t, kCounters>;

constexpr size_t kClasses = static_cast<size_t>(InstructionClass::kEnd);
constexpr size_t kOperations = static_cast<size_t>(CountedOperation::kEnd);
static_assert(V_INST_OTHER - V_INST_FP_ADD + 1 == kClasses);
static_assert(V_OPS_INT64 - V_OPS_ADD_F16 + 1 == kOperations);

// Oclgrind keeps the list of work-groups to itself; an explicit instantiation may name private members.
using GroupList = std::vector<oclgrind::Size3> oclgrind::KernelInvocation::*;
template <GroupList Member>
struct Reach {
  friend GroupList group_list() { return Member; }
};
GroupList group_list();
template struct Reach<&oclgrind::KernelInvocation::m_workGroups>;

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a ^ (b + 0x9E3779B97F4A7C15ull + (a << 12) + (a >> 4));
  x ^= x >> 31;
  x *= 0x7FB5D329728EA185ull;
  x ^= x >> 27;
  x *= 0x81DADEF4BC2DD44Dull;
  return x ^ x >> 33;
}
uint64_t mix(uint64_t a, const void* b) {
  return mix(a, reinterpret_cast<uintptr_t>(b));
}

struct Identity {
  size_t operator()(uint64_t key) const { return key; }  // keys are mixed already
};

int64_t raw_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

// The code, looked at once per dispatch

struct CodeBlock {
  const llvm::BasicBlock* block = nullptr;
  int loop = -1;             // innermost, index into Function::loops
  bool header = false;       // of that loop
  bool conditional = false;  // ends in a branch with more than one successor
  std::array<uint32_t, kClasses> classes{};
  std::array<uint32_t, kOperations> operations{};
  uint32_t instructions = 0;
  // Filled while the dispatch runs.
  uint64_t thread_entries = 0, wave_entries = 0;
};

struct CodeLoop {
  int parent = -1;
  int depth = 0;
};

struct CodeFunction {
  std::vector<CodeLoop> loops;
  std::vector<std::unique_ptr<CodeBlock>> blocks;
};

// Where a work-item is

struct LoopPlace {
  int loop;
  uint64_t iteration;
  uint64_t outer;  // hash of everything around the loop
};

struct Frame {
  const llvm::Function* function = nullptr;
  CodeFunction* code = nullptr;
  CodeBlock* block = nullptr;
  uint64_t base = 0;   // hash of the calls that lead here
  uint64_t place = 0;  // hash of base, loops and iterations
  uint64_t key = 0;    // of the block's instance: place and block
  std::vector<LoopPlace> loops;
};

struct Lane {
  std::vector<Frame> frames;
  size_t depth = 0;  // frames in use; the rest keep their memory
  const llvm::Instruction* call = nullptr;
  unsigned number = 0;  // in its wave
  size_t wave = 0;
};

struct Instance {
  const CodeBlock* successor = nullptr;
  bool divergent = false;
};

struct Pending {
  uint64_t address;
  uint32_t size;
  InstructionClass kind;
};

struct PlacedAccess {
  InstructionClass kind;
  WaveAccess access;
};

struct Config {
  std::string text;
  spool::LaunchFilter filter;
  double fraction = 1;
};

// The process's end of the spool; one for all contexts.
class Spool {
 public:
  static Spool& get() {
    static Spool* const spool = new Spool;  // lives to the end: contexts may outlive static destructors
    return *spool;
  }
  bool usable() const { return state_ != nullptr; }
  spool::SpoolState& state() { return *state_; }
  const Config& config() const { return config_; }

  void append(const std::string& record) {
    note_mpi();
    const pid_t pid = getpid();
    if (descriptor_ < 0 || pid != pid_) {
      // A forked child writes its own file.
      if (descriptor_ >= 0) close(descriptor_);
      pid_ = pid;
      const std::string path = folder_ + "/" + std::to_string(pid) + ".records";
      descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    if (descriptor_ < 0 || write(descriptor_, record.data(), record.size()) != static_cast<ssize_t>(record.size()))
      state_->failures.fetch_add(1, std::memory_order_relaxed);
  }

  // Says so in the spool once the process has called MPI_Init; MPI may be asked at any time.
  void note_mpi() {
    if (mpi_noted_) return;
    if (mpi_initialized_ == nullptr) dl_iterate_phdr(see_object, this);
    int called = 0;
    if (mpi_initialized_ == nullptr || mpi_initialized_(&called) != 0 || called == 0) return;
    mpi_noted_ = true;
    const int file = open((folder_ + "/" + spool::kMpiFile).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0) close(file);
  }

 private:
  static int see_object(dl_phdr_info* info, size_t, void* self) {
    const char* const slash = std::strrchr(info->dlpi_name, '/');
    if (slash == nullptr || std::strncmp(slash + 1, "libmpi", 6) != 0) return 0;
    void* const library = dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
    if (library == nullptr) return 0;
    void* const found = dlsym(library, "PMPI_Initialized");
    static_cast<Spool*>(self)->mpi_initialized_ = reinterpret_cast<int (*)(int*)>(found);
    return found != nullptr ? 1 : 0;
  }

  Spool() {
    const char* const folder = std::getenv(spool::kSpoolVariable);
    if (folder == nullptr || *folder == '\0') return;
    folder_ = folder;
    const int state = open((folder_ + "/state").c_str(), O_RDWR | O_CLOEXEC);
    if (state < 0) return;
    void* const map = mmap(nullptr, sizeof(spool::SpoolState), PROT_READ | PROT_WRITE, MAP_SHARED, state, 0);
    close(state);
    if (map == MAP_FAILED) return;
    auto* const shared = static_cast<spool::SpoolState*>(map);
    if (shared->layout.load(std::memory_order_relaxed) != spool::kSpoolLayout) return;
    if (std::FILE* const file = std::fopen((folder_ + "/config").c_str(), "re")) {
      char line[4096];
      while (std::fgets(line, sizeof line, file) != nullptr) config_.text += line;
      std::fclose(file);
    }
    config_.filter = spool::LaunchFilter(config_.text);
    constexpr std::string_view kFraction = "\nfraction=";
    if (const size_t line = ("\n" + config_.text).find(kFraction); line != std::string::npos)
      config_.fraction = std::strtod(config_.text.c_str() + line + kFraction.size() - 1, nullptr);
    state_ = shared;
    state_->attached.fetch_add(1, std::memory_order_relaxed);
  }

  std::string folder_;
  spool::SpoolState* state_ = nullptr;
  Config config_;
  int descriptor_ = -1;
  pid_t pid_ = 0;
  int (*mpi_initialized_)(int*) = nullptr;
  bool mpi_noted_ = false;
};

class VirtualGpu : public oclgrind::Plugin {
 public:
  explicit VirtualGpu(const oclgrind::Context* context) : Plugin(context), spool_(Spool::get()) {}
  ~VirtualGpu() override {
    if (spool_.usable()) spool_.note_mpi();
  }

  // Runs the work-items of a wave one after the other on one thread. This lines them up, and makes kernels with races
  // between work-groups count the same every time.
  bool isThreadSafe() const override { return false; }

  void kernelBegin(const oclgrind::KernelInvocation* invocation) override {
    counting_ = false;
    if (!spool_.usable()) return;
    index_ = spool_.state().dispatches.fetch_add(1, std::memory_order_relaxed);
    name_ = invocation->getKernel()->getName();
    selected_ = is_selected();
    begin_ = raw_now();
    const oclgrind::Size3 groups = invocation->getNumGroups();
    groups_ = groups.x * groups.y * groups.z;
    groups_run_ = groups_;
    if (!selected_) return;
    counting_ = true;
    counts_ = {};
    functions_.clear();
    blocks_.clear();
    instructions_.clear();
    lines_read_.clear();
    lines_written_.clear();
    choose_groups(invocation);
    spool::SpoolState& state = spool_.state();
    state.groups_done.store(0, std::memory_order_relaxed);
    state.groups_total.store(groups_run_, std::memory_order_relaxed);
  }

  void kernelEnd(const oclgrind::KernelInvocation* invocation) override {
    if (!spool_.usable()) return;
    if (counting_) finish_counts(invocation);
    write_record(invocation);
    counting_ = false;
    functions_.clear();
    blocks_.clear();
    instructions_.clear();
    spool_.state().dispatches_done.fetch_add(1, std::memory_order_relaxed);
  }

  void workGroupBegin(const oclgrind::WorkGroup* group) override {
    if (!counting_) return;
    const oclgrind::Size3 size = group->getGroupSize();
    group_size_ = size;
    const size_t items = size.x * size.y * size.z;
    if (lanes_.size() < items) lanes_.resize(items);
    for (size_t i = 0; i < items; ++i) {
      lanes_[i].depth = 0;
      lanes_[i].call = nullptr;
      lanes_[i].number = static_cast<unsigned>(i % kWaveSize);
      lanes_[i].wave = i / kWaveSize;
    }
    counts_[V_WAVES] += (items + kWaveSize - 1) / kWaveSize;
    counts_[V_WORK_ITEMS] += items;
    last_item_ = nullptr;
    lane_ = nullptr;
    pending_.clear();
  }

  void workGroupComplete(const oclgrind::WorkGroup*) override {
    if (!counting_) return;
    flush_wave();
    last_item_ = nullptr;
    lane_ = nullptr;
    counts_[V_WORK_GROUPS_RUN] += 1;
    spool_.state().groups_done.fetch_add(1, std::memory_order_relaxed);
  }

  void workGroupBarrier(const oclgrind::WorkGroup*, uint32_t) override {
    if (counting_) counts_[V_BARRIERS] += 1;
  }

  void memoryLoad(const oclgrind::Memory* memory, const oclgrind::WorkItem* item, size_t address,
                  size_t size) override {
    if (counting_) access(memory, item, address, size, false);
  }
  void memoryStore(const oclgrind::Memory* memory, const oclgrind::WorkItem* item, size_t address, size_t size,
                   const uint8_t*) override {
    if (counting_) access(memory, item, address, size, true);
  }
  void memoryAtomicLoad(const oclgrind::Memory* memory, const oclgrind::WorkItem*, oclgrind::AtomicOp, size_t address,
                        size_t size) override {
    // The load part comes for every atomic, the store part only where something is written.
    if (counting_)
      pending_.push_back({address, static_cast<uint32_t>(size),
                          memory->getAddressSpace() == oclgrind::AddrSpaceLocal ? InstructionClass::kLocalAtomic
                                                                                : InstructionClass::kGlobalAtomic});
  }
  // async_work_group_copy moves data for the whole group.
  void memoryLoad(const oclgrind::Memory* memory, const oclgrind::WorkGroup*, size_t address, size_t size) override {
    if (counting_) group_access(memory, address, size, false);
  }
  void memoryStore(const oclgrind::Memory* memory, const oclgrind::WorkGroup*, size_t address, size_t size,
                   const uint8_t*) override {
    if (counting_) group_access(memory, address, size, true);
  }

  void instructionExecuted(const oclgrind::WorkItem* item, const llvm::Instruction* instruction,
                           const oclgrind::TypedValue&) override {
    if (!counting_) return;
    if (item != last_item_) switch_to(item);
    Lane& lane = *lane_;
    const llvm::BasicBlock* const block = instruction->getParent();
    if (instruction == &block->front()) enter(lane, block);
    if (!pending_.empty()) place_accesses(lane, instruction);
    switch (instruction->getOpcode()) {
      case llvm::Instruction::Ret:
        if (lane.depth > 1) --lane.depth;
        break;
      case llvm::Instruction::Call:
        if (calls_defined_function(*instruction)) lane.call = instruction;
        break;
      default:
        break;
    }
  }

 private:
  bool is_selected() const {
    const Config& config = spool_.config();
    if (config.filter.by_regions() && !recording_is_on()) return false;
    return config.filter.kernel(name_) && config.filter.launch(index_);
  }

  // libtacho.so, which is preloaded then, knows what the program last asked for.
  static bool recording_is_on() {
    static const auto active = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "tacho_active"));
    return active != nullptr && active() != 0;
  }

  // An estimate runs work-groups at equal distances, the first one among them.
  void choose_groups(const oclgrind::KernelInvocation* invocation) {
    const double fraction = spool_.config().fraction;
    if (!(fraction < 1)) return;
    auto& list = const_cast<oclgrind::KernelInvocation*>(invocation)->*group_list();
    if (list.size() != groups_) return;  // OCLGRIND_QUICK chose already
    const auto wanted =
        std::max<size_t>(1, static_cast<size_t>(std::ceil(fraction * static_cast<double>(list.size()))));
    std::vector<oclgrind::Size3> chosen;
    for (size_t i = 0; i < wanted; ++i) chosen.push_back(list[i * list.size() / wanted]);
    list = std::move(chosen);
    groups_run_ = wanted;
  }

  void switch_to(const oclgrind::WorkItem* item) {
    last_item_ = item;
    const oclgrind::Size3 id = item->getLocalID();
    Lane& lane = lanes_[id.x + group_size_.x * (id.y + group_size_.y * id.z)];
    if (lane_ == nullptr || lane_->wave != lane.wave) flush_wave();
    lane_ = &lane;
  }

  CodeFunction& code_of(const llvm::Function* function) {
    std::unique_ptr<CodeFunction>& entry = functions_[function];
    if (entry) return *entry;
    entry = std::make_unique<CodeFunction>();
    auto& mutable_function = const_cast<llvm::Function&>(*function);
    const llvm::DominatorTree dominators(mutable_function);
    llvm::LoopInfo info;
    info.analyze(dominators);
    std::unordered_map<const llvm::Loop*, int> numbers;
    // Outer loops come before those inside them.
    for (const llvm::Loop* loop : info.getLoopsInPreorder()) {
      const llvm::Loop* const parent = loop->getParentLoop();
      numbers[loop] = static_cast<int>(entry->loops.size());
      entry->loops.push_back({parent != nullptr ? numbers[parent] : -1, static_cast<int>(loop->getLoopDepth())});
    }
    for (const llvm::BasicBlock& block : *function) {
      auto made = std::make_unique<CodeBlock>();
      made->block = &block;
      if (const llvm::Loop* const loop = info.getLoopFor(&block)) {
        made->loop = numbers[loop];
        made->header = loop->getHeader() == &block;
      }
      made->conditional = block.getTerminator()->getNumSuccessors() > 1;
      for (const llvm::Instruction& instruction : block) {
        const Classified classified = classify(instruction);
        if (classified.kind == InstructionClass::kNothing) continue;
        ++made->instructions;
        ++made->classes[static_cast<size_t>(classified.kind)];
        if (classified.operation != CountedOperation::kEnd)
          made->operations[static_cast<size_t>(classified.operation)] += classified.elements;
      }
      blocks_[&block] = made.get();
      entry->blocks.push_back(std::move(made));
    }
    return *entry;
  }

  static bool inside(const CodeFunction& code, int loop, int outer) {
    while (loop >= 0 && code.loops[static_cast<size_t>(loop)].depth > code.loops[static_cast<size_t>(outer)].depth)
      loop = code.loops[static_cast<size_t>(loop)].parent;
    return loop == outer;
  }

  Frame& push(Lane& lane, const llvm::Function* function) {
    const uint64_t base = lane.depth == 0 ? mix(0, function) : mix(lane.frames[lane.depth - 1].key, lane.call);
    if (lane.frames.size() == lane.depth) lane.frames.emplace_back();
    Frame& frame = lane.frames[lane.depth++];
    frame.function = function;
    frame.code = &code_of(function);
    frame.block = nullptr;
    frame.base = frame.place = base;
    frame.loops.clear();
    return frame;
  }

  void enter(Lane& lane, const llvm::BasicBlock* block) {
    const llvm::Function* const function = block->getParent();
    const bool called = lane.depth == 0 || lane.call != nullptr;
    Frame& frame = called ? push(lane, function) : lane.frames[lane.depth - 1];
    lane.call = nullptr;
    const auto found = blocks_.find(block);
    if (found == blocks_.end()) return;  // code that changed while it ran: cannot be
    CodeBlock* const next = found->second;
    if (frame.block != nullptr && frame.block->conditional) branch(frame, next);
    const CodeFunction& code = *frame.code;
    std::vector<LoopPlace>& loops = frame.loops;
    const bool was_in_loops = !loops.empty() || next->loop >= 0;
    if (was_in_loops) {
      while (!loops.empty() && !inside(code, next->loop, loops.back().loop)) loops.pop_back();
      if (next->header) {
        if (!loops.empty() && loops.back().loop == next->loop)
          ++loops.back().iteration;
        else
          loops.push_back({next->loop, 0, 0});
      }
      uint64_t place = frame.base;
      for (const LoopPlace& each : loops) place = mix(mix(place, static_cast<uint64_t>(each.loop) + 1), each.iteration);
      frame.place = place;
    }
    frame.block = next;
    frame.key = mix(frame.place, next);
    ++next->thread_entries;
    if (instances_.try_emplace(frame.key).second) ++next->wave_entries;
  }

  // The work-item goes from frame.block to `next`. A barrier within the block has removed its instance; the new one
  // then only remembers the way taken.
  void branch(const Frame& frame, const CodeBlock* next) {
    Instance& instance = instances_.try_emplace(frame.key).first.value();
    if (instance.successor == nullptr) {
      instance.successor = next;
      ++counts_[V_BRANCHES];
    } else if (instance.successor != next && !instance.divergent) {
      instance.divergent = true;
      ++counts_[V_BRANCHES_DIVERGENT];
    }
  }

  void access(const oclgrind::Memory* memory, const oclgrind::WorkItem* item, size_t address, size_t size, bool store) {
    InstructionClass kind = store ? InstructionClass::kGlobalStore : InstructionClass::kGlobalLoad;
    switch (memory->getAddressSpace()) {
      case oclgrind::AddrSpaceLocal:
        kind = store ? InstructionClass::kLocalStore : InstructionClass::kLocalLoad;
        break;
      case oclgrind::AddrSpacePrivate:
        kind = store ? InstructionClass::kPrivateStore : InstructionClass::kPrivateLoad;
        break;
      default:
        // Constant memory lies in the global one; only the instruction knows.
        if (const llvm::Instruction* const instruction = item->getCurrentInstruction();
            instruction != nullptr && !store) {
          auto [place, added] = instructions_.try_emplace(instruction, InstructionClass::kOther);
          if (added) place.value() = classify(*instruction).kind;
          if (place.value() == InstructionClass::kConstantLoad) kind = InstructionClass::kConstantLoad;
        }
    }
    pending_.push_back({address, static_cast<uint32_t>(size), kind});
  }

  void group_access(const oclgrind::Memory* memory, size_t address, size_t size, bool store) {
    if (memory->getAddressSpace() == oclgrind::AddrSpaceLocal) return;
    counts_[V_ASYNC_COPY_BYTES] += size;
    if (size == 0) return;
    for (size_t line = address / kLineBytes; line <= (address + size - 1) / kLineBytes; ++line)
      (store ? lines_written_ : lines_read_).insert(line);
  }

  void place_accesses(const Lane& lane, const llvm::Instruction* instruction) {
    const uint64_t key = lane.depth > 0 ? lane.frames[lane.depth - 1].key : 0;
    uint64_t place = mix(key, instruction);
    for (const Pending& each : pending_) {
      place = mix(place, static_cast<uint64_t>(each.kind) << 32 | each.size);
      const auto [found, added] = access_index_.try_emplace(place, static_cast<uint32_t>(access_count_));
      if (added) {
        if (access_count_ == accesses_.size()) accesses_.emplace_back();
        PlacedAccess& fresh = accesses_[access_count_++];
        fresh.kind = each.kind;
        fresh.access.mask = 0;
        fresh.access.size = each.size;
      }
      WaveAccess& access = accesses_[found.value()].access;
      access.mask |= 1u << lane.number;
      access.address[lane.number] = each.address;
    }
    pending_.clear();
  }

  // Everything that the work-items of one wave did up to a barrier or their end.
  void flush_wave() {
    for (size_t i = 0; i < access_count_; ++i) charge(accesses_[i]);
    access_count_ = 0;
    if (!access_index_.empty()) access_index_.clear();
    if (!instances_.empty()) instances_.clear();
  }

  void charge(const PlacedAccess& placed) {
    const WaveAccess& access = placed.access;
    const auto global = [&](size_t bytes, tsl::robin_set<uint64_t>& lines) {
      const GlobalCost cost = global_cost(access, [&](uint64_t line) { lines.insert(line); });
      counts_[bytes] += cost.bytes;
      counts_[bytes + 1] += cost.used_bytes;
      counts_[bytes + 2] += cost.sectors;
      counts_[bytes + 3] += cost.lines;
    };
    const auto local = [&](size_t bytes, size_t cycles, size_t conflicts, bool atomic) {
      const LocalCost cost = local_cost(access, atomic);
      counts_[bytes] += cost.bytes;
      counts_[cycles] += cost.cycles;
      counts_[conflicts] += cost.conflicts;
    };
    const auto bytes = static_cast<uint64_t>(__builtin_popcount(access.mask)) * access.size;
    switch (placed.kind) {
      case InstructionClass::kGlobalLoad:
        global(V_GLOBAL_LOAD_BYTES, lines_read_);
        break;
      case InstructionClass::kGlobalStore:
        global(V_GLOBAL_STORE_BYTES, lines_written_);
        break;
      case InstructionClass::kGlobalAtomic: {
        const GlobalCost cost = global_cost(access, [&](uint64_t line) {
          lines_read_.insert(line);
          lines_written_.insert(line);
        });
        counts_[V_GLOBAL_ATOMIC_BYTES] += cost.bytes;
        counts_[V_GLOBAL_ATOMIC_SECTORS] += cost.sectors;
        counts_[V_GLOBAL_ATOMIC_CONFLICTS] += cost.conflicts;
        break;
      }
      case InstructionClass::kLocalLoad:
        local(V_LOCAL_LOAD_BYTES, V_LOCAL_LOAD_CYCLES, V_LOCAL_LOAD_CONFLICTS, false);
        break;
      case InstructionClass::kLocalStore:
        local(V_LOCAL_STORE_BYTES, V_LOCAL_STORE_CYCLES, V_LOCAL_STORE_CONFLICTS, false);
        break;
      case InstructionClass::kLocalAtomic:
        local(V_LOCAL_ATOMIC_BYTES, V_LOCAL_ATOMIC_CYCLES, V_LOCAL_ATOMIC_CONFLICTS, true);
        break;
      case InstructionClass::kConstantLoad:
        counts_[V_CONSTANT_LOAD_BYTES] += bytes;
        counts_[V_CONSTANT_LOAD_WORDS] += distinct_words(access);
        break;
      case InstructionClass::kPrivateLoad:
        counts_[V_PRIVATE_LOAD_BYTES] += bytes;
        break;
      case InstructionClass::kPrivateStore:
        counts_[V_PRIVATE_STORE_BYTES] += bytes;
        break;
      default:
        break;
    }
  }

  void finish_counts(const oclgrind::KernelInvocation*) {
    flush_wave();
    for (const auto& [function, code] : functions_)
      for (const std::unique_ptr<CodeBlock>& block : code->blocks) {
        counts_[V_INST] += block->wave_entries * block->instructions;
        counts_[V_THREAD_INST] += block->thread_entries * block->instructions;
        for (size_t i = 0; i < kClasses; ++i) counts_[V_INST_FP_ADD + i] += block->wave_entries * block->classes[i];
        for (size_t i = 0; i < kOperations; ++i)
          counts_[V_OPS_ADD_F16 + i] += block->thread_entries * block->operations[i];
      }
    counts_[V_GLOBAL_LINES_READ] = lines_read_.size();
    counts_[V_GLOBAL_LINES_WRITTEN] = lines_written_.size();
    groups_run_ = counts_[V_WORK_GROUPS_RUN];
    counts_[V_WORK_GROUPS] = groups_run_;
  }

  void write_record(const oclgrind::KernelInvocation* invocation) {
    spool::SpoolRecord head{};
    head.magic = spool::kSpoolMagic;
    head.pid = static_cast<uint32_t>(getpid());
    head.tid = static_cast<uint32_t>(syscall(SYS_gettid));
    head.index = index_;
    head.start = begin_;
    head.end = raw_now();
    const oclgrind::Size3 grid = invocation->getGlobalSize(), group = invocation->getLocalSize();
    for (unsigned i = 0; i < 3; ++i) {
      head.grid[i] = grid[i];
      head.workgroup[i] = group[i];
    }
    head.lds = invocation->getKernel()->getLocalMemorySize();
    head.groups = groups_;
    head.groups_run = groups_run_;
    head.name_bytes = static_cast<uint32_t>(name_.size());
    head.values = counting_ ? static_cast<uint32_t>(kCounters) : 0;
    head.selected = counting_ ? 1 : 0;
    const size_t name_space = (name_.size() + 7) / 8 * 8;
    head.bytes = static_cast<uint32_t>(sizeof head + name_space + head.values * sizeof(double));
    std::string record(head.bytes, '\0');
    std::memcpy(record.data(), &head, sizeof head);
    std::memcpy(record.data() + sizeof head, name_.data(), name_.size());
    // An estimate: scales the counts of the groups that ran to all work-groups.
    const double scale = groups_run_ > 0 ? static_cast<double>(groups_) / static_cast<double>(groups_run_) : 1;
    for (size_t i = 0; i < head.values; ++i) {
      double value = static_cast<double>(counts_[i]);
      if (i != V_WORK_GROUPS_RUN && scale != 1) value = std::round(value * scale);
      std::memcpy(record.data() + sizeof head + name_space + i * sizeof value, &value, sizeof value);
    }
    spool_.append(record);
  }

  Spool& spool_;
  bool counting_ = false, selected_ = false;
  uint64_t index_ = 0, groups_ = 0, groups_run_ = 0;
  int64_t begin_ = 0;
  std::string name_;
  Counts counts_{};

  std::unordered_map<const llvm::Function*, std::unique_ptr<CodeFunction>> functions_;
  tsl::robin_map<const llvm::BasicBlock*, CodeBlock*> blocks_;
  tsl::robin_map<const llvm::Instruction*, InstructionClass> instructions_;

  oclgrind::Size3 group_size_;
  std::vector<Lane> lanes_;
  Lane* lane_ = nullptr;
  const oclgrind::WorkItem* last_item_ = nullptr;
  std::vector<Pending> pending_;
  tsl::robin_map<uint64_t, Instance, Identity> instances_;
  tsl::robin_map<uint64_t, uint32_t, Identity> access_index_;
  std::vector<PlacedAccess> accesses_;
  size_t access_count_ = 0;
  tsl::robin_set<uint64_t> lines_read_, lines_written_;
};

}  // namespace
}  // namespace tacho::plugin

// Oclgrind's entry points: for every context, and at its end.
namespace {
std::mutex plugins_lock;
std::unordered_map<oclgrind::Context*, std::unique_ptr<tacho::plugin::VirtualGpu>>& plugins() {
  static auto* const all = new std::unordered_map<oclgrind::Context*, std::unique_ptr<tacho::plugin::VirtualGpu>>;
  return *all;
}
}  // namespace

extern "C" __attribute__((visibility("default"))) void initializePlugins(oclgrind::Context* context) {
  const std::lock_guard guard(plugins_lock);
  auto& plugin = plugins()[context];
  plugin = std::make_unique<tacho::plugin::VirtualGpu>(context);
  context->registerPlugin(plugin.get());
}

extern "C" __attribute__((visibility("default"))) void releasePlugins(oclgrind::Context* context) {
  const std::lock_guard guard(plugins_lock);
  const auto found = plugins().find(context);
  if (found == plugins().end()) return;
  context->unregisterPlugin(found->second.get());
  plugins().erase(found);
}

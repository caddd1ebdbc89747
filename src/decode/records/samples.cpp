// Unwinding, merging of Python and native frames, rows (samples.h). Everything read here comes from targets: sizes are
// checked, loops are bounded.
#include "decode/records/samples.h"

#include <dwarf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/clock.h"
#include "base/format.h"
#include "base/text/demangle.h"
#include "base/text/how_many.h"

namespace tacho::decode {

using event::kUnknown;
namespace row = event::row;
using event::Table;

namespace {

constexpr size_t kMostFrames = 1024;

uint64_t own_pid_namespace() {
  static const uint64_t number = [] {
    struct stat status {};
    return stat("/proc/self/ns/pid", &status) == 0 ? static_cast<uint64_t>(status.st_ino) : 0;
  }();
  return number;
}

bool is_evaluator(std::string_view symbol) {
  return symbol.find("EvalFrameDefault") != std::string_view::npos;
}

}  // namespace

ProcessSamples::ProcessSamples(ProcessContext& process, trace::TraceWriter& writer, ModuleCache& modules,
                               const ProcessSamples* parent)
    : process_(process),
      writer_(writer),
      modules_(modules),
      jit_(std::make_shared<JitCode>(parent != nullptr ? parent->jit_ : nullptr)) {
  if (parent != nullptr) {
    codes_ = parent->codes_;
    maps_ = parent->maps_;
    map_count_ = parent->map_count_;
  }
}

bool ProcessSamples::Memory::load(uint64_t address, uint64_t& out) const {
  if (address < begin || address - begin >= size || size - (address - begin) < sizeof out) return false;
  std::memcpy(&out, bytes + (address - begin), sizeof out);
  return true;
}

// Where code lies

// Puts a map in place of those that it overlaps, which end then. `time`: the latest at which it was there.
void ProcessSamples::add_map(Map map, int64_t time) {
  if (map_count_ > 100'000) return;
  auto at = maps_.upper_bound(map.start);
  for (int steps = 0; at != maps_.begin() && steps < 4; ++steps) --at;
  for (; at != maps_.end() && at->first < map.end; ++at)
    for (Map& known : at->second) {
      if (known.end <= map.start) continue;
      const bool same = known.path == map.path && known.start - known.offset == map.start - map.offset &&
                        (known.file == map.file || !known.file.known() || !map.file.known());
      if (known.until == INT64_MAX) {
        // The loader tells a part of a file, /proc whole pages of it.
        if (same && known.start <= map.start && (known.start == map.start || known.end >= map.end)) {
          known.end = std::max(known.end, map.end);
          if (!known.file.known()) known.file = map.file;
          known.late |= map.late;
          return;
        }
        if (!same) known.until = std::max(known.from, time);
      }
      // From when on nobody saw; not before the one that was there has gone.
      if (known.until != INT64_MAX) map.from = std::max(map.from, known.until);
    }
  places_.clear();
  maps_[map.start].push_back(std::move(map));
  ++map_count_;
}

void ProcessSamples::module(const event::ModuleRecord& record, std::string_view path) {
  if (record.end <= record.start) return;
  const int64_t time = record.state == event::ModuleState::kKnown ? INT64_MIN : process_.host_time(record.time);
  if (record.state != event::ModuleState::kClosed)
    return add_map({.start = record.start,
                    .end = record.end,
                    .offset = record.offset,
                    .path = std::string(path),
                    .file = {record.device, record.inode, record.modified},
                    .late = record.state == event::ModuleState::kOpened},
                   time);
  const auto known = maps_.find(record.start);
  if (known == maps_.end()) return;
  for (Map& map : known->second)
    if (map.until == INT64_MAX) map.until = std::max(map.from, time);
  places_.clear();
}

void ProcessSamples::read_maps() {
  if (pid_ == 0) return;
  std::FILE* const file = std::fopen(fmt::format("/proc/{}/maps", pid_).c_str(), "re");
  if (file == nullptr) return;
  char line[4608];
  std::vector<Map> fresh;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    unsigned long long start = 0, end = 0, offset = 0;
    char rights[8] = {};
    int path = 0;
    if (std::sscanf(line, "%llx-%llx %7s %llx %*s %*s %n", &start, &end, rights, &offset, &path) < 4 ||
        rights[2] != 'x')
      continue;
    std::string name = path > 0 ? line + path : "";
    while (!name.empty() && (name.back() == '\n' || name.back() == ' ')) name.pop_back();
    if (name.ends_with(".dump") && name.find("/jit-") != std::string::npos) jit_->follow_dump(pid_, name);
    if (constexpr std::string_view kDeleted = " (deleted)"; name.ends_with(kDeleted))
      name.resize(name.size() - kDeleted.size());
    fresh.push_back({.start = start, .end = end, .offset = offset, .path = std::move(name), .late = maps_read_ != 0});
  }
  std::fclose(file);
  // A process that ends meanwhile shows nothing, and the known maps stay. New maps replace those of closed libraries.
  for (Map& map : fresh) add_map(std::move(map), now_);
}

const ProcessSamples::Map* ProcessSamples::find_map(uint64_t address) {
  const auto look = [&]() -> Map* {
    auto at = maps_.upper_bound(address);
    for (int steps = 0; at != maps_.begin() && steps < 4; ++steps) {
      --at;
      for (size_t i = at->second.size(); i-- > 0;)
        if (Map& map = at->second[i]; address >= map.start && address < map.end && map.at(now_)) return &map;
    }
    return nullptr;
  };
  Map* map = look();
  if (map == nullptr) {
    // Libraries are opened at any time; lookups of unmapped code repeat.
    const int64_t now = raw_now();
    if (now - maps_read_ > maps_pause_) {
      read_maps();
      maps_read_ = raw_now();
      map = look();
      maps_pause_ = map != nullptr ? kShortestPause : std::min(maps_pause_ * 2, kLongestPause);
    }
  }
  if (map != nullptr && map->module == nullptr && !map->path.empty() && (map->path[0] == '/' || map->path == "[vdso]"))
    map->module = modules_.module(map->path, pid_, map->file);
  return map;
}

NativeFrame ProcessSamples::place(uint64_t address, bool return_address) {
  const uint64_t key = address << 1 | (return_address ? 1 : 0);
  if (const auto known = places_.find(key);
      known != places_.end() && now_ >= known->second.from && now_ < known->second.until)
    return known->second;
  NativeFrame frame;
  frame.address = address;
  const uint64_t look_up = address - (return_address ? 1 : 0);
  frame.in_module = look_up;
  const Map* const map = find_map(look_up);
  if (map == nullptr || map->module == nullptr || !map->module->readable()) return frame;
  frame.in_module = map->module->address_of(look_up - map->start + map->offset);
  frame.module = map->module;
  frame.from = map->from;
  frame.until = map->until;
  const bool late = map->late;
  frame.rule = &frame.module->rule(frame.in_module);
  // Where a stack was made to return to a function's first byte, the byte before it belongs to nobody.
  if (return_address && frame.rule->kind == UnwindRule::Kind::kNone)
    frame.rule = &frame.module->rule(frame.in_module + 1);
  FrameFacts& facts = native(frame);
  // A file that came while the program ran may be written anew before it ends.
  if (late && frame.module->small()) name(*frame.module, frame.in_module, facts);
  // Addresses come from targets: no more of them than a program could have.
  if (address < 1ULL << 47 && places_.size() < 200'000) places_.insert_or_assign(key, frame);
  return frame;
}

// Unwinding

namespace {

// The result of DWARF's operations on the two uppermost numbers of the stack; nullopt for any other operation.
std::optional<uint64_t> binary(uint8_t op, uint64_t a, uint64_t b) {
  const auto x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
  switch (op) {
    case DW_OP_plus:
      return a + b;
    case DW_OP_minus:
      return a - b;
    case DW_OP_mul:
      return a * b;
    case DW_OP_and:
      return a & b;
    case DW_OP_or:
      return a | b;
    case DW_OP_xor:
      return a ^ b;
    case DW_OP_shl:
      return b < 64 ? a << b : 0;
    case DW_OP_shr:
      return b < 64 ? a >> b : 0;
    case DW_OP_ge:
      return x >= y;
    case DW_OP_gt:
      return x > y;
    case DW_OP_le:
      return x <= y;
    case DW_OP_lt:
      return x < y;
    case DW_OP_eq:
      return x == y;
    case DW_OP_ne:
      return x != y;
    default:
      return std::nullopt;
  }
}

// Evaluates a DWARF expression. False: an operation that no unwind table needs, or memory that was not copied.
template <typename Load>
bool evaluate(const std::vector<ExpressionStep>& steps, const uint64_t (&registers)[17], uint64_t cfa, Load load,
              uint64_t& result) {
  uint64_t stack[32];
  int depth = 0;
  const auto push = [&](uint64_t value) {
    if (depth == 32) return false;
    stack[depth++] = value;
    return true;
  };
  for (const ExpressionStep& step : steps) {
    const uint8_t op = step.atom;
    const auto number = static_cast<uint64_t>(step.number);
    bool good = true;
    if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
      good = push(op - DW_OP_lit0);
    } else if (op >= DW_OP_breg0 && op <= DW_OP_breg16) {
      good = push(registers[op - DW_OP_breg0] + number);
    } else if (op == DW_OP_addr || (op >= DW_OP_const1u && op <= DW_OP_consts)) {
      good = push(number);
    } else if (op == DW_OP_call_frame_cfa) {
      good = push(cfa);
    } else if (op == DW_OP_bregx) {
      good = step.number >= 0 && step.number < 17 && push(registers[step.number] + static_cast<uint64_t>(step.number2));
    } else if (op == DW_OP_deref) {
      good = depth > 0 && load(stack[depth - 1], stack[depth - 1]);
    } else if (op == DW_OP_dup) {
      good = depth > 0 && push(stack[depth - 1]);
    } else if (op == DW_OP_drop) {
      good = depth-- > 0;
    } else if (op == DW_OP_plus_uconst) {
      good = depth > 0;
      if (good) stack[depth - 1] += number;
    } else if (op != DW_OP_nop) {
      const std::optional<uint64_t> value = depth < 2 ? std::nullopt : binary(op, stack[depth - 2], stack[depth - 1]);
      good = value.has_value();
      if (good) stack[--depth - 1] = *value;
    }
    if (!good) return false;
  }
  if (depth == 0) return false;
  result = stack[depth - 1];
  return true;
}

}  // namespace

// Changes `registers` from a frame's to its caller's. False when that cannot be; `missing`: because the copied slice of
// the stack ends before.
bool ProcessSamples::step(const NativeFrame& frame, const UnwindRule& rule, const Memory& memory,
                          uint64_t (&registers)[17], bool& missing) {
  const auto load = [&](uint64_t address, uint64_t& out) {
    if (memory.load(address, out)) return true;
    missing = missing || address >= memory.begin + memory.size;
    return false;
  };
  uint64_t cfa = 0, caller = 0;
  if (rule.kind == UnwindRule::Kind::kOffsets) {
    cfa = registers[rule.cfa_register] + static_cast<uint64_t>(static_cast<int64_t>(rule.cfa_offset));
    const auto at = [&](int16_t offset) { return cfa + static_cast<uint64_t>(int64_t{offset} * 8); };
    if (!load(at(rule.return_offset), caller)) return false;
    uint64_t values[UnwindRule::kSaved];
    for (int i = 0; i < UnwindRule::kSaved; ++i) {
      values[i] = registers[UnwindRule::kSavedRegisters[i]];
      if (rule.saved[i] != UnwindRule::kSame && !load(at(rule.saved[i]), values[i])) return false;
    }
    for (int i = 0; i < UnwindRule::kSaved; ++i) registers[UnwindRule::kSavedRegisters[i]] = values[i];
  } else if (rule.kind == UnwindRule::Kind::kComplex) {
    const ComplexRule& full = frame.module->complex(rule.complex);
    if (!evaluate(full.cfa, registers, 0, load, cfa)) return false;
    uint64_t fresh[17];
    for (int number = 0; number < 17; ++number) {
      const ComplexRule::Register& how = full.registers[number];
      fresh[number] = registers[number];
      switch (how.how) {
        case ComplexRule::How::kSame:
        case ComplexRule::How::kUndefined:
          break;
        case ComplexRule::How::kRegister:
          if (how.number < 0 || how.number > 16) return false;
          fresh[number] = registers[how.number];
          break;
        case ComplexRule::How::kValueExpression:
          if (!evaluate(how.steps, registers, cfa, load, fresh[number])) return false;
          break;
        default: {
          uint64_t address = 0;
          if (!evaluate(how.steps, registers, cfa, load, address) || !load(address, fresh[number])) return false;
        }
      }
    }
    caller = fresh[16];
    const bool explicit_sp =
        full.registers[7].how != ComplexRule::How::kSame && full.registers[7].how != ComplexRule::How::kUndefined;
    if (explicit_sp) cfa = fresh[7];
    std::memcpy(registers, fresh, sizeof fresh);
  } else {
    // No table (code made at run time, hand-written assembly): a frame pointer, if there is one.
    const uint64_t bp = registers[event::kRegisterBp];
    uint64_t saved = 0;
    if (bp % 8 != 0 || bp < registers[event::kRegisterSp] || !load(bp, saved) || !load(bp + 8, caller)) return false;
    if (find_map(caller - 1) == nullptr) return false;
    registers[event::kRegisterBp] = saved;
    cfa = bp + 16;
  }
  if (cfa <= registers[event::kRegisterSp] && !rule.signal_frame && rule.kind != UnwindRule::Kind::kComplex)
    return false;  // no progress
  registers[event::kRegisterSp] = cfa;
  registers[event::kRegisterIp] = caller;
  return true;
}

void ProcessSamples::unwind(const event::SampleHeader& header, std::span<const uint64_t> chain, const Memory& memory,
                            uint64_t (&registers)[17], Unwound& out) {
  out.frames.clear();
  out.whole = false;
  bool return_address = false;
  while (out.frames.size() < kMostFrames) {
    if (registers[event::kRegisterIp] == 0) {
      out.whole = !out.frames.empty();
      return;
    }
    out.frames.push_back(place(registers[event::kRegisterIp], return_address));
    const NativeFrame& frame = out.frames.back();
    static const UnwindRule kNoRule;
    const UnwindRule& rule = frame.rule != nullptr ? *frame.rule : kNoRule;
    if (rule.kind == UnwindRule::Kind::kOutermost) {
      out.whole = true;
      return;
    }
    bool missing = false;
    const uint64_t bp = registers[event::kRegisterBp];
    if (!step(frame, rule, memory, registers, missing)) {
      // A function that was just called has its return address on top of the stack, table or not.
      uint64_t top = 0;
      if (!missing && out.frames.size() == 1 && rule.kind == UnwindRule::Kind::kNone &&
          memory.load(registers[event::kRegisterSp], top) && top != 0 && find_map(top - 1) != nullptr) {
        registers[event::kRegisterSp] += 8;
        registers[event::kRegisterIp] = top;
        return_address = true;
        continue;
      }
      // Beyond the slice the chain of frame pointers goes on, if this frame's own frame pointer is one of it.
      if (missing) {
        size_t at = 0;
        while (at + 2 <= chain.size() && chain[at] != bp) at += 2;
        for (; at + 2 <= chain.size() && out.frames.size() < kMostFrames; at += 2) {
          const NativeFrame further = place(chain[at + 1], true);
          if (further.module == nullptr && find_map(further.address - 1) == nullptr) break;
          out.frames.push_back(further);
        }
      } else if (header.stack_whole != 0 && rule.kind == UnwindRule::Kind::kNone && out.frames.size() > 1) {
        out.whole = true;  // as far as anybody can see
      }
      return;
    }
    return_address = !rule.signal_frame;
  }
}

// Rows

FrameFacts& ProcessSamples::native(NativeFrame& frame) {
  if (frame.facts != nullptr) return *frame.facts;
  if (frame.module == nullptr) {
    const Map* const map = find_map(frame.in_module);  // tells of dumps, too
    jit_->update(raw_now());
    const JitCode::Code* const code = jit_->find(frame.in_module, now_);
    const auto [found, fresh] = strange_.try_emplace({frame.in_module, code});
    FrameFacts& facts = found->second;
    frame.facts = &facts;
    if (!fresh) return facts;
    const std::string module = map != nullptr && !map->path.empty() ? map->path
                               : code == nullptr                    ? "[unknown]"
                                                                    : "[jit]";
    facts.row = writer_.dimension(row::Frame{.kind = event::FrameKind::kNative,
                                             .function = writer_.string(code != nullptr ? code->name : ""),
                                             .module = writer_.string(module),
                                             .address = static_cast<int64_t>(frame.in_module)});
    facts.evaluates = FrameFacts::kNo;
    return facts;
  }
  const auto [found, fresh] = frames_[frame.module].try_emplace(frame.in_module);
  FrameFacts& facts = found->second;
  frame.facts = &facts;
  if (!fresh) return facts;
  const std::string_view path = frame.module->name();
  facts.hidden = path.ends_with("/libtacho.so");
  // The frame of another file of that name is another one.
  const uint32_t version = frame.module->version();
  facts.row = writer_.dimension(row::Frame{.kind = event::FrameKind::kNative,
                                           .function = writer_.string(version == 0 ? "" : fmt::format("#{}", version)),
                                           .module = writer_.string(path),
                                           .address = static_cast<int64_t>(frame.in_module)});
  return facts;
}

// Asked only for samples with Python frames: elsewhere symbols can wait.
bool ProcessSamples::evaluates(NativeFrame& frame) {
  FrameFacts& facts = native(frame);
  if (facts.evaluates == FrameFacts::kNotAsked)
    facts.evaluates = is_evaluator(frame.module->symbol(frame.in_module).name) ? FrameFacts::kYes : FrameFacts::kNo;
  return facts.evaluates == FrameFacts::kYes;
}

void ProcessSamples::finish() {
  if (const int64_t count = jit_->left_out(); count > 0)
    writer_.note(
        process_.row(), event::NoteSeverity::kWarning,
        fmt::format(
            "the program named {} that it made at run time than the 1,000,000 that tacho keeps: {} samples have "
            "no names",
            how_many(count, "more function", "more functions"), count == 1 ? "its" : "their"));
  for (const auto& [place, row] : routines_) {
    if (place.first == nullptr) continue;
    const Symbol symbol = place.first->symbol(place.second);
    if (!symbol.name.empty())
      writer_.update(Table::kFrame, row, event::column::Frame::function, writer_.string(demangle(symbol.name)));
    if (const SourceLine line = place.first->line(place.second); line.line > 0)
      writer_.update(Table::kFrame, row, event::column::Frame::file, writer_.string(line.file));
  }
  for (auto& [module, frames] : frames_)
    for (auto& [address, facts] : frames) name(*module, address, facts);
}

// Completes the frame's row.
void ProcessSamples::name(CodeModule& module, uint64_t address, FrameFacts& facts) {
  if (facts.named) return;
  facts.named = true;
  const Symbol symbol = module.symbol(address);
  if (!symbol.name.empty() || module.version() != 0)
    writer_.update(Table::kFrame, facts.row, event::column::Frame::function, writer_.string(demangle(symbol.name)));
  const SourceLine line = module.line(address);
  if (line.line > 0) {
    writer_.update(Table::kFrame, facts.row, event::column::Frame::file, writer_.string(line.file));
    writer_.update(Table::kFrame, facts.row, event::column::Frame::line, line.line);
  }
}

int64_t ProcessSamples::plain_frame(event::FrameKind kind, std::string_view function) {
  return writer_.dimension(row::Frame{.kind = kind, .function = writer_.string(function)});
}

void ProcessSamples::code(const event::CodeRecord& record, std::span<const std::byte> bytes, std::string_view name,
                          std::string_view file) {
  const uint32_t number = record.header.value;
  if (number >= (1u << 24) || number > codes_.size() + 65536 || record.table_bytes > bytes.size() - sizeof record)
    return;
  if (codes_.size() <= number) codes_.resize(number + 1);
  Code& code = codes_[number];
  if (code.version != 0) python_rows_.clear();
  code.name = writer_.string(name);
  code.file = writer_.string(file);
  code.first_line = record.first_line;
  code.version = record.version;
  const auto* const table = reinterpret_cast<const uint8_t*>(bytes.data()) + sizeof record;
  code.table.assign(table, table + record.table_bytes);
}

int64_t ProcessSamples::python(uint64_t word) {
  word &= ~(event::kPythonShim | event::kPythonEnd);
  if (const auto known = python_rows_.find(word); known != python_rows_.end()) return known->second;
  const auto number = static_cast<uint32_t>(word >> 32);
  if (number == 0 || number >= codes_.size() || codes_[number].version == 0)
    return plain_frame(event::FrameKind::kPython, "");
  const Code& code = codes_[number];
  const int line =
      python_line(code.version, code.first_line, code.table, static_cast<int64_t>(word & event::kPythonOffsetMask) - 2);
  const int64_t row = writer_.dimension(row::Frame{
      .kind = event::FrameKind::kPython, .function = code.name, .file = code.file, .line = line > 0 ? line : kUnknown});
  python_rows_.emplace(word, row);
  return row;
}

// The row of the stack in line_.
int64_t ProcessSamples::stack_of_line() {
  size_t known = 0;
  while (known < last_line_.size() && known < line_.size() &&
         last_line_[known].first == line_[line_.size() - 1 - known])
    ++known;
  int64_t row = known == 0 ? 0 : last_line_[known - 1].second;
  last_line_.resize(known);
  for (size_t i = line_.size() - known; i-- > 0;) {
    const auto [found, fresh] =
        stacks_.try_emplace(static_cast<uint64_t>(row) << 32 | static_cast<uint64_t>(line_[i]), 0);
    if (fresh) found.value() = writer_.dimension(row::Stack{.parent = row, .frame = line_[i]});
    row = found->second;
    last_line_.emplace_back(line_[i], row);
  }
  return row;
}

bool ProcessSamples::sample(const tape::BlockHeader& block, const event::SampleRecord& record,
                            std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data() + sizeof record;
  size_t left = bytes.size() - sizeof record;
  event::SampleHeader header;
  if (left < sizeof header) return false;
  std::memcpy(&header, at, sizeof header);
  at += sizeof header, left -= sizeof header;
  const bool launch = header.launch != 0;
  if (launch && (header.chain != 0 || header.stack_bytes != 0)) return false;
  const uint64_t needed = (launch || header.of != event::SampleOf::kMoment ? 0 : event::kSampleRegisters * 8) +
                          (uint64_t{header.chain} + header.frames) * 8 + header.stack_bytes;
  if (needed > left || header.stack_bytes % 8 != 0 || header.clock > event::SampleClock::kWall ||
      header.python > event::PythonState::kBroken || header.of > event::SampleOf::kBeforeMain)
    return false;
  now_ = process_.host_time(record.time);
  if (pid_ == 0 && block.pid != 0 && block.aux64 == own_pid_namespace()) {
    pid_ = block.pid;
    jit_->follow(pid_);
    read_maps();
    maps_read_ = raw_now();
  }
  if (header.of != event::SampleOf::kMoment) return time_alone(record, header);
  uint64_t registers[event::kSampleRegisters] = {};
  if (!launch) {
    std::memcpy(registers, at, sizeof registers);
    at += sizeof registers;
  }
  const std::span<const uint64_t> chain(reinterpret_cast<const uint64_t*>(at), header.chain);
  at += chain.size_bytes();
  const std::span<const uint64_t> frames(reinterpret_cast<const uint64_t*>(at), header.frames);
  at += frames.size_bytes();
  const Memory memory{at, header.stack_begin, header.stack_bytes};

  if (launch) {
    unwound_.frames.clear();
    unwound_.whole = true;
  } else {
    unwind(header, chain, memory, registers, unwound_);
  }

  // Python frames replace the interpreter's loop: each of its native frames becomes one segment of them.
  line_.clear();
  size_t loops = 0, segments = 0;
  if (!frames.empty())
    for (NativeFrame& frame : unwound_.frames) loops += evaluates(frame);
  for (const uint64_t word : frames) segments += (word & (event::kPythonEnd | event::kPythonShim)) != 0;
  // If the newest loop has no frame yet (or the chain was read while it changed), the outer ends match.
  size_t without = 0;
  if (header.python == event::PythonState::kWhole && unwound_.whole && loops > segments) without = loops - segments;
  size_t next = 0;
  const auto put_segment = [&] {
    while (next < frames.size()) {
      const uint64_t word = frames[next++];
      if ((word & event::kPythonShim) != 0) return;
      line_.push_back(python(word));
      if ((word & event::kPythonEnd) != 0) return;
    }
  };
  for (NativeFrame& frame : unwound_.frames) {
    const FrameFacts& facts = native(frame);
    if (facts.hidden) continue;
    if (next >= frames.size() || !evaluates(frame)) {
      line_.push_back(facts.row);
    } else if (without > 0) {
      --without;
      line_.push_back(facts.row);
    } else {
      put_segment();
    }
  }
  // Python frames whose loops were not reached are the outer ones.
  while (next < frames.size()) put_segment();
  // Python's frames are read apart from the native ones: where they are whole, what unwinding missed lies between or
  // outside of them, and the stack begins where Python's does.
  const bool python_whole = !frames.empty() && header.python == event::PythonState::kWhole;
  if ((!unwound_.whole && !python_whole) || header.python == event::PythonState::kTruncated)
    line_.push_back(plain_frame(event::FrameKind::kTruncated, "[truncated]"));

  if (header.launch == 2)
    memory_stacks_[record.tid] = stack_of_line();
  else
    add_row(record, header.clock);
  return true;
}

// The function with which threads begin: with its file, without a line, since nobody knows in which it was.
int64_t ProcessSamples::routine_frame(uint64_t address) {
  const NativeFrame frame = place(address, false);
  const auto [found, fresh] = routines_.try_emplace({frame.module, frame.in_module}, 0);
  if (fresh)
    found->second = writer_.dimension(
        row::Frame{.kind = event::FrameKind::kNative,
                   .function = writer_.string(fmt::format("{:#x}", frame.in_module)),  // finish() finds its name
                   .module = writer_.string(frame.module != nullptr ? frame.module->name() : "[unknown]")});
  return found->second;
}

// CPU time without a moment.
bool ProcessSamples::time_alone(const event::SampleRecord& record, const event::SampleHeader& header) {
  line_.clear();
  event::SampleRecord part = record;
  if (header.of == event::SampleOf::kBeforeMain) {
    // A number that is less than the sum before is another process's, to which the kernel gave the pid again.
    if (part.period >= cpu_time_)
      part.period -= cpu_time_;
    else
      cpu_time_ = 0;
    if (part.period == 0) return true;
    line_.push_back(plain_frame(event::FrameKind::kUnknown, "[before main]"));
  } else {
    line_.push_back(plain_frame(event::FrameKind::kUnknown, "[not sampled]"));
    if (header.stack_begin != 0) line_.push_back(routine_frame(header.stack_begin));
  }
  add_row(part, header.clock);
  return true;
}

// A sample with the stack in line_.
void ProcessSamples::add_row(const event::SampleRecord& record, event::SampleClock clock) {
  const int64_t row = stack_of_line();

  const uint64_t track_key = static_cast<uint64_t>(record.tid) << 1 | static_cast<uint64_t>(clock);
  int64_t& track = tracks_[track_key];
  if (track == 0) {
    const int64_t thread = writer_.dimension(row::Thread{.process = process_.row(), .tid = record.tid});
    track = writer_.dimension(
        row::Track{.kind = event::TrackKind::kThread,
                   .process = process_.row(),
                   .thread = thread,
                   .native = record.tid,
                   .category = writer_.string(clock == event::SampleClock::kCpu ? "sample.cpu" : "sample.wall")});
  }
  constexpr uint64_t kLongest = 1ULL << 50;
  if (clock == event::SampleClock::kCpu) cpu_time_ += std::min(record.period, kLongest);
  writer_.add(row::Sample{.track = track,
                          .start = now_,
                          .duration = static_cast<int64_t>(std::min(record.period, kLongest)),
                          .dim = row,
                          .correlation = static_cast<int64_t>(record.correlation)});
}

// Python's line tables

namespace {

// 3.9: pairs of (address step, signed line step).
int line_of_lnotab(int line, std::span<const uint8_t> table, int64_t offset) {
  int64_t address = 0;
  for (size_t i = 0; i + 2 <= table.size(); i += 2) {
    address += table[i];
    if (address > offset) break;
    line += static_cast<int8_t>(table[i + 1]);
  }
  return line;
}

// 3.10 (PEP 626): pairs of (length, signed line step), -128 = no line.
int line_of_ranges(int line, std::span<const uint8_t> table, int64_t offset) {
  int64_t end = 0;
  int last = line;
  for (size_t i = 0; i + 2 <= table.size(); i += 2) {
    end += table[i];
    const auto change = static_cast<int8_t>(table[i + 1]);
    if (change != -128) line += change;
    const bool has_line = change != -128;
    if (has_line) last = line;
    if (offset < end && table[i] != 0) return has_line ? line : last;
  }
  return last;
}

// 3.11 and later (PEP 657): entries of varying length.
int line_of_locations(int line, std::span<const uint8_t> table, int64_t offset) {
  size_t at = 0;
  const auto number = [&] {
    uint64_t value = 0;
    for (unsigned shift = 0; at < table.size() && shift < 36; shift += 6) {
      const uint8_t byte = table[at++];
      value |= static_cast<uint64_t>(byte & 63) << shift;
      if ((byte & 64) == 0) break;
    }
    return value;
  };
  const auto signed_number = [&] {
    const uint64_t value = number();
    const auto magnitude = static_cast<int64_t>(value >> 1);
    return (value & 1) != 0 ? -magnitude : magnitude;
  };
  int64_t address = 0, running = line;
  while (at < table.size()) {
    const uint8_t first = table[at++];
    if ((first & 0x80) == 0) break;
    const int kind = first >> 3 & 15;
    const int64_t length = ((first & 7) + 1) * 2;
    bool has_line = true;
    switch (kind) {
      case 15:
        has_line = false;
        break;
      case 14:
        running += signed_number();
        number(), number(), number();
        break;
      case 13:
        running += signed_number();
        break;
      case 10:
      case 11:
      case 12:
        running += kind - 10;
        at += 2;
        break;
      default:
        ++at;
    }
    if (offset < address + length)
      return static_cast<int>(std::clamp<int64_t>(has_line ? running : line, 0, INT32_MAX));
    if (has_line) line = static_cast<int>(std::clamp<int64_t>(running, 0, INT32_MAX));
    address += length;
  }
  return line;
}

}  // namespace

int ProcessSamples::python_line(uint32_t version, int first_line, std::span<const uint8_t> table, int64_t offset) {
  if (offset < 0) return first_line;
  switch (version) {
    case 0x309:
      return line_of_lnotab(first_line, table, offset);
    case 0x30a:
      return line_of_ranges(first_line, table, offset);
    default:
      return line_of_locations(first_line, table, offset);
  }
}

}  // namespace tacho::decode

// CodeModule: an executable or library, for unwinding and symbolisation. Finds .eh_frame rules, functions and source
// lines by address. Reads with elfutils, caches its results, and never uses the network.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tacho::decode {

/// How to unwind from one address to the caller. x86-64; registers have DWARF numbers.
struct UnwindRule {
  enum class Kind : uint8_t {
    kNone,       // no table covers this address
    kOffsets,    // simple: cfa = register + offset, saved registers at cfa + offset
    kOutermost,  // the frame has no caller
    kComplex,    // expressions: see CodeModule::complex()
  };
  static constexpr int16_t kSame = INT16_MIN;  // the register keeps its value
  static constexpr int kSaved = 6;
  static constexpr uint8_t kSavedRegisters[kSaved] = {3, 6, 12, 13, 14, 15};  // rbx rbp r12..r15

  Kind kind = Kind::kNone;
  uint8_t cfa_register = 7;
  bool signal_frame = false;  // interrupted its caller: look up the return address itself, not one less
  int32_t cfa_offset = 0;
  int16_t return_offset = 0;                                           // in units of 8 bytes, from the cfa
  int16_t saved[kSaved] = {kSame, kSame, kSame, kSame, kSame, kSame};  // likewise
  uint32_t complex = 0;                                                // index
};

/// One step of a DWARF expression: operation and operands.
struct ExpressionStep {
  uint8_t atom;
  int64_t number, number2;
};
struct ComplexRule {
  enum class How : uint8_t { kSame, kOffset, kValueOffset, kExpression, kValueExpression, kRegister, kUndefined };
  struct Register {
    How how = How::kSame;
    int64_t number = 0;
    std::vector<ExpressionStep> steps;
  };
  std::vector<ExpressionStep> cfa;
  Register registers[17];
};

struct Symbol {
  std::string_view name;  // as in the file (mangled); empty = not found
  uint64_t start = 0;     // file's own address
};
struct SourceLine {
  std::string file;
  int line = 0;  // 0 = unknown
};

class CodeModule {
 public:
  /// `real_path`: the file to read (may be below /proc/PID/root), "" = none; `name`: the module's name in the trace;
  /// `version`: number of this file among those that had the name during the run, from 0.
  /// `small`: its names are read in no time.
  CodeModule(const std::string& real_path, std::string name, uint32_t version = 0, bool small = false);
  ~CodeModule();
  CodeModule(const CodeModule&) = delete;
  CodeModule& operator=(const CodeModule&) = delete;

  const std::string& name() const { return name_; }
  uint32_t version() const { return version_; }
  bool small() const { return small_; }
  /// False when the file is not readable ELF; all look-ups then fail.
  bool readable() const;
  /// The virtual address in the file of a file offset; 0 when no segment contains it.
  uint64_t address_of(uint64_t file_offset) const;
  const UnwindRule& rule(uint64_t address);
  const ComplexRule& complex(uint32_t index) const;
  Symbol symbol(uint64_t address);
  SourceLine line(uint64_t address);

 private:
  struct Elf;
  std::string name_;
  uint32_t version_;
  bool small_;
  std::unique_ptr<Elf> elf_;
  std::unordered_map<uint64_t, UnwindRule> rules_;
};

/// Which file of a name it was; all 0 = unknown.
struct FileIdentity {
  uint64_t device = 0, inode = 0;
  int64_t modified = 0;  // ns since 1970
  bool known() const { return inode != 0; }
  bool operator==(const FileIdentity&) const = default;
};

/// Modules by path, shared by all processes of a run. A file that was written anew is another module.
class ModuleCache {
 public:
  /// The module at `path` as process `pid` sees it (0: as tacho does). Never fails; look-ups in an unreadable module
  /// do. `was`: the file that the process had; if another one is there by now, the module is unreadable.
  CodeModule* module(const std::string& path, uint32_t pid, const FileIdentity& was = {});

 private:
  std::unordered_map<std::string, std::unique_ptr<CodeModule>> modules_;  // by device, inode, time and path
  std::unordered_map<std::string, uint32_t> versions_;                    // by path
};

}  // namespace tacho::decode

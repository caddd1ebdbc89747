// Moving instructions (relocate.h).
#include "watch/entries/relocate.h"

#include <capstone/capstone.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <optional>

namespace tacho::watch {
namespace {

constexpr std::array<uint8_t, 4> kEndbr = {0xf3, 0x0f, 0x1e, 0xfa};

// Reads one instruction after the other.
class Reader {
 public:
  Reader() {
    good_ = cs_open(CS_ARCH_X86, CS_MODE_64, &handle_) == CS_ERR_OK;
    if (!good_) return;
    cs_option(handle_, CS_OPT_DETAIL, CS_OPT_ON);
    instruction_ = cs_malloc(handle_);
  }
  ~Reader() {
    if (instruction_ != nullptr) cs_free(instruction_, 1);
    if (good_) cs_close(&handle_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// nullptr where Capstone knows none.
  const cs_insn* read(std::span<const uint8_t> code, uint64_t address) {
    const uint8_t* at = code.data();
    size_t size = code.size();
    return instruction_ != nullptr && cs_disasm_iter(handle_, &at, &size, &address, instruction_) ? instruction_
                                                                                                  : nullptr;
  }
  bool is_in(const cs_insn& instruction, unsigned group) const { return cs_insn_group(handle_, &instruction, group); }

 private:
  csh handle_ = 0;
  bool good_ = false;
  cs_insn* instruction_ = nullptr;
};

bool uses_place(const cs_insn& instruction, x86_reg place) {
  const cs_x86& detail = instruction.detail->x86;
  return std::any_of(std::begin(detail.operands), std::begin(detail.operands) + detail.op_count,
                     [&](const cs_x86_op& each) { return each.type == X86_OP_MEM && each.mem.base == place; });
}

// Where a jump or call goes that says it relatively to itself.
std::optional<uint64_t> target_of(const Reader& reader, const cs_insn& instruction) {
  const cs_x86& detail = instruction.detail->x86;
  const bool branches = reader.is_in(instruction, CS_GRP_JUMP) || reader.is_in(instruction, CS_GRP_CALL) ||
                        reader.is_in(instruction, X86_GRP_BRANCH_RELATIVE) || instruction.id == X86_INS_XBEGIN;
  if (!branches || detail.op_count != 1 || detail.operands[0].type != X86_OP_IMM) return std::nullopt;
  return static_cast<uint64_t>(detail.operands[0].imm);
}

// Whether nothing behind the instruction is reached by it.
bool ends(const Reader& reader, const cs_insn& instruction) {
  switch (instruction.id) {
    case X86_INS_JMP:
    case X86_INS_LJMP:
    case X86_INS_HLT:
    case X86_INS_UD2:
    case X86_INS_INT3:
      return true;
    default:
      return reader.is_in(instruction, CS_GRP_RET) || reader.is_in(instruction, CS_GRP_IRET);
  }
}

// Adds `by` to a distance of four bytes in the code. False if it does not fit.
bool shift(std::vector<uint8_t>& code, size_t at, int64_t by) {
  int32_t distance = 0;
  memcpy(&distance, code.data() + at, sizeof distance);
  const int64_t moved = distance + by;
  if (moved < INT32_MIN || moved > INT32_MAX) return false;
  distance = static_cast<int32_t>(moved);
  memcpy(code.data() + at, &distance, sizeof distance);
  return true;
}

// Puts an instruction of address `from` at the end of `code`, which lies `by` bytes before where it lay.
Status move_one(const Reader& reader, const cs_insn& instruction, int64_t by, std::vector<uint8_t>& code) {
  const size_t place = code.size();
  code.insert(code.end(), instruction.bytes, instruction.bytes + instruction.size);
  const cs_x86_encoding& encoding = instruction.detail->x86.encoding;
  if (uses_place(instruction, X86_REG_EIP)) return fail("it addresses memory by a register of 32 bits (eip)");
  if (uses_place(instruction, X86_REG_RIP)) {
    if (encoding.disp_size != 4)
      return fail("Capstone does not tell where the distance in its {} lies", instruction.mnemonic);
    if (!shift(code, place + encoding.disp_offset, by)) return fail("its data is farther than 2 GiB from the copy");
  }
  if (!target_of(reader, instruction)) return {};
  if (instruction.id == X86_INS_XBEGIN) return fail("it begins a transaction");
  if (encoding.imm_size != 4) return fail("it has a short jump among its first instructions");
  if (!shift(code, place + encoding.imm_offset, by)) return fail("it jumps farther than 2 GiB from the copy");
  return {};
}

}  // namespace

Result<std::vector<uint8_t>> jump(uint64_t from, uint64_t to) {
  const auto distance = static_cast<int64_t>(to - from - kJumpBytes);
  if (distance < INT32_MIN || distance > INT32_MAX) return fail("it is farther than 2 GiB from the copy");
  std::vector<uint8_t> code(kJumpBytes, 0xe9);
  const auto whole = static_cast<int32_t>(distance);
  memcpy(code.data() + 1, &whole, sizeof whole);
  return code;
}

std::vector<uint8_t> far_jump(uint64_t to) {
  std::vector<uint8_t> code = {0x3e, 0xff, 0x25, 0, 0, 0, 0};  // notrack jmp *0(%rip)
  code.resize(code.size() + sizeof to);
  memcpy(code.data() + code.size() - sizeof to, &to, sizeof to);
  return code;
}

Result<MovedHead> move_head(std::span<const uint8_t> code, uint64_t from, uint64_t to) {
  MovedHead head;
  Reader reader;
  if (code.size() >= kEndbr.size() && std::equal(kEndbr.begin(), kEndbr.end(), code.begin())) {
    head.code.assign(kEndbr.begin(), kEndbr.end());
    head.at = head.taken = kEndbr.size();
  }
  bool ended = false;
  std::vector<uint64_t> targets;
  while (head.taken < head.at + kJumpBytes) {
    if (ended) return fail("it is shorter than a jump");
    const cs_insn* const one = reader.read(code.subspan(std::min(head.taken, code.size())), from + head.taken);
    if (one == nullptr) return fail("its instruction at byte {} is none that Capstone knows", head.taken);
    const int64_t by = static_cast<int64_t>(from + head.taken) - static_cast<int64_t>(to + head.code.size());
    TACHO_TRY(move_one(reader, *one, by, head.code));
    if (const auto target = target_of(reader, *one)) targets.push_back(*target);
    ended = ends(reader, *one);
    head.taken += one->size;
  }
  // What lies behind: another function, in the end, but a jump into this one's middle is none of those.
  for (size_t at = head.taken; at < code.size();) {
    const cs_insn* const one = reader.read(code.subspan(at), from + at);
    if (one == nullptr) break;
    if (const auto target = target_of(reader, *one)) targets.push_back(*target);
    at += one->size;
  }
  const auto into_head = [&](uint64_t target) { return target > from + head.at && target < from + head.taken; };
  if (std::any_of(targets.begin(), targets.end(), into_head)) return fail("it jumps back into its first instructions");
  TACHO_ASSIGN(const std::vector<uint8_t> back, jump(to + head.code.size(), from + head.taken));
  head.code.insert(head.code.end(), back.begin(), back.end());
  return head;
}

}  // namespace tacho::watch

// Classifies a kernel's instructions for the virtual GPU: their class and their arithmetic. Done once per instruction
// of the code, not per execution.
#pragma once

#include <cstdint>

namespace llvm {
class Instruction;
}

namespace tacho::plugin {

/// In the order of V_INST_* in counters.def.
enum class InstructionClass : uint8_t {
  kFpAdd,
  kFpMul,
  kFpFma,
  kFpDiv,
  kFpOther,
  kFpMath,
  kInt32,
  kInt64,
  kConvert,
  kMove,
  kAddress,
  kControl,
  kWorkItem,
  kBarrier,
  kGlobalLoad,
  kGlobalStore,
  kGlobalAtomic,
  kLocalLoad,
  kLocalStore,
  kLocalAtomic,
  kConstantLoad,
  kPrivateLoad,
  kPrivateStore,
  kOther,
  kEnd,
  kNothing = kEnd,  ///< not counted: debug information, lifetime marks
};

/// In the order of V_OPS_* in counters.def.
enum class CountedOperation : uint8_t {
  kAddF16,
  kMulF16,
  kFmaF16,
  kOtherF16,
  kAddF32,
  kMulF32,
  kFmaF32,
  kOtherF32,
  kAddF64,
  kMulF64,
  kFmaF64,
  kOtherF64,
  kInt32,
  kInt64,
  kEnd
};

struct Classified {
  InstructionClass kind = InstructionClass::kOther;
  CountedOperation operation = CountedOperation::kEnd;  ///< kEnd: no arithmetic
  uint32_t elements = 0;                                ///< operations of one execution
};

Classified classify(const llvm::Instruction& instruction);

/// True when the instruction calls a function that is interpreted, not built in.
bool calls_defined_function(const llvm::Instruction& instruction);

}  // namespace tacho::plugin

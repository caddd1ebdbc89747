// Classes of instructions (classify.h).
#include "capture/plugin/oclgrind/classify.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <string_view>

namespace tacho::plugin {

namespace {

using Kind = InstructionClass;
using llvm::Instruction;

enum AddressSpace : unsigned { kPrivate = 0, kGlobal = 1, kConstant = 2, kLocal = 3 };

uint32_t elements_of(const llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector != nullptr ? vector->getNumElements() : 1;
}

// 0 add, 1 mul, 2 fma, 3 other, of the type's width.
CountedOperation floating(const llvm::Type* type, int what) {
  const llvm::Type* const scalar = type->getScalarType();
  const int width = scalar->isHalfTy() ? 0 : scalar->isFloatTy() ? 1 : scalar->isDoubleTy() ? 2 : -1;
  return width < 0 ? CountedOperation::kEnd : static_cast<CountedOperation>(width * 4 + what);
}

Classified integer(const llvm::Type* type) {
  const bool wide = type->getScalarSizeInBits() > 32 || type->isPtrOrPtrVectorTy();
  return {wide ? Kind::kInt64 : Kind::kInt32, wide ? CountedOperation::kInt64 : CountedOperation::kInt32,
          elements_of(type)};
}

Kind load_from(unsigned space) {
  switch (space) {
    case kGlobal:
      return Kind::kGlobalLoad;
    case kConstant:
      return Kind::kConstantLoad;
    case kLocal:
      return Kind::kLocalLoad;
    default:
      return Kind::kPrivateLoad;
  }
}
Kind store_to(unsigned space) {
  switch (space) {
    case kGlobal:
    case kConstant:
      return Kind::kGlobalStore;
    case kLocal:
      return Kind::kLocalStore;
    default:
      return Kind::kPrivateStore;
  }
}

// The address space of the first pointer among the arguments, the last one for stores (vstore's target).
unsigned pointer_space(const llvm::CallInst& call) {
  for (const auto& argument : call.args())
    if (const auto* pointer = llvm::dyn_cast<llvm::PointerType>(argument->getType())) return pointer->getAddressSpace();
  return kPrivate;
}

// "_Z13get_global_idj" -> "get_global_id"; other names as they are.
std::string_view plain_name(std::string_view name) {
  if (!name.starts_with("_Z")) return name;
  size_t at = 2, length = 0;
  while (at < name.size() && name[at] >= '0' && name[at] <= '9')
    length = length * 10 + static_cast<size_t>(name[at++] - '0');
  return length > 0 && at + length <= name.size() ? name.substr(at, length) : name;
}

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  for (const std::string_view each : names)
    if (name == each) return true;
  return false;
}

Classified classify_call(const llvm::CallInst& call) {
  const llvm::Function* const callee = call.getCalledFunction();
  if (callee == nullptr) return {Kind::kControl};
  if (!callee->isDeclaration()) return {Kind::kControl};
  const llvm::StringRef stored = callee->getName();
  const std::string_view full(stored.data(), stored.size());
  const llvm::Type* const type = call.getType();
  if (full.starts_with("llvm.")) {
    if (full.starts_with("llvm.fmuladd") || full.starts_with("llvm.fma."))
      return {Kind::kFpFma, floating(type, 2), elements_of(type)};
    if (full.starts_with("llvm.dbg.") || full.starts_with("llvm.lifetime.") || full.starts_with("llvm.assume") ||
        full.starts_with("llvm.invariant.") || full.starts_with("llvm.experimental.noalias"))
      return {Kind::kNothing};
    if (full.starts_with("llvm.memcpy") || full.starts_with("llvm.memmove") || full.starts_with("llvm.memset"))
      return {store_to(pointer_space(call))};
    if (type->isIntOrIntVectorTy()) return integer(type);
    if (type->isFPOrFPVectorTy()) return {Kind::kFpMath, floating(type, 3), elements_of(type)};
    return {Kind::kOther};
  }
  const std::string_view name = plain_name(full);
  if (name.starts_with("get_") && (name.ends_with("_id") || name.ends_with("_size") || name.ends_with("_offset") ||
                                   name.ends_with("_dim") || name.ends_with("_groups")))
    return {Kind::kWorkItem};
  if (one_of(name, {"barrier", "work_group_barrier", "sub_group_barrier"})) return {Kind::kBarrier};
  if (name.starts_with("atomic_") || name.starts_with("atom_"))
    return {pointer_space(call) == kLocal ? Kind::kLocalAtomic : Kind::kGlobalAtomic};
  if (name.starts_with("vload")) return {load_from(pointer_space(call))};
  if (name.starts_with("vstore")) return {store_to(pointer_space(call))};
  if (name.starts_with("read_image")) return {Kind::kGlobalLoad};
  if (name.starts_with("write_image")) return {Kind::kGlobalStore};
  if (one_of(name, {"fma", "mad"}) && type->isFPOrFPVectorTy())
    return {Kind::kFpFma, floating(type, 2), elements_of(type)};
  if (name.starts_with("convert_") || name.starts_with("as_")) return {Kind::kConvert};
  if (name.starts_with("shuffle") || one_of(name, {"select", "bitselect"})) return {Kind::kMove};
  if (type->isFPOrFPVectorTy()) {
    if (one_of(name, {"fmin", "fmax", "min", "max", "fabs", "clamp", "sign", "copysign", "step"}))
      return {Kind::kFpOther};
    if (name == "dot") return {Kind::kFpFma, floating(type, 2), elements_of(call.getArgOperand(0)->getType())};
    return {Kind::kFpMath, floating(type, 3), elements_of(type)};
  }
  if (type->isIntOrIntVectorTy()) {
    // Comparisons of floats (isnan, isequal, any) give integers and are integer work.
    return integer(type);
  }
  return {Kind::kOther};
}

}  // namespace

Classified classify(const llvm::Instruction& instruction) {
  const llvm::Type* const type = instruction.getType();
  switch (instruction.getOpcode()) {
    case Instruction::FAdd:
    case Instruction::FSub:
      return {Kind::kFpAdd, floating(type, 0), elements_of(type)};
    case Instruction::FMul:
      return {Kind::kFpMul, floating(type, 1), elements_of(type)};
    case Instruction::FDiv:
    case Instruction::FRem:
      return {Kind::kFpDiv, floating(type, 3), elements_of(type)};
    case Instruction::FNeg:
    case Instruction::FCmp:
      return {Kind::kFpOther};
    case Instruction::ICmp:
      return integer(instruction.getOperand(0)->getType());
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Mul:
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::URem:
    case Instruction::SRem:
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::AShr:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
      return integer(type);
    case Instruction::Trunc:
    case Instruction::ZExt:
    case Instruction::SExt:
    case Instruction::FPToUI:
    case Instruction::FPToSI:
    case Instruction::UIToFP:
    case Instruction::SIToFP:
    case Instruction::FPTrunc:
    case Instruction::FPExt:
      return {Kind::kConvert};
    case Instruction::GetElementPtr:
    case Instruction::PtrToInt:
    case Instruction::IntToPtr:
    case Instruction::AddrSpaceCast:
      return {Kind::kAddress};
    case Instruction::BitCast:
      return {type->isPtrOrPtrVectorTy() ? Kind::kAddress : Kind::kMove};
    case Instruction::Select:
    case Instruction::PHI:
    case Instruction::ExtractElement:
    case Instruction::InsertElement:
    case Instruction::ShuffleVector:
    case Instruction::ExtractValue:
    case Instruction::InsertValue:
    case Instruction::Freeze:
      return {Kind::kMove};
    case Instruction::Load:
      return {load_from(llvm::cast<llvm::LoadInst>(instruction).getPointerAddressSpace())};
    case Instruction::Store:
      return {store_to(llvm::cast<llvm::StoreInst>(instruction).getPointerAddressSpace())};
    case Instruction::Br:
    case Instruction::Switch:
    case Instruction::Ret:
    case Instruction::Unreachable:
      return {Kind::kControl};
    case Instruction::Call:
      return classify_call(llvm::cast<llvm::CallInst>(instruction));
    default:
      return {Kind::kOther};
  }
}

bool calls_defined_function(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  if (call == nullptr) return false;
  const llvm::Function* const callee = call->getCalledFunction();
  return callee != nullptr && !callee->isDeclaration();
}

}  // namespace tacho::plugin

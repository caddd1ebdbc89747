// Matrix benchmarks of AMD's CDNA GPUs: OpenCL C around the builtins of AMD's compiler for MFMA, the instructions by
// which the 64 lanes of a wave multiply two matrices that lie in their registers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "roofline/elements.h"
#include "roofline/measurement.h"

namespace tacho::roofline {

/// One instruction on one architecture. Lane l has k elements one after the other of row l % m of A and of column l % n
/// of B, beginning at k * (l / m) (k = operand_words() words' worth); its results are column l % n of D, rows as row_of().
struct MfmaKind {
  std::string_view architecture;  ///< "gfx90a"
  Element element;
  std::string instruction;  ///< in the assembler of that architecture
  std::string builtin;
  std::string_view operand;  ///< C type of A and B as the builtin takes them: "half 4" (a vector) or "float"
  uint32_t m, n, k;          ///< m = n
  double per_cycle;          ///< FLOP or operations a cycle and compute unit

  bool wide() const { return element == Element::kDouble; }  ///< accumulators are doubles
  uint32_t operand_words() const { return m * k * size_of(element) / 256; }
  uint32_t results() const { return m * n / 64; }  ///< accumulators of a lane
  /// Row of D of a lane's result r.
  uint32_t row_of(uint32_t lane, uint32_t r) const {
    return wide() ? 4 * r + lane / n : 4 * (64 / n) * (r / 4) + 4 * (lane / n) + r % 4;
  }
};
/// Those of catalog/amd/architectures.yaml; none for an architecture that has none there.
std::vector<MfmaKind> mfma_kinds(std::string_view architecture);
/// The architectures that have some, for people: "gfx908, gfx90a, gfx942 and gfx950".
std::string mfma_architectures();

inline constexpr const char* kMfmaEntry = "matrix_units";
inline constexpr uint32_t kMfmaGroup = 256, kMfmaTiles = 4, kMfmaUnroll = 4;
/// Work-items that start with operands of their own and leave results; items with the same number modulo this one do the
/// same and leave the same.
inline constexpr uint32_t kMfmaItems = 16 * kMfmaGroup;
inline constexpr uint32_t kMfmaTable = 1U << 14;  ///< operands in the table, a power of two

/// OpenCL C of a kernel (table, out, times, count): each wave adds the products of one A and kMfmaTiles Bs to as many
/// accumulators, count * kMfmaUnroll times. Operand o (0 = A) of item i is operand (i * (1 + kMfmaTiles) + o) % kMfmaTable of
/// the table; out has kMfmaTiles * results() accumulators an item; times has, for each work-group, the core's cycles that it took,
/// and the beginning and the end of it in ticks of a clock that all groups share. A compiler that does not know the builtin
/// is stopped by an #error line that begins with kMfmaUnknown.
std::string mfma_source(const MfmaKind& kind);
inline constexpr std::string_view kMfmaUnknown = "this compiler does not know ";

/// "gfx90a" out of a device's name ("gfx90a:sramecc+:xnack-"); empty where it holds none.
std::string gfx_of(std::string_view device_name);

}  // namespace tacho::roofline

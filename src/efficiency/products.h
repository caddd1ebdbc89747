// What GPUs can do at most (catalog/operators/products.yaml), and which of them a trace's devices are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "efficiency/inputs.h"

namespace tacho::efficiency {

struct Product {
  std::string name;                                        ///< "H100 SXM"
  std::vector<std::string> names;                          ///< words that a device's name has
  int64_t units = 0;                                       ///< multiprocessors or compute units
  double memory_least = 0, memory_most = 0;                ///< GB; 0 = not told
  std::map<Precision, double> matrix, vector, achievable;  ///< TFLOP/s, dense
  double bandwidth = 0;                                    ///< TB/s
  std::string host_link;                                   ///< "PCIe 5.0 x16"; "" = servers differ
  double host_rate = 0;                                    ///< GB/s of it in one direction
  std::string source;
};

/// A peak rate and where it comes from.
struct Peak {
  double rate = 0;          ///< FLOP/s or bytes/s
  bool achievable = false;  ///< published as reached, not the data sheet's
};

class Products {
 public:
  /// The built-in list.
  static Result<Products> load();
  static Result<Products> parse(std::string_view yaml, std::string_view file);

  /// By the device's name, else, where the name tells nothing ("AMD Radeon Graphics"), by units and GB of memory (0 =
  /// unknown); nullptr if none fits or several do.
  const Product* find(std::string_view device, int64_t units, double memory_gb) const;
  /// By what a user types: "MI300X", "h100 sxm". nullptr if none fits.
  const Product* named(std::string_view text) const;
  /// All names, for messages.
  std::string list() const;

 private:
  std::vector<Product> products_;
};

/// The most that a product computes in a precision: of matrices the achievable rate where it is published, else the
/// data sheet's; without one in that precision nullopt. A matrix product of 32 bits runs on the vector units where
/// there are no matrix cores for it.
std::optional<Peak> compute_peak(const Product& product, bool matrix, Precision precision);

}  // namespace tacho::efficiency

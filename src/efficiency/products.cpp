// Reads the list of products and finds devices in it (products.h).
#include "efficiency/products.h"

#include <algorithm>
#include <cctype>

#include "efficiency/embedded.h"
#include "metric/catalog/yaml/yaml_reader.h"

namespace tacho::efficiency {

namespace {

class ProductReader : metric::YamlReader {
 public:
  explicit ProductReader(std::string_view file) : YamlReader(file) {}

  Result<std::vector<Product>> read(std::string_view yaml) {
    return metric::guarded(file_, [&]() -> Result<std::vector<Product>> {
      TACHO_ASSIGN(const YAML::Node root, metric::load_document(yaml, file_));
      TACHO_ASSIGN(const Fields keys, fields(root, "the file", {"links", "products"}));
      std::vector<Product> products;
      if (const YAML::Node* const list = find(keys, "links"))
        for (const YAML::Node& node : items(*list)) {
          TACHO_ASSIGN(const Fields link, fields(node, "a link", {"link", "rate"}));
          if (find(link, "link") == nullptr || find(link, "rate") == nullptr)
            return fail_at(node, "a link has a name and a rate");
          TACHO_ASSIGN(const std::string name, text(*find(link, "link"), "link"));
          TACHO_ASSIGN(links_[name], rate(*find(link, "rate"), "rate"));
        }
      if (const YAML::Node* const list = find(keys, "products"))
        for (const YAML::Node& node : items(*list)) {
          TACHO_ASSIGN(Product product, read_product(node));
          products.push_back(std::move(product));
        }
      return products;
    });
  }

 private:
  Result<Product> read_product(const YAML::Node& node) {
    TACHO_ASSIGN(const Fields keys, fields(node, "a product",
                                           {"product", "names", "units", "memory", "matrix", "vector", "achievable",
                                            "bandwidth", "host-link", "source"}));
    for (const std::string_view key : {"product", "names", "units", "matrix", "vector", "bandwidth", "source"})
      if (find(keys, key) == nullptr) return fail_at(node, "a product lacks \"{}\"", key);
    Product product;
    TACHO_ASSIGN(product.name, text(*find(keys, "product"), "product"));
    TACHO_ASSIGN(product.names, words(*find(keys, "names"), "names"));
    TACHO_ASSIGN(product.units, number(*find(keys, "units"), "units"));
    TACHO_ASSIGN(product.source, text(*find(keys, "source"), "source"));
    TACHO_ASSIGN(product.bandwidth, rate(*find(keys, "bandwidth"), "bandwidth"));
    if (const YAML::Node* const link = find(keys, "host-link")) {
      TACHO_ASSIGN(product.host_link, text(*link, "host-link"));
      const auto known = links_.find(product.host_link);
      if (known == links_.end()) return fail_at(*link, "{} is none of the links", product.host_link);
      product.host_rate = known->second;
    }
    if (const YAML::Node* const memory = find(keys, "memory")) {
      const std::vector<YAML::Node> ends = items(*memory);
      if (ends.size() != 2) return fail_at(*memory, "memory needs the least and the most GB");
      TACHO_ASSIGN(product.memory_least, rate(ends[0], "memory"));
      TACHO_ASSIGN(product.memory_most, rate(ends[1], "memory"));
    }
    for (const auto& [key, rates] : {std::pair("matrix", &product.matrix), std::pair("vector", &product.vector),
                                     std::pair("achievable", &product.achievable)})
      if (const YAML::Node* const given = find(keys, key)) TACHO_TRY(read_rates(*given, key, *rates));
    return product;
  }

  Result<double> rate(const YAML::Node& node, std::string_view what) {
    double value = 0;
    if (!node.IsScalar() || !YAML::convert<double>::decode(node, value) || !(value > 0 && value < 1e9))
      return fail_at(node, "{} must be a number above 0", what);
    return value;
  }
  Status read_rates(const YAML::Node& node, std::string_view what, std::map<Precision, double>& rates) {
    TACHO_ASSIGN(const Fields given, fields(node, what));
    for (const auto& [name, value] : given) {
      const Precision precision = precision_named(name);
      if (precision == Precision::kUnknown) return fail_at(value, "{} is no precision", name);
      TACHO_ASSIGN(rates[precision], rate(value, name));
    }
    return {};
  }

  std::map<std::string, double> links_;
};

std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Whether `text` has `word`, not followed by a letter or digit: "MI250" is not in "MI250X".
bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool open = end == text.size() || std::isalnum(static_cast<unsigned char>(text[end])) == 0;
    const bool begins = at == 0 || std::isalnum(static_cast<unsigned char>(text[at - 1])) == 0;
    if (open && begins) return true;
  }
  return false;
}

}  // namespace

Result<Products> Products::parse(std::string_view yaml, std::string_view file) {
  Products out;
  TACHO_ASSIGN(out.products_, ProductReader(file).read(yaml));
  return out;
}

Result<Products> Products::load() {
  return parse(kProducts, "catalog/operators/products.yaml");
}

const Product* Products::find(std::string_view device, int64_t units, double memory_gb) const {
  for (const Product& product : products_)
    for (const std::string& name : product.names)
      if (has_word(device, name)) return &product;
  const Product* found = nullptr;
  for (const Product& product : products_) {
    if (units == 0 || memory_gb == 0 || product.units != units || product.memory_most == 0) continue;
    if (memory_gb < product.memory_least || memory_gb > product.memory_most) continue;
    if (found != nullptr) return nullptr;
    found = &product;
  }
  return found;
}

const Product* Products::named(std::string_view text) const {
  const std::string asked = plain(text);
  if (asked.empty()) return nullptr;
  const Product* found = nullptr;
  for (const Product& product : products_) {
    if (plain(product.name) == asked) return &product;
    for (const std::string& name : product.names)
      if (plain(name) == asked) return &product;
    if (found == nullptr && plain(product.name).find(asked) != std::string::npos) found = &product;
  }
  return found;
}

std::string Products::list() const {
  std::string out;
  for (const Product& product : products_) out += (out.empty() ? "" : ", ") + product.name;
  return out;
}

std::optional<Peak> compute_peak(const Product& product, bool matrix, Precision precision) {
  const auto of = [precision](const std::map<Precision, double>& rates, bool achievable) -> std::optional<Peak> {
    const auto found = rates.find(precision);
    if (found == rates.end()) return std::nullopt;
    return Peak{found->second * 1e12, achievable};
  };
  if (matrix)
    for (const auto& [rates, achievable] : {std::pair(&product.achievable, true), std::pair(&product.matrix, false)})
      if (const auto peak = of(*rates, achievable)) return peak;
  if (const auto peak = of(product.vector, false)) return peak;
  // Elementwise work in shorter types is done in 32 bits, at least as fast.
  if (!matrix && precision != Precision::kF64)
    if (const auto found = product.vector.find(Precision::kF32); found != product.vector.end())
      return Peak{found->second * 1e12, false};
  return std::nullopt;
}

}  // namespace tacho::efficiency

// Reads models from YAML (models.h).
#include <array>

#include "efficiency/embedded.h"
#include "efficiency/models.h"
#include "metric/catalog/files.h"
#include "metric/catalog/yaml/yaml_reader.h"

namespace tacho::efficiency {

namespace {

class ModelReader : metric::YamlReader {
 public:
  explicit ModelReader(std::string_view file) : YamlReader(file) {}

  Result<std::vector<Model>> read(std::string_view yaml) {
    return metric::guarded(file_, [&]() -> Result<std::vector<Model>> {
      TACHO_ASSIGN(const YAML::Node root, metric::load_document(yaml, file_));
      TACHO_ASSIGN(const Fields keys, fields(root, "the file", {"sources", "models"}));
      std::vector<Model> models;
      if (const YAML::Node* const list = find(keys, "models"))
        for (const YAML::Node& node : items(*list)) {
          TACHO_ASSIGN(Model model, read_model(node));
          models.push_back(std::move(model));
        }
      return models;
    });
  }

 private:
  Result<ModelFormula> formula(const YAML::Node& node, std::string_view what) {
    TACHO_ASSIGN(std::string written, text(node, what));
    auto parsed = ModelFormula::parse(metric::one_line(written));
    if (!parsed) return fail_at(node, "{}: {}", what, parsed.error().message);
    return std::move(*parsed);
  }

  Result<Model> read_model(const YAML::Node& node) {
    TACHO_ASSIGN(const Fields keys, fields(node, "a model",
                                           {"operators", "engine", "type", "let", "fits", "window", "flops", "bytes",
                                            "bytes-most", "output", "same-type", "lists", "source"}));
    for (const std::string_view key : {"operators", "engine", "type", "flops", "bytes", "source"})
      if (find(keys, key) == nullptr) return fail_at(node, "a model lacks \"{}\"", key);
    Model model;
    TACHO_ASSIGN(model.operators, words(*find(keys, "operators"), "operators"));
    TACHO_TRY(choose_of(keys, "engine", model.matrix, {{"matrix", true}, {"vector", false}}));
    TACHO_ASSIGN(const int type, number(*find(keys, "type"), "type"));
    model.type = static_cast<size_t>(type);
    TACHO_TRY(choose_of(keys, "same-type", model.same_type, {{"true", true}, {"false", false}}));
    TACHO_TRY(choose_of(keys, "lists", model.lists, {{"true", true}, {"false", false}}));
    TACHO_ASSIGN(model.source, text(*find(keys, "source"), "source"));
    if (const YAML::Node* const window = find(keys, "window")) TACHO_TRY(read_window(*window, model.window.emplace()));
    if (const YAML::Node* const names = find(keys, "let"))
      for (const YAML::Node& entry : items(*names)) {
        TACHO_ASSIGN(const Fields pairs, fields(entry, "an entry of let"));
        for (const auto& [name, value] : pairs) {
          TACHO_ASSIGN(ModelFormula parsed, formula(value, name));
          model.names.emplace_back(name, std::move(parsed));
        }
      }
    TACHO_ASSIGN(model.flops, formula(*find(keys, "flops"), "flops"));
    TACHO_ASSIGN(model.bytes, formula(*find(keys, "bytes"), "bytes"));
    if (const YAML::Node* const fits = find(keys, "fits")) {
      TACHO_ASSIGN(model.fits, formula(*fits, "fits"));
    }
    if (const YAML::Node* const most = find(keys, "bytes-most")) {
      TACHO_ASSIGN(model.bytes_most, formula(*most, "bytes-most"));
    }
    if (const YAML::Node* const output = find(keys, "output")) {
      for (const YAML::Node& entry : items(*output)) {
        TACHO_ASSIGN(ModelFormula parsed, formula(entry, "output"));
        model.output.push_back(std::move(parsed));
      }
      if (model.output.size() != CallWork().output.size())
        return fail_at(*output, "output needs {} formulas: rows, columns, how many and the length of the sums",
                       CallWork().output.size());
    }
    return model;
  }

  Status read_window(const YAML::Node& node, ConvolutionInputs& window) {
    const std::array<std::pair<std::string_view, int ConvolutionInputs::*>, 7> inputs = {
        {{"input", &ConvolutionInputs::input},
         {"weight", &ConvolutionInputs::weight},
         {"padding", &ConvolutionInputs::padding},
         {"stride", &ConvolutionInputs::stride},
         {"dilation", &ConvolutionInputs::dilation},
         {"transposed", &ConvolutionInputs::transposed},
         {"output-padding", &ConvolutionInputs::output_padding}}};
    Words known;
    for (const auto& [name, member] : inputs) known.emplace(name);
    TACHO_ASSIGN(const Fields keys, fields(node, "window", known));
    for (const auto& [name, member] : inputs)
      if (const YAML::Node* const value = find(keys, name)) {
        if (name == "transposed" && value->Scalar() == "true") {
          window.always_transposed = true;
          continue;
        }
        TACHO_ASSIGN(window.*member, number(*value, name));
      }
    return {};
  }
};

}  // namespace

Result<Models> Models::parse(std::string_view yaml, std::string_view file) {
  TACHO_ASSIGN(std::vector<Model> models, ModelReader(file).read(yaml));
  Models out;
  out.add(std::move(models));
  return out;
}

Result<Models> Models::load(std::span<const std::string> config_dirs) {
  Models out;
  for (const std::string& folder : config_dirs) {
    TACHO_ASSIGN(const std::vector<metric::CatalogFile> files, metric::read_catalog_folder(folder));
    for (const metric::CatalogFile& file : files)
      if (file.name.ends_with("operators.yaml")) {
        TACHO_ASSIGN(std::vector<Model> models, ModelReader(file.name).read(file.text));
        out.add(std::move(models));
      }
  }
  TACHO_ASSIGN(std::vector<Model> models, ModelReader("catalog/operators/models.yaml").read(kOperatorModels));
  out.add(std::move(models));
  return out;
}

}  // namespace tacho::efficiency

// Writers on top of analysis/stacks (stacks.h).
#include "format/stacks/stacks.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "base/files/output_file.h"
#include "base/text/json_writer.h"
#include "report/table.h"
#include "vendor/collective_kernels.h"

namespace tacho::format {

extern const std::string_view kFlamePage;

namespace {

Result<analysis::StackTree> tree_of(const trace::Trace& trace, const ExportOptions& options, bool lines) {
  analysis::StackOptions wanted;
  wanted.lines = lines;
  if (options.process != 0) wanted.process = options.process;
  TACHO_ASSIGN(analysis::StackTree tree, analysis::stack_tree(trace, wanted));
  if (tree.host_ns == 0 && tree.samples == 0 && tree.gpu_ns == 0)
    return fail("{} has no call stacks; record them with tacho sys sample, or tacho trace --sampler timer",
                trace.path());
  options.remark_forgotten(tree.forgotten);
  return tree;
}

// A file of what `fill` writes piece by piece: with many names it is larger than the memory that a command may use.
template <typename Fill>
Status write_file(const std::string& path, bool overwrite, std::vector<std::string>& written, Fill fill) {
  TACHO_ASSIGN(OutputFile file, OutputFile::create(path, overwrite));
  fill([&](std::string_view text) { file.write(text); });
  TACHO_TRY(file.commit());
  written.push_back(path);
  return {};
}

// JSON inside a <script> element must contain nothing that looks like the element's end.
void append_script_safe(std::string& out, std::string_view json) {
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
}

}  // namespace

Status write_folded(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                    std::vector<std::string>& written) {
  TACHO_ASSIGN(const analysis::StackTree tree, tree_of(trace, options, true));
  if (is_standard_output(target.file)) {
    // Standard output has room for one of the two files: the host's, or the devices' if nothing was sampled.
    const bool host = tree.host_ns > 0 || tree.gpu_ns == 0;
    if (host && tree.gpu_ns > 0)
      options.remark("standard output holds host time alone; -o FILE also writes device time, as FILE.gpu.folded");
    return write_file(target.file, options.overwrite, written,
                      [&](const analysis::PutText& put) { analysis::folded_stacks(tree, !host, put); });
  }
  if (tree.gpu_ns == 0)
    return write_file(target.file, options.overwrite, written,
                      [&](const analysis::PutText& put) { analysis::folded_stacks(tree, false, put); });
  auto gpu = std::filesystem::path(target.file);
  gpu.replace_filename(gpu.stem().string() + ".gpu" + gpu.extension().string());
  std::vector<OutputFile> files;  // both or none
  for (const bool device : {false, true}) {
    const std::string path = device ? gpu.string() : target.file;
    TACHO_ASSIGN(OutputFile file, OutputFile::create(path, options.overwrite));
    analysis::folded_stacks(tree, device, [&](std::string_view text) { file.write(text); });
    files.push_back(std::move(file));
  }
  TACHO_TRY(OutputFile::commit_all(files));
  written.insert(written.end(), {target.file, gpu.string()});
  return {};
}

Status write_speedscope(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                        std::vector<std::string>& written) {
  TACHO_ASSIGN(const analysis::StackTree tree, tree_of(trace, options, true));
  const auto command = trace.property(event::Table::kEnd, 0, "command");
  return write_file(target.file, options.overwrite, written, [&](const analysis::PutText& put) {
    analysis::speedscope_json(tree, command ? *command : std::string_view("tacho"), put);
  });
}

void put_flame_run(JsonWriter& json, const FlameInput& input) {
  const analysis::StackTree& tree = *input.tree;
  json.begin_object();
  json.key("name").value(input.name).key("command").value(input.command);
  json.key("samples").value(tree.samples).key("wall").value(tree.wall).key("recorded").value(tree.recorded);
  json.key("hostNs").value(tree.host_ns).key("gpuNs").value(tree.gpu_ns);
  json.key("gpuExactNs").value(tree.gpu_exact_ns).key("gpuNearNs").value(tree.gpu_near_ns);
  // Columns instead of objects: a quarter of the size.
  const auto column = [&](const char* name, auto value) {
    json.key(name).begin_array();
    for (const analysis::StackFrame& frame : tree.frames) value(frame);
    json.end_array();
  };
  json.key("frames").begin_object();
  column("name", [&](const auto& frame) { json.value(frame.name); });
  column("part", [&](const auto& frame) { json.value(analysis::to_string(frame.part)); });
  column("file", [&](const auto& frame) { json.value(frame.file.empty() ? frame.module : frame.file); });
  column("line", [&](const auto& frame) { json.value(frame.line); });
  column("interpreter", [&](const auto& frame) { json.value(frame.interpreter); });
  const auto collective = [](const analysis::StackFrame& frame) {
    return frame.part == analysis::StackPart::kDevice && vendor::is_collective_kernel(frame.name);
  };
  if (std::any_of(tree.frames.begin(), tree.frames.end(), collective))
    column("collective", [&](const auto& frame) { json.value(collective(frame)); });
  if (input.kernels != nullptr) {
    json.key("kernel").begin_array();
    for (const uint32_t kernel : *input.kernels) json.value(kernel);
    json.end_array();
  }
  json.end_object();
  const auto numbers = [&](const char* name, auto value) {
    json.key(name).begin_array();
    for (const analysis::StackNode& node : tree.nodes) json.value(static_cast<int64_t>(value(node)));
    json.end_array();
  };
  json.key("nodes").begin_object();
  numbers("parent", [](const auto& node) { return node.parent; });
  numbers("frame", [](const auto& node) { return node.frame; });
  numbers("host", [](const auto& node) { return node.host_ns; });
  numbers("gpu", [](const auto& node) { return node.gpu_ns; });
  numbers("samples", [](const auto& node) { return node.samples; });
  numbers("launches", [](const auto& node) { return node.launches; });
  json.end_object();
  json.end_object();
}

std::string flame_page(const FlameInput& run, const FlameInput* other) {
  std::string data;
  JsonWriter json(data);
  json.begin_object().key("runs").begin_array();
  put_flame_run(json, run);
  if (other != nullptr) put_flame_run(json, *other);
  json.end_array().end_object();
  std::string page;
  page.reserve(kFlamePage.size() + data.size() + 1024);
  constexpr std::string_view kPlace = "/*TACHO_DATA*/null";
  const size_t at = kFlamePage.find(kPlace);
  page.append(kFlamePage.substr(0, at));
  append_script_safe(page, data);
  page.append(kFlamePage.substr(at + kPlace.size()));
  return page;
}

}  // namespace tacho::format

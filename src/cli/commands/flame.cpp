// `tacho flame FILE -o x.html`: a flame graph of host and device time as one self-contained page.
#include <filesystem>

#include "base/files/output_file.h"
#include "cli/command.h"
#include "cli/files/export_trace.h"
#include "cli/files/open_trace.h"
#include "cli/shared/command_line.h"
#include "format/format.h"
#include "format/stacks/stacks.h"

namespace tacho::cli {

std::string attribution_sentence(const analysis::StackTree& tree);

namespace {

struct Loaded {
  std::shared_ptr<const trace::Trace> trace;
  analysis::StackTree tree;
};

Result<Loaded> load(const std::string& file, const analysis::StackOptions& options) {
  Loaded loaded;
  TACHO_ASSIGN(loaded.trace, open_events(file));
  TACHO_ASSIGN(loaded.tree, analysis::stack_tree(*loaded.trace, options));
  if (loaded.tree.host_ns == 0 && loaded.tree.samples == 0 && loaded.tree.gpu_ns == 0)
    return fail("{} has no call stacks; record them with tacho sys sample, or tacho trace --sampler timer", file);
  return loaded;
}

format::FlameInput input_of(const Loaded& loaded, const std::string& file) {
  const auto command = loaded.trace->property(event::Table::kEnd, 0, "command");
  return {std::filesystem::path(file).filename().string(), std::string(command.value_or("")), &loaded.tree};
}

}  // namespace

int run_flame(int argc, char** argv) {
  CommandOptions app("A flame graph of call stacks: host time, device time under the stacks that launched it, or both.",
                     "tacho flame");
  app.footer("Examples:\n"
             "  tacho sys sample -o app.tacho -- python3 train.py && tacho flame app.tacho -o app.html\n"
             "  tacho flame after.tacho -b before.tacho -o diff.html      red: more time than before, blue: less\n"
             "For other viewers: tacho export app.tacho -f folded or -f speedscope");
  std::string file, other, output, by_text;
  bool overwrite = false;
  analysis::StackOptions options;
  app.add_option("file", file, "trace").required();
  app.add_option("-o,--output", output, "page to write (default: the trace's name with .html, in the current folder)");
  app.add_option("-b,--base", other, "compare with this trace");
  app.add_flag("--overwrite", overwrite, "replace an existing page");
  app.add_flag("--threads", options.threads, "tell threads apart");
  app.add_option(
      "--by", by_text,
      "function or line: what is one frame (default: line; with -b function, so that frames of two builds match that "
      "differ in lines, template arguments or addresses)");
  bool no_lines = false;
  app.add_flag("--no-lines", no_lines, "the same as --by function");
  app.add_flag("--startup", options.startup, "keep what lies outside of the outermost Python frame");
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  auto by = other.empty() && !no_lines ? analysis::FramesBy::kLine : analysis::FramesBy::kFunction;
  if (!by_text.empty()) {
    if (no_lines && by_text != "function") return complain(kBadInput, "--no-lines goes with --by function alone");
    const auto parsed = analysis::parse_frames_by(by_text);
    if (!parsed) return complain(kBadInput, parsed.error().message);
    by = *parsed;
  }
  options.lines = by == analysis::FramesBy::kLine;
  auto run = load(file, options);
  if (!run) return complain(kBadInput, run.error().message);
  Loaded base;
  if (!other.empty()) {
    auto loaded = load(other, options);
    if (!loaded) return complain(kBadInput, loaded.error().message);
    base = std::move(*loaded);
    if (by == analysis::FramesBy::kFunction) {
      std::vector<analysis::StackTree> trees;
      trees.push_back(std::move(run->tree));
      trees.push_back(std::move(base.tree));
      analysis::match_functions(trees);
      run->tree = std::move(trees[0]);
      base.tree = std::move(trees[1]);
    }
  }
  if (output.empty()) {
    output = stem_of(file) + ".html";
    if (!overwrite) output = free_name(output);
  }
  const format::FlameInput first = input_of(*run, file);
  format::FlameInput second;
  if (!other.empty()) second = input_of(base, other);
  const std::string page = format::flame_page(first, other.empty() ? nullptr : &second);
  auto target = OutputFile::create(output, overwrite);
  if (!target) return complain(kBadInput, target.error().message);
  target->write(page);
  if (const Status done = target->commit(); !done) return complain(kBadInput, done.error().message);
  print_outputs({&output, 1});
  const analysis::StackTree& tree = run->tree;
  if (tree.host_ns == 0 && tree.samples == 0 && tree.gpu_exact_ns == 0 && tree.gpu_near_ns == 0)
    complain(kOk, fmt::format("{} has no call stacks: the page shows device time alone; record stacks with tacho sys "
                              "sample, or tacho trace --sampler timer",
                              file));
  else if (const std::string sentence = attribution_sentence(tree); !sentence.empty())
    complain(kOk, sentence);
  return kOk;
}

}  // namespace tacho::cli

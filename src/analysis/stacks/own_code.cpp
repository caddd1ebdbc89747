// The filter of call stacks to the user's code (own_code.h).
#include "analysis/stacks/own_code.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>

#include "base/saturating.h"
#include "vendor/definitions.h"

namespace tacho::analysis {
namespace {

bool host_code(StackPart part) {
  return part == StackPart::kNative || part == StackPart::kPython || part == StackPart::kTruncated;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view base_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 = 0
}

bool digit(char c) {
  return c >= '0' && c <= '9';
}

// "python3.11", "python", "pypy3": the interpreter's executable.
bool interpreter(std::string_view name) {
  for (const std::string_view known : {"python", "pypy"})
    if (name.starts_with(known)) return name.find_first_not_of("0123456789.t", known.size()) == std::string_view::npos;
  return false;
}

// "/lib/python3.11/json/decoder.py", "/lib/python3.11/lib-dynload/_json.so"
bool python_library(std::string_view path) {
  if (contains(path, "/site-packages/") || contains(path, "/dist-packages/")) return true;
  for (size_t at = path.find("/python3"); at != std::string_view::npos; at = path.find("/python3", at + 1)) {
    size_t end = at + 8;
    while (end < path.size() && (digit(path[end]) || path[end] == '.' || path[end] == 't')) ++end;
    const std::string_view before = path.substr(0, at);
    if (end < path.size() && path[end] == '/' && (before.ends_with("/lib") || before.ends_with("/lib64"))) return true;
  }
  return false;
}

// torch.profiler names files as seen from the folder of sys.path that they lie in: "torch/nn/modules/linear.py",
// "threading.py". Only the names of well-known packages tell a library then.
bool known_package(std::string_view path) {
  if (path.starts_with('/')) return false;
  const std::string_view top = path.substr(0, path.find('/'));
  const bool package = top.size() < path.size();
  for (const std::string_view known :
       {"torch",           "torchgen",   "functorch",  "triton",    "numpy",     "scipy",
        "pandas",          "tqdm",       "accelerate", "deepspeed", "lightning", "pytorch_lightning",
        "multiprocessing", "concurrent", "asyncio",    "importlib", "logging",   "collections",
        "unittest",        "ctypes",     "email",      "http",      "urllib"})
    if (package && top == known) return true;
  for (const std::string_view known :
       {"threading.py", "contextlib.py",  "runpy.py",   "queue.py",    "socket.py",    "selectors.py", "subprocess.py",
        "functools.py", "_weakrefset.py", "weakref.py", "tempfile.py", "traceback.py", "inspect.py",   "dataclasses.py",
        "enum.py",      "abc.py",         "copy.py",    "copyreg.py",  "pickle.py",    "typing.py",    "warnings.py"})
    if (!package && path == known) return true;
  return false;
}

// Shells, compilers and linkers that a program starts: "ld", "x86_64-linux-gnu-ld.bfd".
bool tool(std::string_view path) {
  if (!path.starts_with("/usr/bin/") && !path.starts_with("/bin/")) return false;
  const std::string_view name = base_of(path);
  for (const std::string_view known :
       {"sh", "bash", "dash", "zsh",   "ld",   "ld.bfd", "ld.gold", "ld.lld", "lld",   "collect2",
        "as", "gcc",  "g++",  "clang", "perl", "env",    "sed",     "grep",   "uname", "cut"})
    if (name == known ||
        (name.size() > known.size() && name.ends_with(known) && name[name.size() - known.size() - 1] == '-'))
      return true;
  return false;
}

bool system_file(std::string_view path) {
  for (const std::string_view folder : {"/usr/lib", "/lib/", "/lib64/", "/lib32/", "/usr/libexec/", "/usr/include/",
                                        "/usr/local/include/", "/nix/store/", "/opt/intel/"})
    if (path.starts_with(folder)) return true;
  for (const std::string_view folder : {"/conda/lib/", "/miniconda3/", "/anaconda3/", "/miniforge3/", "/mambaforge/"})
    if (contains(path, folder)) return true;
  return vendor::is_vendor_software(path);
}

}  // namespace

bool own_frame(const StackFrame& frame) {
  if (frame.part == StackPart::kPython) {
    if (frame.file.empty()) return false;
    if (frame.file.starts_with("<"))
      return frame.file == "<stdin>" || frame.file == "<string>" || frame.file.starts_with("<ipython-input");
    return !python_library(frame.file) && !known_package(frame.file);
  }
  if (frame.part != StackPart::kNative) return false;
  const std::string_view module = frame.module, name = base_of(module);
  // "[vdso]", code made at run time, the entry that the linker adds
  if (module.empty() || module.starts_with("[") || frame.name == "_start") return false;
  if (interpreter(name) || name.starts_with("libpython") || name.starts_with("libtacho") ||
      name.starts_with("ld-linux"))
    return false;
  if (system_file(module) || python_library(module) || tool(module)) return false;
  // A header's function in the user's program: the line that calls it is the one to look at.
  return frame.file.empty() || !system_file(frame.file);
}

OwnShare own_share(const StackTree& tree) {
  std::vector<uint8_t> under(tree.nodes.size());
  OwnShare share;
  for (size_t i = 1; i < tree.nodes.size(); ++i) {
    const StackNode& node = tree.nodes[i];
    under[i] = static_cast<uint8_t>(under[node.parent] != 0 || own_frame(tree.frames[node.frame]));
    if (under[i] == 0) continue;
    add_saturating(share.host_ns, node.host_ns);
    add_saturating(share.gpu_ns, node.gpu_ns);
  }
  return share;
}

StackTree own_code(StackTree tree) {
  const OwnShare share = own_share(tree);
  if (share.host_ns == 0 && share.gpu_ns == 0) return tree;
  // The frames stay where they are: there may be millions.
  const std::deque<StackNode> nodes = std::exchange(tree.nodes, {StackNode{}});
  StackTree& out = tree;
  const auto other = static_cast<uint32_t>(out.frames.size());
  out.frames.push_back({StackPart::kUnknown, "[other code]", "", 0, ""});
  std::unordered_map<uint64_t, uint32_t> child_of;
  const auto child = [&](uint32_t parent, uint32_t frame) {
    const auto [at, fresh] =
        child_of.try_emplace(static_cast<uint64_t>(parent) << 32 | frame, static_cast<uint32_t>(out.nodes.size()));
    if (fresh) out.nodes.push_back({parent, frame, 0, 0, 0, 0});
    return at->second;
  };
  std::vector<uint8_t> own(tree.frames.size());
  for (size_t i = 0; i < tree.frames.size(); ++i) own[i] = static_cast<uint8_t>(own_frame(tree.frames[i]));
  std::vector<uint32_t> place(nodes.size(), 0);
  for (size_t i = 1; i < nodes.size(); ++i) {
    const StackNode& node = nodes[i];
    const StackPart part = tree.frames[node.frame].part;
    uint32_t parent = place[node.parent];
    // Drop the callers of the user's code.
    const uint32_t level = out.nodes[parent].frame == other ? out.nodes[parent].parent : parent;
    if (!host_code(part)) {
      place[i] = child(parent, node.frame);
    } else if (own[node.frame] != 0) {
      place[i] = child(level, node.frame);
    } else {
      // Ranges and calls stand between a function and what it calls.
      uint32_t caller = parent;
      while (out.frames[out.nodes[caller].frame].part == StackPart::kMarker ||
             out.frames[out.nodes[caller].frame].part == StackPart::kApi)
        caller = out.nodes[caller].parent;
      const StackPart above = out.frames[out.nodes[caller].frame].part;
      const bool own_above = above == StackPart::kNative || above == StackPart::kPython;
      place[i] = own_above || parent != level ? parent : child(parent, other);
    }
    StackNode& to = out.nodes[place[i]];
    add_saturating(to.host_ns, node.host_ns);
    to.samples += node.samples;
    add_saturating(to.gpu_ns, node.gpu_ns);
    to.launches += node.launches;
  }
  return tree;
}

}  // namespace tacho::analysis

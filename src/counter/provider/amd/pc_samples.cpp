// Reads PC samples of AMD GPUs (pc_samples.h).
#include "counter/provider/amd/pc_samples.h"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <tuple>

#include "base/format.h"
#include "base/text/demangle.h"
#include "base/text/how_many.h"
#include "decode/records/module.h"
#include "event/spool/launch_filter.h"
#include "vendor/amd/sdk_sampling.h"

namespace tacho::counter::amd {

namespace fs = std::filesystem;
namespace sdk = vendor::sdk;

namespace {

std::string bytes_of_file(const std::string& path, uint64_t offset = 0, uint64_t size = 0) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  std::ostringstream text;
  text << file.rdbuf();
  std::string bytes = file ? std::move(text).str() : std::string();
  if (size != 0 && size < bytes.size()) bytes.resize(size);
  return bytes;
}

template <typename Fixed>
bool take_fixed(std::string_view payload, Fixed& fixed, std::string* text = nullptr) {
  if (payload.size() < sizeof fixed) return false;
  std::memcpy(&fixed, payload.data(), sizeof fixed);
  if constexpr (requires { fixed.text_bytes; }) {
    if (payload.size() - sizeof fixed < fixed.text_bytes) return false;
    if (text != nullptr) text->assign(payload.substr(sizeof fixed, fixed.text_bytes));
  }
  return true;
}

bool take_own(uint32_t kind, std::string_view payload, SampledProcess& out) {
  std::string text;
  switch (static_cast<sdk::Spooled>(kind)) {
    case sdk::Spooled::kRun: {
      sdk::SpooledRun run;
      if (!take_fixed(payload, run, &text)) return false;
      out.version = run.version;
      out.pid = run.pid;
      out.stochastic = run.method == static_cast<int32_t>(sdk::SamplingMethod::kStochastic);
      return true;
    }
    case sdk::Spooled::kAgent: {
      sdk::SpooledAgent agent;
      if (!take_fixed(payload, agent, &text)) return false;
      out.gpus[agent.id] = {agent.gpu, text};
      return true;
    }
    case sdk::Spooled::kCodeObject: {
      sdk::SpooledCode code;
      if (!take_fixed(payload, code, &text)) return false;
      out.code[code.id] = {code.base, code.agent, code.delta, code.in_memory != 0, text};
      return true;
    }
    case sdk::Spooled::kKernel: {
      sdk::SpooledKernel kernel;
      if (!take_fixed(payload, kernel, &text)) return false;
      if (text.ends_with(".kd")) text.resize(text.size() - 3);
      out.kernels[kernel.id] = {kernel.code_object,  kernel.object, kernel.entry, kernel.vector,
                                kernel.accumulation, kernel.scalar, text};
      return true;
    }
    case sdk::Spooled::kDropped: {
      uint64_t more = 0;
      if (!take_fixed(payload, more)) return false;
      out.dropped += more;
      return true;
    }
  }
  ++out.unknown;
  return true;
}

void take_dispatch(const std::byte* at, size_t size, SampledProcess& out) {
  namespace f = sdk::dispatch;
  if (size < f::kLeast) {
    ++out.unknown;
    return;
  }
  SampledRun::Ran& ran = out.dispatches.emplace_back();
  ran.id = f::number.read(at, size);
  ran.kernel = f::kernel.read(at, size);
  ran.correlation = sdk::any::correlation.read(at, size);
  ObservedDispatch& d = ran.dispatch;
  d.pid = out.pid;
  d.tid = static_cast<uint32_t>(f::thread.read(at, size));
  d.queue = static_cast<int64_t>(f::queue.read(at, size));
  const auto gpu = out.gpus.find(f::agent.read(at, size));
  d.gpu = gpu != out.gpus.end() ? gpu->second.number : 0;
  d.grid = {f::grid_x.read(at, size), f::grid_y.read(at, size), f::grid_z.read(at, size)};
  d.workgroup = {f::group_x.read(at, size), f::group_y.read(at, size), f::group_z.read(at, size)};
  d.lds = f::group_bytes.read(at, size);
  d.scratch = f::private_bytes.read(at, size);
  d.start = static_cast<int64_t>(f::start.read(at, size));
  d.end = static_cast<int64_t>(f::end.read(at, size));
}

void take_sample(uint32_t kind, const std::byte* at, size_t size, SampledProcess& out) {
  const sdk::SampleKinds kinds = sdk::sample_kinds(out.version);
  if (kinds.invalid != 0 && kind == kinds.invalid) {
    ++out.invalid;
    return;
  }
  const bool stochastic = kind == kinds.stochastic;
  const sdk::Sample& f = stochastic ? sdk::kStochasticSample : sdk::kHostTrapSample;
  if ((!stochastic && kind != kinds.host_trap) || size < f.least) {
    ++out.unknown;
    return;
  }
  SampledRun::Sample& sample = out.samples.emplace_back();
  sample.time = f.timestamp.read(at, size);
  sample.exec_mask = f.exec_mask.read(at, size);
  sample.dispatch = f.dispatch.read(at, size);
  sample.correlation = f.correlation.read(at, size);
  sample.code_object = f.code_object.read(at, size);
  sample.offset = f.offset.read(at, size);
  sample.hardware = f.hardware.read(at, size);
  sample.group[0] = f.group_x.read(at, size);
  sample.group[1] = f.group_y.read(at, size);
  sample.group[2] = f.group_z.read(at, size);
  if (!stochastic) return;
  const uint8_t issued = sdk::stochastic::issued.read(at, size);
  sample.issued = (issued & 1) != 0;
  sample.type = issued >> 1 & 31;
  sample.waves = sdk::stochastic::waves.read(at, size);
  sample.snapshot = sdk::stochastic::snapshot.read(at, size);
}

// Disassembly

// AMD's code object manager (amd_comgr.h).
class Comgr {
 public:
  using Handle = uint64_t;  // a struct of one word
  using ReadMemory = uint64_t(uint64_t from, char* to, uint64_t size, void* user);

  static const Comgr* find() {
    static const Comgr found;
    return found.step_ != nullptr ? &found : nullptr;
  }

  /// The instruction at `address` of a code object for `architecture`; "" if there is none.
  std::string instruction(const CodeImage& image, const std::string& architecture, uint64_t address) const {
    Request request{&image, {}};
    Handle info = 0;
    const std::string isa = "amdgcn-amd-amdhsa--" + architecture;
    const auto read = [](uint64_t from, char* to, uint64_t size, void* user) -> uint64_t {
      const std::string_view bytes = static_cast<Request*>(user)->image->at(from, size);
      std::memcpy(to, bytes.data(), bytes.size());
      return bytes.size();
    };
    const auto print = [](const char* text, void* user) { static_cast<Request*>(user)->text = text; };
    const auto annotate = [](uint64_t, void*) {};
    if (create_(isa.c_str(), read, print, annotate, &info) != 0) return {};
    uint64_t size = 0;
    const bool done = step_(info, address, &request, &size) == 0;
    destroy_(info);
    const size_t first = request.text.find_first_not_of(" \t");
    return done && first != std::string::npos ? request.text.substr(first) : std::string();
  }

 private:
  struct Request {
    const CodeImage* image;
    std::string text;
  };
  Comgr() {
    std::vector<std::string> folders = {""};
    if (const char* const rocm = std::getenv("ROCM_PATH"); rocm != nullptr)
      folders.push_back(std::string(rocm) + "/lib/");
    folders.emplace_back("/opt/rocm/lib/");
    void* library = nullptr;
    for (const std::string& folder : folders)
      for (const char* const name : {"libamd_comgr.so.3", "libamd_comgr.so.2", "libamd_comgr.so"})
        if (library == nullptr) library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    create_ = reinterpret_cast<Create>(dlsym(library, "amd_comgr_create_disassembly_info"));
    destroy_ = reinterpret_cast<Destroy>(dlsym(library, "amd_comgr_destroy_disassembly_info"));
    if (create_ != nullptr && destroy_ != nullptr)
      step_ = reinterpret_cast<Step>(dlsym(library, "amd_comgr_disassemble_instruction"));
  }
  using Create = int (*)(const char* isa, ReadMemory*, void (*)(const char*, void*), void (*)(uint64_t, void*),
                         Handle*);
  using Destroy = int (*)(Handle);
  using Step = int (*)(Handle, uint64_t address, void* user, uint64_t* size);
  Create create_ = nullptr;
  Destroy destroy_ = nullptr;
  Step step_ = nullptr;
};

// A code object of a process: its bytes, and its file for source lines.
struct LoadedCode {
  CodeImage image{""};
  std::unique_ptr<decode::CodeModule> module;
  std::string architecture;
};

LoadedCode load_code(const std::string& folder, const std::string& process, uint64_t id, const SampledProcess& of) {
  LoadedCode loaded;
  const SampledProcess::Code& code = of.code.at(id);
  if (const auto gpu = of.gpus.find(code.agent); gpu != of.gpus.end())
    loaded.architecture = gpu->second.architecture;
  else if (!of.gpus.empty())
    loaded.architecture = of.gpus.begin()->second.architecture;
  std::string path = fmt::format("{}/{}.{}.code", folder, process, id), bytes;
  if (code.in_memory) {
    bytes = bytes_of_file(path);
  } else {
    std::string file;
    uint64_t offset = 0, size = 0;
    if (parse_code_uri(code.uri, file, offset, size)) bytes = bytes_of_file(file, offset, size);
    std::ofstream(path, std::ios::binary) << bytes;  // the spool's folder goes away with the run
  }
  loaded.module = std::make_unique<decode::CodeModule>(path, "");
  loaded.image = CodeImage(std::move(bytes));
  return loaded;
}

// Adds a process's numbers behind those of the processes before it, so that they stay apart.
class Merger {
 public:
  Merger(const std::string& folder, const Filter& filter, SampledRun& run)
      : folder_(folder), lines_(filter.lines()), filter_(lines_), run_(run) {}

  void add(const std::string& process, SampledProcess&& of) {
    std::map<uint64_t, LoadedCode> loaded;
    std::map<std::pair<uint64_t, uint64_t>, int64_t> places;
    const auto code_of = [&](uint64_t id) -> const LoadedCode* {
      if (!of.code.contains(id)) return nullptr;
      auto found = loaded.find(id);
      if (found == loaded.end()) found = loaded.emplace(id, load_code(folder_, process, id, of)).first;
      return &found->second;
    };
    uint64_t most_code = 0, most_kernel = 0, most_dispatch = 0;
    for (const auto& [id, code] : of.code) most_code = std::max(most_code, id);
    for (const auto& [id, kernel] : of.kernels) {
      most_kernel = std::max(most_kernel, id);
      SampledRun::Kernel& made = run_.kernels.emplace_back();
      made.id = kernels_ + id;
      made.code_object = codes_ + kernel.code_object;
      made.name = kernel.name;
      if (const auto code = of.code.find(kernel.code_object); code != of.code.end()) {
        int64_t entry = kernel.entry;
        if (entry == 0)  // before 0.6: as in the kernel's descriptor
          if (const LoadedCode* const known = code_of(kernel.code_object)) {
            constexpr uint64_t kEntryInDescriptor = 16;
            const std::string_view word = known->image.at(
                kernel.object - static_cast<uint64_t>(code->second.delta) + kEntryInDescriptor, sizeof entry);
            if (word.size() == sizeof entry) std::memcpy(&entry, word.data(), sizeof entry);
          }
        if (entry != 0) made.entry = kernel.object + static_cast<uint64_t>(entry) - code->second.base;
      }
    }
    std::sort(of.dispatches.begin(), of.dispatches.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    std::map<uint64_t, bool> wanted;  // by the library's number
    for (SampledRun::Ran& ran : of.dispatches) {
      most_dispatch = std::max(most_dispatch, ran.id);
      const auto kernel = of.kernels.find(ran.kernel);
      ObservedDispatch& d = ran.dispatch;
      d.kernel = kernel != of.kernels.end() ? demangle(kernel->second.name) : fmt::format("kernel #{}", ran.kernel);
      if (kernel != of.kernels.end()) {
        d.arch_vgpr = kernel->second.vector;
        d.accum_vgpr = kernel->second.accumulation;
        d.sgpr = kernel->second.scalar;
      }
      d.index = ran.id != 0 ? dispatches_ + ran.id - 1 : 0;
      const bool passes = filter_.kernel(d.kernel) && filter_.launch(d.index);
      wanted[ran.id] = passes;
      if (!passes) continue;
      ran.id += dispatches_;
      ran.kernel += kernels_;
      run_.dispatches.push_back(std::move(ran));
    }
    for (SampledRun::Sample& sample : of.samples) {
      most_dispatch = std::max(most_dispatch, sample.dispatch);
      const auto passes = wanted.find(sample.dispatch);
      if (passes == wanted.end() ? !lines_.empty() : !passes->second) continue;
      if (const LoadedCode* const code = code_of(sample.code_object)) {
        const auto [place, fresh] =
            places.try_emplace({sample.code_object, sample.offset}, static_cast<int64_t>(run_.instructions.size()));
        if (fresh) run_.instructions.push_back(instruction_at(*code, of.code.at(sample.code_object), sample.offset));
        sample.instruction = place->second;
        sample.code_object += codes_;
      } else {
        ++without_code;
      }
      sample.dispatch += dispatches_;
      run_.samples.push_back(sample);
    }
    codes_ += most_code;
    kernels_ += most_kernel;
    dispatches_ += most_dispatch;
  }

  uint64_t without_code = 0;

 private:
  static SampledRun::Instruction instruction_at(const LoadedCode& code, const SampledProcess::Code& about,
                                                uint64_t offset) {
    const uint64_t address = about.base + offset - static_cast<uint64_t>(about.delta);
    SampledRun::Instruction made;
    if (const Comgr* const comgr = Comgr::find())
      made.text = comgr->instruction(code.image, code.architecture, address);
    const decode::SourceLine line = code.module->line(address);
    if (line.line != 0) made.source = fmt::format("{}:{}", line.file, line.line);
    return made;
  }

  const std::string& folder_;
  const std::string lines_;
  const spool::LaunchFilter filter_;
  SampledRun& run_;
  uint64_t codes_ = 0, kernels_ = 0, dispatches_ = 0;
};

}  // namespace

bool parse_sampled(std::string_view bytes, SampledProcess& out) {
  while (!bytes.empty()) {
    sdk::PieceHeader piece;
    if (bytes.size() < sizeof piece) return false;
    std::memcpy(&piece, bytes.data(), sizeof piece);
    bytes.remove_prefix(sizeof piece);
    if (piece.bytes > bytes.size()) return false;
    const std::string_view payload = bytes.substr(0, piece.bytes);
    const auto* const at = reinterpret_cast<const std::byte*>(payload.data());
    if (piece.category == sdk::kSpoolCategory) {
      if (!take_own(piece.kind, payload, out)) return false;
    } else if (piece.category == sdk::category::kPcSampling) {
      take_sample(piece.kind, at, payload.size(), out);
    } else if (piece.category == sdk::category::kTracing) {
      take_dispatch(at, payload.size(), out);
    } else {
      ++out.unknown;
    }
    bytes.remove_prefix(std::min<uint64_t>(bytes.size(), (piece.bytes + 7) & ~uint64_t{7}));
  }
  return true;
}

CodeImage::CodeImage(std::string bytes) : bytes_(std::move(bytes)) {
  Elf64_Ehdr head;
  if (bytes_.size() < sizeof head) return;
  std::memcpy(&head, bytes_.data(), sizeof head);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64) return;
  for (uint64_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part;
    const uint64_t at = head.e_phoff + i * head.e_phentsize;
    if (at > bytes_.size() || bytes_.size() - at < sizeof part) return;
    std::memcpy(&part, bytes_.data() + at, sizeof part);
    if (part.p_type != PT_LOAD || part.p_offset > bytes_.size()) continue;
    segments_.push_back(
        {part.p_vaddr, std::min<uint64_t>(part.p_filesz, bytes_.size() - part.p_offset), part.p_offset});
  }
}

std::string_view CodeImage::at(uint64_t address, size_t most) const {
  for (const Segment& segment : segments_)
    if (address >= segment.address && address - segment.address < segment.size) {
      const uint64_t into = address - segment.address;
      return std::string_view(bytes_).substr(segment.offset + into, std::min<uint64_t>(most, segment.size - into));
    }
  return {};
}

bool parse_code_uri(std::string_view uri, std::string& path, uint64_t& offset, uint64_t& size) {
  constexpr std::string_view kFile = "file://";
  if (!uri.starts_with(kFile)) return false;
  uri.remove_prefix(kFile.size());
  const size_t hash = std::min(uri.find_first_of("#?"), uri.size());
  path.clear();
  for (size_t at = 0; at < hash; ++at) {
    unsigned code = 0;
    if (uri[at] == '%' && at + 2 < hash &&
        std::from_chars(uri.data() + at + 1, uri.data() + at + 3, code, 16).ptr == uri.data() + at + 3) {
      path += static_cast<char>(code);
      at += 2;
    } else {
      path += uri[at];
    }
  }
  const auto number = [&](std::string_view key, uint64_t& value) {
    value = 0;
    const size_t at = uri.find(key, hash);
    if (at == std::string_view::npos) return;
    std::string_view text = uri.substr(at + key.size());
    const bool hexadecimal = text.starts_with("0x");
    if (hexadecimal) text.remove_prefix(2);
    std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  };
  number("offset=", offset);
  number("size=", size);
  return !path.empty();
}

Result<SampledRun> read_sampled(const std::string& folder, const Filter& filter, std::vector<std::string>& notes) {
  SampledRun run;
  std::vector<std::string> processes;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".sampled") processes.push_back(entry.path().stem().string());
  if (error) return fail("{}: {}", folder, error.message());
  std::sort(processes.begin(), processes.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  Merger merger(folder, filter, run);
  uint64_t dropped = 0, invalid = 0, unknown = 0, cut = 0;
  for (const std::string& name : processes) {
    SampledProcess process;
    if (!parse_sampled(bytes_of_file(fmt::format("{}/{}.sampled", folder, name)), process)) ++cut;
    if (run.pid == 0) run.pid = process.pid;
    run.stochastic = run.stochastic || process.stochastic;
    dropped += process.dropped;
    invalid += process.invalid;
    unknown += process.unknown;
    merger.add(name, std::move(process));
  }
  std::stable_sort(run.samples.begin(), run.samples.end(), [](const auto& a, const auto& b) {
    return std::tie(a.dispatch, a.time) < std::tie(b.dispatch, b.time);
  });
  if (cut != 0) notes.push_back("PC samples were cut off where the program was killed");
  if (dropped != 0)
    notes.push_back("rocprofiler-sdk dropped " + how_many(dropped, "record of samples", "records of samples"));
  if (invalid != 0)
    notes.push_back(how_many(invalid, "PC sample of the GPU was", "PC samples of the GPU were") +
                    " invalid and left out");
  if (unknown != 0)
    notes.push_back(how_many(unknown, "record of rocprofiler-sdk is", "records of rocprofiler-sdk are") +
                    " of a kind that this tacho does not know, and left out");
  if (merger.without_code != 0)
    notes.push_back(how_many(merger.without_code,
                             "PC sample is in code that rocprofiler-sdk did not name; it has an address only",
                             "PC samples are in code that rocprofiler-sdk did not name; they have an address only"));
  if (!run.instructions.empty() && Comgr::find() == nullptr)
    notes.push_back("AMD's libamd_comgr.so is not in the library path, $ROCM_PATH/lib "
                    "or /opt/rocm/lib: samples have no instructions");
  if (std::any_of(run.instructions.begin(), run.instructions.end(),
                  [](const SampledRun::Instruction& each) { return each.source.empty(); }))
    notes.push_back("some instructions have no source line: compile with hipcc -gline-tables-only");
  return run;
}

}  // namespace tacho::counter::amd

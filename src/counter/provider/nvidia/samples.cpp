// Reads PC samples of NVIDIA GPUs (samples.h).
#include "counter/provider/nvidia/samples.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <tuple>

#include "base/format.h"
#include "base/text/demangle.h"
#include "counter/provider/nvidia/host.h"
#include "event/spool/launch_filter.h"
#include "event/spool/spool_samples.h"

namespace tacho::counter::nvidia {

namespace fs = std::filesystem;

namespace {

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// Path of cuobjdump: from the CUDA toolkit in use, else from the PATH; "" when neither has it.
std::string find_disassembler() {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* const home = std::getenv(variable); home != nullptr) folders.push_back(std::string(home) + "/bin");
  folders.emplace_back("/usr/local/cuda/bin");
  if (const char* const path = std::getenv("PATH"); path != nullptr) {
    std::istringstream parts(path);
    for (std::string part; std::getline(parts, part, ':');) folders.push_back(part);
  }
  for (const std::string& folder : folders)
    if (access((folder + "/cuobjdump").c_str(), X_OK) == 0) return folder + "/cuobjdump";
  return {};
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string output_of(const std::string& command) {
  std::string out;
  FILE* const pipe = popen(command.c_str(), "re");
  if (pipe == nullptr) return out;
  char part[65536];
  for (size_t got; (got = std::fread(part, 1, sizeof part, pipe)) != 0;) out.append(part, got);
  pclose(pipe);
  return out;
}

struct Correlation {  // CUpti_GetSassToSourceCorrelationParams
  size_t size;
  const void* cubin;
  const char* function;
  size_t bytes;
  uint32_t line;
  uint64_t offset;
  char *file, *folder;
};

// "smsp__pcsamp_warps_issue_stalled_long_scoreboard" -> "long_scoreboard". "" for names that end in _not_issued: they
// count part of the samples of the same reason again.
std::string reason_of(std::string_view name) {
  if (name.ends_with("_not_issued") || name.find("pcsamp_sample") != std::string_view::npos) return {};
  constexpr std::string_view kMark = "stalled_";
  if (const size_t at = name.find(kMark); at != std::string_view::npos) name.remove_prefix(at + kMark.size());
  return std::string(name);
}

}  // namespace

std::map<uint32_t, std::string> parse_reasons(std::string_view text) {
  std::map<uint32_t, std::string> reasons;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    uint32_t index = 0;
    const auto [at, error] = std::from_chars(line.data(), line.data() + line.size(), index);
    if (error == std::errc() && at != line.data() + line.size() && *at == ' ')
      reasons[index] = std::string(at + 1, line.data() + line.size());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reasons;
}

bool parse_samples(std::string_view bytes, const std::map<uint32_t, std::string>& reasons, RawSamples& out) {
  std::map<std::tuple<uint64_t, std::string, uint64_t>, size_t> known;
  for (size_t i = 0; i < out.places.size(); ++i)
    known[{out.places[i].cubin, out.places[i].function, out.places[i].offset}] = i;
  while (!bytes.empty()) {
    spool::PcSampleRecord record;
    if (bytes.size() < sizeof record) return false;
    memcpy(&record, bytes.data(), sizeof record);
    const uint64_t need = sizeof record + uint64_t{record.reasons} * 8 + (uint64_t{record.name_bytes} + 7) / 8 * 8;
    if (record.magic != spool::kSampleMagic || record.bytes != need || need > bytes.size()) return false;
    if (record.function == spool::kNoSamples) {
      out.total += record.total;
      out.dropped += record.dropped;
    } else {
      const std::string_view name = bytes.substr(sizeof record + size_t{record.reasons} * 8, record.name_bytes);
      const auto [place, fresh] =
          known.try_emplace({record.cubin, std::string(name), record.offset}, out.places.size());
      if (fresh) {
        SampledPlace& added = out.places.emplace_back();
        added.cubin = record.cubin;
        added.offset = record.offset;
        added.function = std::string(name);
      }
      for (uint32_t r = 0; r < record.reasons; ++r) {
        uint32_t pair[2];
        memcpy(pair, bytes.data() + sizeof record + size_t{r} * 8, sizeof pair);
        if (pair[1] == 0) continue;
        const auto reason = reasons.find(pair[0]);
        out.places[place->second]
            .reasons[reason == reasons.end() ? fmt::format("reason {}", pair[0]) : reason->second] += pair[1];
      }
    }
    bytes.remove_prefix(record.bytes);
  }
  return true;
}

Disassembly parse_disassembly(std::string_view text) {
  Disassembly result;
  std::map<uint64_t, std::string>* function = nullptr;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    constexpr std::string_view kFunction = "Function : ";
    if (const size_t at = line.find(kFunction); at != std::string_view::npos) {
      std::string_view name = line.substr(at + kFunction.size());
      while (!name.empty() && (name.back() == '\r' || name.back() == ' ')) name.remove_suffix(1);
      function = &result[std::string(name)];
      continue;
    }
    // "        /*0120*/                   LDG.E R2, [R4.64] ;      /* 0x... */". Lines with the second half
    // of the code word have no instruction.
    const size_t open = line.find_first_not_of(" \t");
    if (function == nullptr || open == std::string_view::npos || line.substr(open, 2) != "/*") continue;
    uint64_t offset = 0;
    const char* const begin = line.data() + open + 2;
    const auto [at, error] = std::from_chars(begin, line.data() + line.size(), offset, 16);
    if (error != std::errc() ||
        std::string_view(at, static_cast<size_t>(line.data() + line.size() - at)).substr(0, 2) != "*/")
      continue;
    std::string_view rest(at + 2, static_cast<size_t>(line.data() + line.size() - at - 2));
    const size_t semicolon = rest.find(';');
    const size_t first = rest.find_first_not_of(" \t");
    if (semicolon == std::string_view::npos || first == std::string_view::npos || first >= semicolon) continue;
    rest = rest.substr(first, semicolon - first);
    while (!rest.empty() && rest.back() == ' ') rest.remove_suffix(1);
    (*function)[offset] = std::string(rest);
  }
  return result;
}

SourcePlace source_place(std::string_view cubin, const std::string& function, uint64_t offset) {
  using Correlate = int (*)(Correlation*);
  static const Correlate correlate = [] {
    const std::string path = Host::library();
    void* const library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    return library == nullptr ? nullptr
                              : reinterpret_cast<Correlate>(dlsym(library, "cuptiGetSassToSourceCorrelation"));
  }();
  if (correlate == nullptr || cubin.empty()) return {};
  Correlation ask{sizeof ask, cubin.data(), function.c_str(), cubin.size(), 0, offset, nullptr, nullptr};
  const int result = correlate(&ask);
  SourcePlace place;
  if (result == 0 && ask.file != nullptr && ask.line != 0) {
    place.line = fmt::format("{}:{}", fs::path(ask.file).filename().string(), ask.line);
    place.path = (fs::path(ask.folder == nullptr ? "" : ask.folder) / ask.file).string();
  }
  std::free(ask.file);
  std::free(ask.folder);
  return place;
}

Result<std::vector<PcSample>> read_samples(const std::string& folder, const Filter& filter,
                                           std::vector<std::string>& notes) {
  RawSamples raw;
  std::error_code error;
  size_t cut = 0;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".samples") continue;
    fs::path names = entry.path();
    names.replace_extension(".reasons");
    if (!parse_samples(contents(entry.path()), parse_reasons(contents(names)), raw)) ++cut;
  }
  if (error) return fail("{}: {}", folder, error.message());
  if (cut != 0) notes.push_back("PC samples were cut off where the program was killed");
  if (raw.dropped != 0)
    notes.push_back(fmt::format("{} of {} PC samples were dropped by the hardware", raw.dropped, raw.total));

  std::sort(raw.places.begin(), raw.places.end(), [](const SampledPlace& a, const SampledPlace& b) {
    return std::tie(a.cubin, a.function, a.offset) < std::tie(b.cubin, b.function, b.offset);
  });
  const std::string disassembler = find_disassembler();
  if (disassembler.empty() && !raw.places.empty())
    notes.push_back("cuobjdump of the CUDA toolkit was not found (PATH, CUDA_HOME): instructions are shown as offsets");
  std::vector<PcSample> rows;
  const std::string lines = filter.lines();
  const spool::LaunchFilter wanted(lines);
  std::string cubin;
  Disassembly sass;
  bool without_lines = false;
  for (size_t i = 0; i < raw.places.size(); ++i) {
    const SampledPlace& place = raw.places[i];
    if (i == 0 || place.cubin != raw.places[i - 1].cubin) {
      const std::string path = fmt::format("{}/{:x}.cubin", folder, place.cubin);
      cubin = contents(path);
      sass.clear();
      if (!disassembler.empty() && !cubin.empty())
        sass = parse_disassembly(output_of(fmt::format("{} -sass {} 2>/dev/null", quoted(disassembler), quoted(path))));
    }
    const std::string kernel = demangle(place.function);
    if (!wanted.kernel(place.function, kernel)) continue;
    std::string instruction = fmt::format("/*{:04x}*/", place.offset);
    if (const auto function = sass.find(place.function); function != sass.end())
      if (const auto text = function->second.find(place.offset); text != function->second.end())
        instruction += " " + text->second;
    const SourcePlace source = source_place(cubin, place.function, place.offset);
    without_lines = without_lines || source.line.empty();
    for (const auto& [name, count] : place.reasons) {
      const std::string reason = reason_of(name);
      if (reason.empty()) continue;
      const bool issued = reason == "selected";
      rows.push_back({kernel, instruction, source.line, source.path, issued ? std::string() : reason, issued, count});
    }
  }
  if (without_lines && !rows.empty())
    notes.push_back("some instructions have no source line: compile with nvcc -lineinfo");
  return rows;
}

}  // namespace tacho::counter::nvidia

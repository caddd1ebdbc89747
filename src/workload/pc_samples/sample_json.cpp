// Reads a file twice: first the names of instructions and kernels and which kernel each dispatch ran, then the samples,
// which refer to them by number (sample_json.h).
#include "workload/pc_samples/sample_json.h"

#include <unordered_map>

#include "base/text/how_many.h"
#include "format/json/stream.h"

namespace tacho::workload {
namespace {

using format::json::JsonStream;

constexpr size_t kMostNames = size_t{4} << 20;  // of one kind in a process

struct Ran {
  int64_t kernel = 0, dispatch = 0, agent = 0, start = 0, end = 0;
};

// The names of one process.
struct Names {
  std::vector<Ran> ran;  // only where they are asked for
  std::vector<std::string> instructions, sources;
  std::unordered_map<int64_t, std::string> kernels;  // by kernel_id
  std::unordered_map<int64_t, int64_t> dispatches;   // dispatch_id -> kernel_id
};

class SampleJson {
 public:
  SampleJson(const std::string& path, SampleCounts& counts) : path_(path), counts_(counts) {}

  Status pass(bool samples) {
    TACHO_ASSIGN(JsonStream in, JsonStream::open(path_));
    in_ = &in;
    samples_ = samples;
    size_t number = 0;
    // The only member of the document is the list of its processes.
    in.object([&](std::string_view) {
      const auto one = [&] {
        if (in.peek() != '{') {
          in.skip();
          return;
        }
        if (number == processes_.size()) processes_.emplace_back();
        names_ = &processes_[number++];
        places_.clear();
        process();
      };
      if (in.peek() == '[')
        in.array(one);
      else
        one();
    });
    if (!in.ok()) return in.status();
    return {};
  }

  // The dispatches that the first pass read.
  std::string kernel_trace() const {
    std::string out = "Kind,Agent_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Start_Timestamp,End_Timestamp\n";
    for (const Names& process : processes_)
      for (const Ran& ran : process.ran) {
        const auto name = process.kernels.find(ran.kernel);
        std::string quoted;
        for (const char c : name == process.kernels.end() ? std::string() : name->second)
          quoted.append(c == '"' ? 2 : 1, c);
        out += fmt::format("KERNEL_DISPATCH,{},{},{},\"{}\",{},{}\n", ran.agent, ran.dispatch, ran.kernel, quoted,
                           ran.start, ran.end);
      }
    return out;
  }
  void keep_dispatches() { keep_dispatches_ = true; }

  uint64_t found() const { return found_; }
  uint64_t left_out() const { return left_out_; }
  bool stochastic() const { return stochastic_; }

 private:
  void process() {
    in_->object([&](std::string_view key) {
      if (key == "strings" && !samples_)
        strings();
      else if (key == "kernel_symbols" && !samples_)
        symbols();
      else if (key == "buffer_records")
        in_->object([&](std::string_view section) { records(std::string(section)); });
      else
        in_->skip();
    });
  }

  void texts(std::vector<std::string>& into) {
    in_->array([&] {
      std::string text;
      in_->string(text);
      if (into.size() < kMostNames) into.push_back(std::move(text));
    });
  }

  void strings() {
    in_->object([&](std::string_view key) {
      if (key == "pc_sample_instructions")
        texts(names_->instructions);
      else if (key == "pc_sample_comments")
        texts(names_->sources);
      else
        in_->skip();
    });
  }

  void symbols() {
    in_->array([&] {
      int64_t id = 0;
      std::string formatted, plain;
      in_->object([&](std::string_view key) {
        if (key == "kernel_id")
          id = in_->integer();
        else if (key == "formatted_kernel_name")
          in_->string(formatted);
        else if (key == "kernel_name")
          in_->string(plain);
        else
          in_->skip();
      });
      if (names_->kernels.size() < kMostNames) names_->kernels[id] = formatted.empty() ? plain : formatted;
    });
  }

  void records(const std::string& section) {
    const bool of_samples = section == "pc_sample_stochastic" || section == "pc_sample_host_trap";
    if (section == "kernel_dispatch" && !samples_)
      in_->array([&] { dispatch(); });
    else if (of_samples && samples_)
      in_->array([&] { sample(section == "pc_sample_stochastic"); });
    else
      in_->skip();
  }

  void dispatch() {
    Ran ran;
    const auto info = [&](std::string_view member) {
      if (member == "kernel_id")
        ran.kernel = in_->integer();
      else if (member == "dispatch_id")
        ran.dispatch = in_->integer();
      else if (member == "agent_id")
        ran.agent = in_->handle();
      else
        in_->skip();
    };
    in_->object([&](std::string_view key) {
      if (key == "dispatch_info")
        in_->object(info);
      else if (key == "start_timestamp")
        ran.start = in_->integer();
      else if (key == "end_timestamp")
        ran.end = in_->integer();
      else
        in_->skip();
    });
    if (!in_->ok() || names_->dispatches.size() >= kMostNames) return;
    names_->dispatches[ran.dispatch] = ran.kernel;
    if (keep_dispatches_) names_->ran.push_back(ran);
  }

  void sample(bool stochastic) {
    int64_t dispatch = 0, offset = 0, issued = 0, instruction = -1;
    std::string reason;
    const auto stall = [&](std::string_view key) {
      if (key == "stall_reason" && in_->peek() == '"')
        in_->string(reason);
      else if (key == "stall_reason")
        reason = fmt::format("{}", in_->integer());
      else
        in_->skip();
    };
    const auto record = [&](std::string_view key) {
      if (key == "dispatch_id")
        dispatch = in_->integer();
      else if (key == "wave_issued")
        issued = in_->integer();
      else if (key == "snapshot" && in_->peek() == '{')
        in_->object(stall);
      else if (key == "pc" && in_->peek() == '{')
        in_->object([&](std::string_view member) {
          if (member == "code_object_offset")
            offset = in_->integer();
          else
            in_->skip();
        });
      else
        in_->skip();
    };
    in_->object([&](std::string_view key) {
      if (key == "record")
        in_->object(record);
      else if (key == "inst_index")
        instruction = in_->integer();
      else
        in_->skip();
    });
    if (!in_->ok()) return;
    const size_t place = place_of(dispatch, instruction, offset);
    if (place == SampleCounts::kFull) {
      ++left_out_;
      return;
    }
    counts_.add(place, 1, stochastic && issued != 0, reason);
    stochastic_ = stochastic_ || stochastic;
    ++found_;
  }

  size_t place_of(int64_t dispatch, int64_t instruction, int64_t offset) {
    const auto ran = names_->dispatches.find(dispatch);
    const int64_t kernel = ran == names_->dispatches.end() ? -1 : ran->second;
    const bool known = instruction >= 0 && static_cast<size_t>(instruction) < names_->instructions.size();
    const auto name = names_->kernels.find(kernel);
    const std::string_view kernel_name =
        name == names_->kernels.end() ? std::string_view() : std::string_view(name->second);
    if (!known)  // rocprofv3's own sentence in its CSV
      return counts_.place(
          kernel_name, "",
          fmt::format("Unrecognized code object id, physical virtual address of PC:{}", static_cast<uint64_t>(offset)));
    const auto at = static_cast<size_t>(instruction);
    const auto key = static_cast<uint64_t>(kernel) << 32 ^ static_cast<uint64_t>(instruction);
    if (const auto found = places_.find(key); found != places_.end()) return found->second;
    const size_t place =
        counts_.place(kernel_name, names_->instructions[at],
                      at < names_->sources.size() ? std::string_view(names_->sources[at]) : std::string_view());
    if (place != SampleCounts::kFull) places_.emplace(key, place);
    return place;
  }

  const std::string& path_;
  SampleCounts& counts_;
  JsonStream* in_ = nullptr;
  bool samples_ = false, stochastic_ = false, keep_dispatches_ = false;
  std::vector<Names> processes_;
  Names* names_ = nullptr;
  std::unordered_map<uint64_t, size_t> places_;  // of a kernel and an instruction of the process
  uint64_t found_ = 0, left_out_ = 0;
};

}  // namespace

uint64_t read_sample_json(const std::string& path, SampleCounts& counts, bool& stochastic,
                          std::vector<std::string>& warnings) {
  SampleJson file(path, counts);
  Status read = file.pass(false);
  if (read) read = file.pass(true);
  if (!read)
    warnings.push_back(fmt::format("{}{}", read.error().message,
                                   file.found() > 0 ? "; the samples before that place are counted" : ""));
  else if (file.found() == 0)
    warnings.push_back(fmt::format("{}: holds no PC samples", path));
  if (file.left_out() > 0)
    warnings.push_back(fmt::format("{}: there are more than a million different instructions: {} left out", path,
                                   how_many(file.left_out(), "sample is", "samples are")));
  stochastic = stochastic || file.stochastic();
  return file.found();
}

Result<std::string> kernel_trace_of_json(const std::string& path) {
  SampleCounts none;
  SampleJson file(path, none);
  file.keep_dispatches();
  TACHO_TRY(file.pass(false));
  return file.kernel_trace();
}

}  // namespace tacho::workload

// The call stacks of a thread's samples over time: frames that follow each other become one slice (index.h).
#include "analysis/stacks/stacks.h"

#include <algorithm>

#include "base/saturating.h"
#include "trace/read/rows.h"
#include "view/index/index.h"

namespace tacho::view {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

constexpr size_t kDeepestStack = 200;
// Samples of CPU time come late while other programs have the processor. A thread that was not sampled for longer than
// so many of its periods did not run.
constexpr int64_t kPeriods = 6;

struct StackSample {
  int64_t start, duration, stack, row;
};

// The frames of stacks as numbers of names, outermost first.
class Frames {
 public:
  Frames(const trace::Trace& trace, const SliceNames& names) : trace_(trace), names_(names) {}
  // Of a stack with functions of Python the native frames outside of the outermost one are left out, and those of the
  // interpreter between them, as in the flame graph.
  void read(int64_t stack, std::vector<uint32_t>& names) const {
    names.clear();
    size_t outermost = 0;  // 1 + the place of the outermost function of Python
    std::vector<bool> interpreter;
    for (; stack > 0 && names.size() < kDeepestStack * 4; stack = trace::cell<column::Stack::parent>(trace_, stack)) {
      const int64_t frame = trace::cell<column::Stack::frame>(trace_, stack);
      const event::FrameKind kind = event::from_cell(trace::cell<column::Frame::kind>(trace_, frame));
      if (kind == event::FrameKind::kPython) outermost = names.size() + 1;
      interpreter.push_back(kind == event::FrameKind::kNative &&
                            analysis::is_interpreter(trace::text<column::Frame::module>(trace_, frame)));
      names.push_back(names_.of(Table::kSample, stack));
    }
    if (outermost > 0) {
      size_t kept = 0;
      for (size_t i = 0; i < outermost; ++i)
        if (!interpreter[i]) names[kept++] = names[i];
      names.resize(kept);
    }
    std::reverse(names.begin(), names.end());
    if (names.size() > kDeepestStack) names.resize(kDeepestStack);
  }

 private:
  const trace::Trace& trace_;
  const SliceNames& names_;
};

// Slices of the frames that samples of one thread, in order of time, share with their neighbours; `lane` is the depth.
std::vector<Slice> merged_frames(const std::vector<StackSample>& samples, const Frames& frames) {
  std::vector<Slice> done, open;
  std::vector<uint32_t> names;
  const auto close = [&](size_t depth) {
    done.insert(done.end(), open.begin() + static_cast<ptrdiff_t>(depth), open.end());
    open.resize(depth);
  };
  int64_t until = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const StackSample& sample = samples[i];
    const int64_t period = std::max<int64_t>(sample.duration, 1);
    int64_t end = saturating_add(sample.start, period);
    if (i + 1 < samples.size() &&
        saturating_add(samples[i + 1].start, -sample.start) <= saturating_multiply(kPeriods, period))
      end = samples[i + 1].start;
    if (end <= sample.start) continue;  // another one of the same moment
    frames.read(sample.stack, names);
    size_t shared = 0;
    if (sample.start == until)
      while (shared < std::min(open.size(), names.size()) && open[shared].name == names[shared]) ++shared;
    close(shared);
    for (Slice& each : open) each.end = end;
    for (size_t depth = shared; depth < names.size(); ++depth)
      open.push_back(
          {sample.start, end, row_id(Table::kSample, sample.row), names[depth], static_cast<uint16_t>(depth), 0});
    until = end;
  }
  close(0);
  return done;
}

}  // namespace

Status TileIndex::read_stacks() {
  if (trace_->rows(Table::kSample) > Tree::kMostStackSamples) return {};
  std::vector<std::vector<StackSample>> samples(lines_.size());
  using S = column::Sample;
  Status status;
  int64_t row = 0;
  for (const auto& rows : trace::chunks<S::track, S::start, S::duration, S::dim>(*trace_, status)) {
    if (stop_) return {};
    for (size_t i = 0; i < rows.size(); ++i, ++row) {
      const int64_t line = tree_.line_of(Table::kSample, rows.track[i]);
      if (line >= 0 && rows.dim[i] > 0)
        samples[static_cast<size_t>(line)].push_back({rows.start[i] - t0_, rows.duration[i], rows.dim[i], row});
    }
  }
  TACHO_TRY(status);
  const Frames frames(*trace_, names_);
  for (size_t number = 0; number < lines_.size() && !stop_; ++number) {
    if (tree_.lines()[number].kind != LineKind::kStack) continue;
    auto& of = samples[static_cast<size_t>(tree_.lines()[number].parent)];
    std::stable_sort(of.begin(), of.end(),
                     [](const StackSample& a, const StackSample& b) { return a.start < b.start; });
    put_stacks(number, merged_frames(of, frames));
  }
  return {};
}

void TileIndex::put_stacks(size_t number, std::vector<Slice> slices) {
  std::sort(slices.begin(), slices.end(),
            [](const Slice& a, const Slice& b) { return a.start != b.start ? a.start < b.start : a.lane < b.lane; });
  const std::unique_lock held(lock_);
  LineState& line = lines_[number];
  line.resident = true;
  line.events = static_cast<int64_t>(slices.size());
  for (Slice& slice : slices) {
    slice.lane = line.lanes.next(slice.start, slice.end);
    if (slice.lane >= line.kept.size()) line.kept.resize(slice.lane + 1u);
    while (slice.lane >= line.bins.size())
      line.bins.emplace_back(number, static_cast<uint16_t>(line.bins.size()), base_, levels_);
    line.bins[slice.lane].add(slice.start, std::min(slice.end, length_), slice.name, store_);
    line.kept[slice.lane].push_back(slice);
  }
}

}  // namespace tacho::view

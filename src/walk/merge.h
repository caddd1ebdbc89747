// Merges rows of several tables in order of time.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <utility>

#include "base/result.h"
#include "trace/read/rows.h"
#include "trace/trace.h"

namespace tacho::walk {

/// The rows of several RowCursors in ascending start; of equal starts those of the cursor that is named first.
template <typename... Cursors>
class Merge {
 public:
  /// The trace must outlive this.
  explicit Merge(const trace::Trace& trace) : cursors_(of<Cursors>(trace)...) {
    [&]<size_t... i>(std::index_sequence<i...>) {
      ((more_[i] = std::get<i>(cursors_).next()), ...);
    }
    (std::index_sequence_for<Cursors...>());
    choose();
  }

  /// True while a row is due.
  bool more() const { return due_ < sizeof...(Cursors); }
  /// The start of the row that is due.
  int64_t start() const { return start_; }
  /// Gives the due row to `f`, which takes a row of any of the cursors (its kTable says which), and moves on to the
  /// next.
  template <typename F>
  void take(F&& f) {
    with_due([&](auto& cursor) { f(*cursor); });
    with_due([&](auto& cursor) { more_[due_] = cursor.next(); });
    choose();
  }
  /// take() for every row with a start of at most `time`.
  template <typename F>
  void take_up_to(int64_t time, F&& f) {
    while (more() && start_ <= time) take(f);
  }
  /// The error that ended one of the tables.
  Status status() const {
    return std::apply(
        [](const auto&... cursors) {
          Status status;
          (void)((status = cursors.status()) && ...);
          return status;
        },
        cursors_);
  }

 private:
  template <typename>
  static const trace::Trace& of(const trace::Trace& trace) {
    return trace;
  }
  void choose() {
    due_ = sizeof...(Cursors);
    [&]<size_t... i>(std::index_sequence<i...>) {
      (consider<i>(), ...);
    }
    (std::index_sequence_for<Cursors...>());
  }
  template <size_t i>
  void consider() {
    if (!more_[i] || (more() && std::get<i>(cursors_).start() >= start_)) return;
    due_ = i;
    start_ = std::get<i>(cursors_).start();
  }
  template <typename F>
  void with_due(F&& f) {
    const size_t due = due_;
    [&]<size_t... i>(std::index_sequence<i...>) {
      ((i == due ? f(std::get<i>(cursors_)) : void()), ...);
    }
    (std::index_sequence_for<Cursors...>());
  }

  std::tuple<Cursors...> cursors_;
  std::array<bool, sizeof...(Cursors)> more_{};
  size_t due_ = sizeof...(Cursors);
  int64_t start_ = 0;
};

}  // namespace tacho::walk

// How one clock runs against another: offset and drift in pieces, from moments that both saw, robust against outliers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tacho::ranks {

/// Both clocks at the same moment, ns.
struct ClockSample {
  int64_t time;       // of the clock that is fitted
  int64_t reference;  // of the other
};

/// offset(t) = the fitted clock minus the reference: a line in each piece.
struct ClockFit {
  struct Piece {
    int64_t from;    // first time of the piece, of the fitted clock; the first piece also holds all earlier times
    int64_t at;      // where `offset` holds: its first sample
    int64_t last;    // its last sample
    int64_t offset;  // ns
    double drift;    // ns per ns; 5e-5 = 50 ppm
  };
  std::vector<Piece> pieces;  // empty: nothing known
  size_t samples = 0, outliers = 0;
  double residual = 0;  // ns: 95 of 100 samples that are no outliers lie nearer to the fit
  int64_t offset(int64_t time) const;
  /// The reference's time.
  int64_t aligned(int64_t time) const { return time - offset(time); }
};

/// Fits lines by medians of slopes (Theil and Sen) and splits where one line does not describe the samples within their
/// own noise: at a jump of a clock or a change of its rate. Fewer than 8 samples give a constant, none an empty fit.
ClockFit fit_clock(std::vector<ClockSample> samples);

}  // namespace tacho::ranks

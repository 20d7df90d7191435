// What is well formed in an OffsetProblem, and which bytes an interval takes at which time. Private
// to the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "mallocgame/plan/offsets.h"

namespace mallocgame {

// InvalidArgument names the interval and what is wrong with it. It looks at each interval by
// itself, whatever their number.
absl::Status CheckProblem(const OffsetProblem& problem);

// InvalidArgument says what is wrong with its gaps, without its name.
absl::Status CheckGaps(const OffsetInterval& interval);

// What messages call the interval.
std::string NameOf(const OffsetProblem& problem, size_t interval);

// What every offset of the interval is a multiple of.
int64_t AlignmentOf(const OffsetProblem& problem, const OffsetInterval& interval);

// Over the time [begin, end) an interval takes the bytes [offset + low, offset + high).
struct OffsetPiece {
  int64_t begin = 0, end = 0;  // begin < end
  int64_t low = 0, high = 0;   // low < high
};

// All that the interval takes, in the order of time. There are none if it never takes a byte.
// Pieces of which one begins where the other ends differ in their bytes.
std::vector<OffsetPiece> PiecesOf(const OffsetInterval& interval);

}  // namespace mallocgame

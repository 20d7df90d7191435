// The copies of a plan as the compiler writes them: each fills or empties all of a residence, in
// one piece or in slices. Private to the folder.
#pragma once

#include <cstdint>
#include <vector>

#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

class ShapeProto;

struct Piece {
  int32_t transfer = 0;  // index into PlanTransfers::transfers
  Tick begin = 0, end = 0;
  int64_t part_begin = 0, part_end = 0;
  bool dropped = false;  // another piece brings its bytes
  // of the sliced dimension: the indices [first, limit)
  int64_t first = 0, limit = 0;
};

struct PlanTransfer {
  CopyKind kind = CopyKind::kPrefetch;
  ResidenceId residence;
  Tick replaces = -1;
  bool preload = false;
  std::vector<int32_t> pieces;  // indices into PlanTransfers::pieces, in order of their begins
};

struct PlanTransfers {
  std::vector<PlanTransfer> transfers;
  std::vector<Piece> pieces;  // in the order of the plan's copies
};

// Evictions and preloads in slices become whole ones, which begin with their last slice.
PlanTransfers TransfersOf(const Program& program, const Plan& plan);

// The pieces of the transfer that are not dropped.
std::vector<int32_t> PiecesLeft(const PlanTransfers& all, const PlanTransfer& transfer);

// Drops all pieces but the last, which brings everything.
void MakeWhole(PlanTransfers& all, const PlanTransfer& transfer);

// The outermost dimension of more than one index, in which arrays are sliced; -1 if there is none.
int SlicedDimension(const ShapeProto& shape);

// Cuts an array where rows of tiles end. A row that lies in two pieces belongs to the one that
// begins last. If one piece is left, or the array can't be cut so, the transfer becomes whole.
void CutAtTiles(const ShapeProto& shape, PlanTransfers& all, const PlanTransfer& transfer);

}  // namespace mallocgame::hlo

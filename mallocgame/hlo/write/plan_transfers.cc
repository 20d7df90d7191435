#include "mallocgame/hlo/write/plan_transfers.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/shape_size.h"

namespace mallocgame::hlo {

PlanTransfers TransfersOf(const Program& program, const Plan& plan) {
  PlanTransfers all;
  // Transfers whose slices do not make up all bytes yet, with the bytes that are missing.
  std::map<std::tuple<int32_t, CopyKind, Tick>, std::pair<int32_t, int64_t>> open;
  for (const Copy& copy : plan.copies) {
    const std::tuple key(copy.residence.value, copy.kind, copy.replaces);
    const BufferId buffer = plan.residences[copy.residence.index()].buffer;
    const auto next = static_cast<int32_t>(all.transfers.size());
    const auto [found, fresh] =
        open.emplace(key, std::pair(next, program.buffer(buffer).size_bytes));
    if (fresh) {
      all.transfers.push_back({copy.kind, copy.residence, copy.replaces, copy.preload, {}});
    }
    auto& [transfer, missing] = found->second;
    all.transfers[transfer].pieces.push_back(static_cast<int32_t>(all.pieces.size()));
    all.pieces.push_back({transfer, copy.begin, copy.end, copy.part_begin, copy.part_end});
    missing -= copy.part_end - copy.part_begin;
    if (missing <= 0) open.erase(found);
  }
  for (const PlanTransfer& transfer : all.transfers) {
    if (transfer.kind == CopyKind::kEviction || transfer.preload) MakeWhole(all, transfer);
  }
  return all;
}

std::vector<int32_t> PiecesLeft(const PlanTransfers& all, const PlanTransfer& transfer) {
  std::vector<int32_t> left;
  for (const int32_t p : transfer.pieces) {
    if (!all.pieces[p].dropped) left.push_back(p);
  }
  return left;
}

void MakeWhole(PlanTransfers& all, const PlanTransfer& transfer) {
  Piece& last = all.pieces[transfer.pieces.back()];
  for (const int32_t p : transfer.pieces) {
    Piece& piece = all.pieces[p];
    last.end = std::max(last.end, piece.end);
    last.part_begin = std::min(last.part_begin, piece.part_begin);
    last.part_end = std::max(last.part_end, piece.part_end);
    piece.dropped = true;
  }
  last.dropped = false;
  last.first = last.limit = 0;  // It is no slice any more.
}

int SlicedDimension(const ShapeProto& shape) {
  for (int k = shape.layout().minor_to_major_size(); k-- > 0;) {
    const auto dimension = static_cast<int>(shape.layout().minor_to_major(k));
    if (shape.dimensions(dimension) > 1) return dimension;
  }
  return -1;
}

void CutAtTiles(const ShapeProto& shape, PlanTransfers& all, const PlanTransfer& transfer) {
  const int dimension = SlicedDimension(shape);
  const absl::StatusOr<int64_t> size = TiledBytes(shape, kMaxArrayBytes);
  if (transfer.pieces.size() < 2 || dimension < 0 || !size.ok()) return MakeWhole(all, transfer);
  const int64_t tile = TileExtent(shape, dimension);
  // On some chips the compiler makes no slice of one dimension that ends within a tile.
  if (shape.dimensions_size() == 1 && shape.dimensions(dimension) % tile != 0)
    return MakeWhole(all, transfer);
  const int64_t index_bytes = *size / PaddedExtent(shape, dimension);
  const int64_t row_bytes = index_bytes * tile;
  std::vector<int32_t> owner((*size + row_bytes - 1) / row_bytes, -1);
  for (const int32_t p : transfer.pieces) {
    Piece& piece = all.pieces[p];
    const int64_t end =
        std::min<int64_t>(std::ssize(owner), (piece.part_end + row_bytes - 1) / row_bytes);
    for (int64_t row = piece.part_begin / row_bytes; row < end; ++row) {
      if (owner[row] < 0 || all.pieces[owner[row]].begin < piece.begin) owner[row] = p;
    }
    piece.dropped = true;
  }
  // The compiler gives a slice that is shorter than a tile smaller tiles, so that it can't be part
  // of what is tiled by larger ones: what a last tile lacks, another makes up.
  if (const int64_t rows = std::ssize(owner); rows > 1 && shape.dimensions(dimension) % tile != 0) {
    int32_t& last = owner[rows - 1];
    int32_t& other = owner[rows - 2];
    if (last < 0 || other < 0) return MakeWhole(all, transfer);
    last = other = all.pieces[last].begin < all.pieces[other].begin ? other : last;
  }
  int32_t previous = -1;
  for (int64_t row = 0; row < std::ssize(owner); ++row) {
    if (owner[row] < 0) return MakeWhole(all, transfer);
    Piece& piece = all.pieces[owner[row]];
    if (owner[row] != previous) {
      if (!piece.dropped) return MakeWhole(all, transfer);
      piece.dropped = false;
      piece.first = row * tile;
      piece.part_begin = row * row_bytes;
    }
    piece.limit = std::min(shape.dimensions(dimension), (row + 1) * tile);
    piece.part_end = std::min(*size, (row + 1) * row_bytes);
    previous = owner[row];
  }
  if (PiecesLeft(all, transfer).size() < 2) MakeWhole(all, transfer);
}

}  // namespace mallocgame::hlo

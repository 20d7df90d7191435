// A sweep over time finds the residences that begin on bytes that are taken. For each of them, a
// search over all others finds a new place.
#include "mallocgame/hlo/import/overlaps.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "mallocgame/plan/offsets.h"
#include "mallocgame/program/reserved_bytes.h"

namespace mallocgame::hlo {
namespace {

// Bytes that a residence takes over some ticks. A residence that is filled in slices has one piece
// for each.
struct Piece {
  Tick begin = 0, end = 0;
  int64_t offset = 0, end_offset = 0;
  size_t residence = 0;
};

std::vector<Piece> PiecesOf(const Program& program, const Plan& plan) {
  std::vector<Piece> pieces;
  std::vector<bool> filled(plan.residences.size(), false);
  for (const Copy& copy : plan.copies) {
    if (copy.kind != CopyKind::kPrefetch) continue;
    const size_t r = copy.residence.index();
    const Residence& residence = plan.residences[r];
    filled[r] = true;
    pieces.push_back({copy.begin, residence.end, residence.offset + copy.part_begin,
                      residence.offset + copy.part_end, r});
  }
  for (size_t r = 0; r < filled.size(); ++r) {
    const Residence& residence = plan.residences[r];
    if (filled[r]) continue;
    const int64_t end_offset = residence.offset + program.buffer(residence.buffer).size_bytes;
    pieces.push_back({residence.begin, residence.end, residence.offset, end_offset, r});
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.begin, a.offset, a.residence) < std::tie(b.begin, b.offset, b.residence);
  });
  return pieces;
}

// The residences that begin on bytes that another has, in the order in which they begin.
std::vector<size_t> Overlapping(const std::vector<Piece>& pieces) {
  std::vector<size_t> moving;
  std::map<int64_t, const Piece*> taken;  // by offset
  std::multimap<Tick, int64_t> ends;      // offsets that become free, by the tick at which they do
  for (const Piece& piece : pieces) {
    for (; !ends.empty() && ends.begin()->first <= piece.begin; ends.erase(ends.begin()))
      taken.erase(ends.begin()->second);
    const auto above = taken.lower_bound(piece.offset);
    const bool overlaps =
        (above != taken.end() && above->first < piece.end_offset) ||
        (above != taken.begin() && std::prev(above)->second->end_offset > piece.offset);
    if (overlaps) {
      moving.push_back(piece.residence);
    } else if (piece.begin < piece.end) {
      taken.emplace(piece.offset, &piece);
      ends.emplace(piece.end, piece.offset);
    }
  }
  return moving;
}

}  // namespace

bool MoveOverlapping(const Program& program, const Hardware& hardware, Plan& plan) {
  const ReservedBytes reserved(program);
  std::vector<Piece> pieces = PiecesOf(program, plan);
  std::vector<size_t> moving = Overlapping(pieces);
  for (size_t r = 0; r < plan.residences.size(); ++r) {
    const Residence& residence = plan.residences[r];
    if (residence.offset < reserved.Most(residence.begin, residence.end)) moving.push_back(r);
  }
  std::set<size_t> moved;
  bool apart = true;
  for (const size_t r : moving) {
    if (!moved.insert(r).second) continue;
    Residence& residence = plan.residences[r];
    const int64_t size = program.buffer(residence.buffer).size_bytes;
    // the bytes that others have at some time while it stays
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (const Piece& piece : pieces) {
      if (piece.residence == r || piece.begin >= residence.end || piece.end <= residence.begin)
        continue;
      taken.emplace_back(piece.offset, piece.end_offset);
    }
    const int64_t offset =
        LowestFreeOffset(std::move(taken), size, reserved.Most(residence.begin, residence.end),
                         hardware.alignment_bytes);
    if (offset + size > hardware.fast_bytes) {
      apart = false;
      continue;
    }
    for (Piece& piece : pieces) {
      if (piece.residence != r) continue;
      piece.offset += offset - residence.offset;
      piece.end_offset += offset - residence.offset;
    }
    residence.offset = offset;
  }
  return apart;
}

}  // namespace mallocgame::hlo

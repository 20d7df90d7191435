#include "mallocgame/game/plan_reader.h"

#include <algorithm>
#include <iterator>

namespace mallocgame {

PlanReader::PlanReader(const Program& program, const Plan& plan)
    : program_(program), plan_(plan), preloaded_(plan.residences.size()),
      written_back_(plan.residences.size()) {
  for (const Copy& copy : plan.copies) {
    if (copy.preload) preloaded_[copy.residence.index()] = true;
    if (copy.kind == CopyKind::kEviction) written_back_[copy.residence.index()] = true;
  }
}

Segment PlanReader::Read(AccessId first, AccessId last, ResidenceId r, Tick late_from) const {
  if (!r.valid()) return {first, last, Mode::kSkip};
  const Residence& residence = plan_.residences[r.index()];
  const bool starts = program_.accesses_of(program_.access(first).buffer)[0] == first;
  const Mode mode = starts && preloaded(r)        ? Mode::kPreload
                    : residence.begin < late_from ? Mode::kEarly
                                                  : Mode::kLate;
  return {first, last, mode};
}

Segment PlanReader::Read(AccessId access, Tick late_from) const {
  const ResidenceId r = residence(access);
  Segment segment = Read(access, access, r, late_from);
  if (!r.valid()) return segment;
  const auto accesses = program_.accesses_of(program_.access(access).buffer);
  const auto here = std::lower_bound(accesses.begin(), accesses.end(), access);
  if (here != accesses.begin() && residence(*std::prev(here)) == r) segment.mode = Mode::kKeep;
  return segment;
}

}  // namespace mallocgame

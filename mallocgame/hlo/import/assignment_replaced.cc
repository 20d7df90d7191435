// Plain copies that are gone from the compiler's own answer, because transfers do their work.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "mallocgame/hlo/import/accesses.h"
#include "mallocgame/hlo/import/plan_reader.h"

namespace mallocgame::hlo {

// A transfer from one buffer to another does the work of a plain copy that is gone. If a Plan can't
// say so, the copy does it.
absl::Status PlanReader::PlaceReplaced() {
  // the ticks of plain copies that are gone, by the buffers that they read and write
  std::map<std::pair<int32_t, int32_t>, std::vector<Tick>> gone;
  for (Tick t = 0; t < program_.ticks(); ++t) {
    const int32_t i = schedule_.ticks[t].instruction;
    if (assigned_.Counterpart(i) || !IsPlainCopy(before_, i)) continue;
    gone[{BuffersOf(before_.operands(i)[0])[0], BuffersOf(i)[0]}].push_back(t);
  }
  std::vector<Step> left;
  for (Step transfer : std::exchange(transfers_, {})) {
    const int32_t from = buffer_of_[transfer.from];
    const int32_t to = buffer_of_[transfer.to];
    if (from == to || to == kNone) {
      left.push_back(transfer);
      continue;
    }
    const auto found = gone.find({from, to});
    if (found == gone.end()) {
      if (!program_.buffer(BufferId(to)).eligible) continue;
      return CantTell(transfer, "no plain copy between them is missing");
    }
    const auto after = absl::c_upper_bound(found->second, transfer.begin);
    const Tick t = after == found->second.begin() ? *after : *std::prev(after);
    if (program_.instruction(t).plain_copy && !place(transfer.from).fast &&
        place(transfer.to).fast) {
      transfer.replaces = t;
      replaced_[t] = true;
      PlaceOfAccess(t, 1) = Same(transfer.to);
    } else if (CopyDoes(t, transfer)) {
      continue;
    }
    left.push_back(transfer);
  }
  transfers_ = std::move(left);
  FillInTheCopysPlace();
  return absl::OkStatus();
}

// A value that goes through fast memory between two instructions has bytes there at no tick but
// that of the copy which is gone. What the compiler has done before it is done by then.
void PlanReader::FillInTheCopysPlace() {
  for (Step& transfer : transfers_) {
    if (transfer.replaces == kNone || transfer.begin != transfer.end) continue;
    const bool leaves_at_once = absl::c_any_of(transfers_, [&](const Step& other) {
      return Same(other.from) == Same(transfer.to) && other.begin == transfer.begin &&
             other.end == transfer.begin;
    });
    if (!leaves_at_once) continue;
    for (Step& before : transfers_) {
      if (before.done > transfer.started || before.end <= transfer.replaces) continue;
      before.begin = std::min(before.begin, transfer.replaces);
      before.end = transfer.replaces;
    }
    transfer.begin = transfer.end = transfer.replaces;
    transfer.region = program_.instruction(transfer.replaces).region;
  }
}

// Has the plain copy at `t` do what the transfer does: out of fast memory, or from or to a buffer
// that isn't eligible. If its result has no bytes in fast memory yet, the transfer brings it there
// from main memory; else there is no transfer.
bool PlanReader::CopyDoes(Tick t, Step& transfer) {
  const auto serve = [&](int32_t p) {
    const absl::Span<const Access> accesses = AccessesAt(t);
    for (size_t slot = 0; slot < accesses.size(); ++slot) {
      if (accesses[slot].buffer.value == buffer_of_[p]) PlaceOfAccess(t, slot) = Same(p);
    }
  };
  if (!place(transfer.from).fast) {
    ReadWhereMade(t);
  } else if (FirstFill(transfer.from, &Transfer::end) <= t) {
    serve(transfer.from);
  }
  if (!place(transfer.to).fast || !program_.buffer(BufferId(buffer_of_[transfer.to])).eligible)
    return true;
  if (FirstFill(transfer.to, &Transfer::begin) <= t) {
    serve(transfer.to);
    return true;
  }
  transfer.from = MainPlace();
  return false;
}

// Has the plain copy at `t` read its operand in fast memory if that was made there, and gets to
// main memory later.
void PlanReader::ReadWhereMade(Tick t) {
  const absl::Span<const Access> accesses = AccessesAt(t);
  if (accesses.empty() || accesses[0].kind != AccessKind::kRead) return;
  const absl::Span<const AccessId> all = program_.accesses_of(accesses[0].buffer);
  const auto own = absl::c_lower_bound(all, AccessId(program_.instruction(t).first_access));
  const int32_t p = own == all.begin() ? kNone : place_of_access_[std::prev(own)->index()];
  if (p < 0 || FirstFill(p, &Transfer::end) != kNone) return;
  const bool is_in_main = absl::c_any_of(assigned_.transfers(), [&](const Transfer& transfer) {
    return Same(transfer.from) == p && !place(transfer.to).fast && transfer.end <= t;
  });
  if (!is_in_main) PlaceOfAccess(t, 0) = p;
}

// When the first transfer that fills the place begins or ends; kNone: an instruction fills it.
Tick PlanReader::FirstFill(int32_t p, Tick Transfer::* when) const {
  Tick first = kNone;
  for (const Transfer& transfer : assigned_.transfers()) {
    if (Same(transfer.to) == Same(p) && (first == kNone || transfer.*when < first))
      first = transfer.*when;
  }
  return first;
}

// Has a plain copy run that the transfer to `p` took the place of, so that its result is in main
// memory too. What else `p` serves is fetched from there.
void PlanReader::PutBackReplaced(int32_t p) {
  for (Step& transfer : transfers_) {
    if (transfer.replaces == kNone || Same(transfer.to) != p) continue;
    replaced_[transfer.replaces] = false;
    PlaceOfAccess(transfer.replaces, 1) = kNone;
    ReadWhereMade(transfer.replaces);
    transfer.begin = std::max(transfer.begin, transfer.replaces + 1);
    transfer.end = std::max(transfer.begin, transfer.end);
    transfer.replaces = kNone;
  }
}

}  // namespace mallocgame::hlo

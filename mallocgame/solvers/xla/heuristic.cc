// The whole allocation (XLA reference 4.0): preloads, then one buffer after the other, each with
// retries, repacking, and a second look at what its copies are good for.
#include "mallocgame/solvers/xla/heuristic.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "mallocgame/plan/pinned.h"
#include "mallocgame/solvers/xla/buffer_walk.h"
#include "mallocgame/solvers/xla/chips.h"
#include "mallocgame/solvers/xla/cost.h"
#include "mallocgame/solvers/xla/interval_picker.h"
#include "mallocgame/solvers/xla/memory.h"
#include "mallocgame/solvers/xla/order.h"

namespace mallocgame {
namespace {

// A buffer is allocated anew at most this often because its copies were not worth it. XLA has no
// such limit, and rarely needs more than a few.
constexpr int kMostLooks = 50;

// A preloaded buffer that would be held for a larger share of the program's time is held
// throughout.
constexpr double kMostOfProgramHeld = 0.6;

// Fast memory less the share keep_free. Game::usable_bytes() rounds that down to the alignment. XLA
// counts bytes and not units of the alignment, so the last buffer may end anywhere below the
// capacity; with the rounded one, some plans of games with keep_free are others.
int64_t Capacity(const Game& game) {
  const auto bytes = static_cast<double>(game.hardware().fast_bytes);
  return game.hardware().fast_bytes - static_cast<int64_t>(game.options().keep_free * bytes);
}

class Allocator {
 public:
  Allocator(const Game& game, const XlaOptions& options)
      : game_(game), program_(game.program()), hardware_(AsXlaReckons(game.hardware())),
        options_(OptionsForChip(options, hardware_)), capacity_(Capacity(game)),
        cost_(program_, hardware_, options_),
        picker_(
            program_, cost_.elapsed_ps(),
            {options.min_overlap, options.preferred_overlap,
             options.max_overlap * static_cast<double>(hardware_.TransferPs(hardware_.fast_bytes)),
             options.loop_weight}),
        defined_(XlaDefinitions(program_)),
        tables_{program_, hardware_, cost_, picker_, defined_, options_},
        memory_(cost_.elapsed_ps(), BytesBelowPlayers(program_, game.hardware()), capacity_,
                hardware_),
        in_main_(program_.accesses().size(), false), in_fast_(program_.accesses().size(), false) {
    for (size_t a = 0; a < in_main_.size(); ++a) in_main_[a] = game.in_main(AccessId(a));
  }

  XlaOutcome Run(const Deadline& deadline) {
    Preload();
    bool finished = true;
    std::vector<BufferId> order = XlaOrder(game_, cost_, defined_);
    for (const BufferId buffer : order) {
      if (buffer_done_[buffer.index()] || program_.buffer(buffer).size_bytes > capacity_) continue;
      if (deadline.Passed()) {
        finished = false;
        break;
      }
      AllocateBuffer(buffer);
    }
    return {KeepTransfers(MakePlan()), std::move(order), counts_, finished};
  }

 private:
  void AllocateBuffer(BufferId buffer) {
    bool repacked = false;
    int looks = 0;
    for (int retry = 0; retry < options_.max_retries;) {
      Proposal proposal;
      const bool last = retry >= options_.max_retries - 1;
      const uint32_t failures =
          XlaBufferWalk(tables_, memory_, in_main_, in_fast_, buffer, retry, last, proposal).Run();
      ++counts_.attempts;
      counts_.out_of_memory += (failures & kOutOfMemory) != 0;
      counts_.undone += (failures & kMustUndo) != 0;
      if ((failures & kMustUndo) != 0) {
        ++retry;
      } else if ((failures & kOutOfMemory) != 0 && !replaced_ && !repacked &&
                 counts_.repacks < options_.max_repacks) {
        memory_.Undo(proposal);
        repacked = true;
        ++counts_.repacks;
        if (memory_.heap.Repack([this](Tick t) { return program_.instruction(t).logical_time; })) {
          ++counts_.repacked;
        } else {
          ++retry;
        }
        continue;
      } else if (looks < kMostLooks && KeepInefficientOut(proposal)) {
        ++looks;
      } else {
        memory_.AddEdges(proposal);
        return Commit(std::move(proposal));
      }
      memory_.Undo(proposal);
    }
  }

  void Commit(Proposal proposal) {
    for (const auto& [access, stay] : proposal.served) in_fast_[access.index()] = true;
    // A copy that replaces an instruction reads its operand from main memory.
    for (const StayCopy& copy : proposal.copies) {
      if (!copy.replaces) continue;
      in_main_[program_.instruction(*copy.replaces).first_access] = true;
      replaced_ = true;
    }
    proposals_.push_back(std::move(proposal));
  }

  // Sends the accesses of stays that copy more than they use to main memory; false if there are
  // none.
  bool KeepInefficientOut(const Proposal& proposal) {
    std::vector<double> copied(proposal.stays.size(), 0), used(proposal.stays.size(), 0);
    for (const StayCopy& copy : proposal.copies) {
      const size_t stay = copy.stay;
      if (copy.part.value_or(0) == 0)
        copied[stay] +=
            static_cast<double>(program_.buffer(proposal.stays[stay].buffer).size_bytes);
    }
    for (const auto& [access, stay] : proposal.served) {
      used[stay] += static_cast<double>(cost_.AccessedBytes(access));
    }
    bool found = false;
    for (const auto& [access, stay] : proposal.served) {
      const size_t s = stay;
      if (copied[s] <= 0 || options_.inefficient_use_to_copy * copied[s] <= used[s]) continue;
      in_main_[access.index()] = true;
      found = true;
    }
    return found;
  }

  // XLA's cross-program prefetch. It holds its bytes for the whole program. If others want them and
  // the last use is early, it holds them until that use, and again at the end of the program to be
  // prefetched for the next run.
  void Preload() {
    buffer_done_.assign(program_.buffers().size(), false);
    const Tick ticks = program_.ticks();
    if (program_.scope_end(0) < ticks) return;
    int32_t left = game_.hardware().max_preloads;
    for (const BufferId buffer : XlaPreloadOrder(program_)) {
      if (left == 0) return;
      const int64_t size = program_.buffer(buffer).size_bytes;
      const auto accesses = program_.accesses_of(buffer);
      const bool forbidden = std::any_of(accesses.begin(), accesses.end(),
                                         [this](AccessId a) { return game_.in_main(a); });
      const auto offset =
          size > capacity_ || forbidden ? std::nullopt : memory_.heap.BestFit(0, ticks, size);
      if (!offset) continue;
      const Tick last_use = program_.access(accesses.back()).tick;
      const std::optional<Tick> again = PreloadedAgain(last_use, size);
      Proposal proposal;
      memory_.AddStay(proposal, buffer, {0, again ? last_use + 1 : ticks, *offset, size});
      if (again) memory_.heap.Add({*again, ticks, *offset, size});
      for (const AccessId id : accesses) proposal.served.emplace_back(id, 0);
      proposal.copies.push_back({CopyKind::kPrefetch,
                                 0,
                                 0,
                                 program_.access(accesses.front()).tick,
                                 true,
                                 std::nullopt,
                                 {},
                                 std::nullopt});
      memory_.prefetches.windows.Add(0, program_.access(accesses.front()).tick);
      Commit(std::move(proposal));
      buffer_done_[buffer.index()] = true;
      --left;
    }
  }

  // Where the prefetch for the next run begins, if that frees the bytes for a good part of the
  // program.
  std::optional<Tick> PreloadedAgain(Tick last_use, int64_t size) const {
    double bytes = 0;
    for (const Buffer& buffer : program_.buffers())
      bytes += buffer.eligible ? static_cast<double>(buffer.size_bytes) : 0;
    if (bytes <= static_cast<double>(capacity_)) return std::nullopt;
    const Tick ticks = program_.ticks();
    const std::optional<Tick> from =
        picker_.Preferred(last_use, ticks - 2, ticks, tables_.WindowPs(size));
    if (!from || *from <= last_use) return std::nullopt;
    const double held = picker_.Elapsed(0, last_use) + picker_.Elapsed(*from, ticks);
    if (held >= kMostOfProgramHeld * picker_.Elapsed(0, ticks)) return std::nullopt;
    return from;
  }

  // XLA ties what a transfer holds to one place. Where its uses came out in different ones here, or
  // it is evicted meanwhile, the buffer is in main memory.
  Plan KeepTransfers(Plan plan) const {
    for (size_t a = 0; a < program_.accesses().size(); ++a) {
      const Access& begins = program_.accesses()[a];
      if (begins.held_until == 0) continue;
      const auto of = program_.accesses_of(begins.buffer);
      const bool together = std::all_of(std::lower_bound(of.begin(), of.end(), AccessId(a)),
                                        of.end(), [&](AccessId other) {
                                          return program_.access(other).tick >= begins.held_until ||
                                                 plan.served_by[other.index()] == plan.served_by[a];
                                        });
      const bool evicted = std::any_of(plan.copies.begin(), plan.copies.end(), [&](const Copy& c) {
        return c.kind == CopyKind::kEviction && c.residence == plan.served_by[a] &&
               begins.tick < c.begin && c.begin < begins.held_until;
      });
      if (!together || evicted) plan = InMainMemory(plan, begins.buffer);
    }
    return plan;
  }

  Plan MakePlan() const {
    Plan plan = AllMainPlan(program_, game_.hardware());
    for (const Proposal& proposal : proposals_) {
      const int64_t first = plan.residences.size();
      for (const Stay& stay : proposal.stays) {
        plan.residences.push_back(
            {stay.buffer, memory_.heap.chunk(stay.chunk).offset, stay.begin, stay.end});
      }
      for (const auto& [access, stay] : proposal.served)
        plan.served_by[access.index()] = ResidenceId(first + stay);
      for (const StayCopy& copy : proposal.copies) {
        const Stay& stay = proposal.stays[copy.stay];
        const Chunk& chunk = memory_.heap.chunk(stay.chunk);
        const int64_t part_begin = copy.part ? chunk.PartOffset(*copy.part) : 0;
        const int64_t bytes = copy.part ? chunk.PartBytes(*copy.part) : chunk.size;
        // An eviction that ends in a loop is done where its residence ends.
        plan.copies.push_back({copy.kind, ResidenceId(first + copy.stay), copy.begin,
                               std::min(copy.end, stay.end), part_begin, part_begin + bytes,
                               copy.preload, copy.replaces.value_or(-1)});
      }
    }
    // Of the copies of one tick, evictions go first.
    std::sort(plan.copies.begin(), plan.copies.end(), [](const Copy& a, const Copy& b) {
      const auto key = [](const Copy& c) {
        return std::tuple(c.begin, c.kind == CopyKind::kPrefetch, !c.preload, c.end, c.residence,
                          c.part_begin);
      };
      return key(a) < key(b);
    });
    return plan;
  }

  const Game& game_;
  const Program& program_;
  const Hardware hardware_;
  const XlaOptions options_;
  const int64_t capacity_;
  const XlaCost cost_;
  const IntervalPicker picker_;
  const std::vector<Tick> defined_;
  const XlaTables tables_;
  XlaMemory memory_;
  std::vector<bool> in_main_;      // for each access: main memory must serve it
  std::vector<bool> in_fast_;      // for each access: fast memory serves it
  std::vector<bool> buffer_done_;  // for each buffer: it is preloaded
  std::vector<Proposal> proposals_;
  bool replaced_ = false;  // a plain copy; XLA packs nothing anew after that
  XlaCounts counts_;
};

}  // namespace

XlaOutcome PlanLikeXla(const Game& game, const Deadline& deadline, const XlaOptions& options) {
  return Allocator(game, options).Run(deadline);
}

}  // namespace mallocgame

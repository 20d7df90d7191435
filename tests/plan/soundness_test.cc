// A machine that moves real bytes must carry out correctly every plan that Validate accepts,
// however its copies are timed. The plans are those of random games, changed at random.
#include <algorithm>
#include <string>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/simulator/simulate.h"
#include "tests/catch.h"
#include "tests/support/machine.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

// A larger number found nothing that this one doesn't.
constexpr uint64_t kSeeds = 1500;

// Returns a tick near the old one, or sometimes any tick.
Tick Near(Tick tick, Tick ticks, Rng& rng) {
  if (rng.Below(4) == 0) return static_cast<Tick>(rng.Below(ticks + 1));
  return std::clamp(tick + static_cast<Tick>(rng.Below(5)) - 2, 0, ticks);
}

// Makes one random change, which may leave a plan that is not well formed.
void Change(const Program& program, const Hardware& hardware, Plan& plan, Rng& rng) {
  const auto pick = [&rng](const auto& list) { return rng.Below(list.size()); };
  const uint32_t kind = rng.Below(9);
  if (kind < 3 && !plan.copies.empty()) {
    const uint32_t i = pick(plan.copies);
    Copy& c = plan.copies[i];
    if (kind == 0) c.begin = Near(c.begin, program.ticks(), rng);
    if (kind == 1) c.end = Near(c.end, program.ticks(), rng);
    if (kind == 2) plan.copies.erase(plan.copies.begin() + i);
  } else if (kind < 6 && !plan.residences.empty()) {
    Residence& r = plan.residences[pick(plan.residences)];
    if (kind == 3) r.begin = Near(r.begin, program.ticks(), rng);
    if (kind == 4) r.end = Near(r.end, program.ticks(), rng);
    if (kind == 5) r.offset = rng.Below(hardware.fast_bytes);
  } else if (kind == 6 && !plan.served_by.empty()) {
    const auto id = static_cast<int64_t>(rng.Below(plan.residences.size() + 1)) - 1;
    plan.served_by[pick(plan.served_by)] = ResidenceId(id);
  } else if (kind == 7 && !plan.residences.empty() && rng.Below(2) == 0) {
    // Gives one access a residence of its own, which a prefetch fills or not.
    const AccessId id(static_cast<int64_t>(pick(program.accesses())));
    const Access& a = program.access(id);
    const auto offset = static_cast<int64_t>(rng.Below(hardware.fast_bytes));
    plan.residences.push_back({a.buffer, offset, a.tick, a.tick + 1});
    plan.served_by[id.index()] = ResidenceId(static_cast<int64_t>(plan.residences.size()) - 1);
  } else if (kind == 8 && !plan.residences.empty()) {
    Copy c;
    c.kind = rng.Below(2) == 0 ? CopyKind::kPrefetch : CopyKind::kEviction;
    c.residence = ResidenceId(pick(plan.residences));
    const Residence& r = plan.residences[c.residence.index()];
    c.begin = c.end = rng.Below(2) == 0 ? r.begin : Near(r.end, program.ticks(), rng);
    c.part_end = program.buffer(r.buffer).size_bytes;
    plan.copies.push_back(c);
  }
  std::stable_sort(plan.copies.begin(), plan.copies.end(),
                   [](const Copy& a, const Copy& b) { return a.begin < b.begin; });
}

TEST_CASE("valid plans work on a machine that moves bytes, and the machine tells others apart") {
  int valid = 0, broken = 0, found = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Rng rng(seed, 7);
    testing::RandomProgramOptions options;
    options.instructions = 3 + static_cast<int>(rng.Below(12));
    options.constrained = seed % 2 == 1;
    const auto program = testing::RandomProgram(rng, options);
    const Hardware hardware = testing::TestHardware(8 + rng.Below(24));
    TimeGameOptions game_options;
    game_options.min_buffer_bytes = 0;
    const auto game = Game::Create(program, hardware, game_options);
    REQUIRE(game.ok());
    const CostModel cost_model(program, hardware);
    const Plan played = testing::PlayAtRandom(**game, rng).ToPlan();
    for (int variant = 0; variant < 30; ++variant) {
      Plan plan = played;
      for (uint32_t n = variant == 0 ? 0 : 1 + rng.Below(3); n > 0; --n)
        Change(*program, hardware, plan, rng);
      const Verdict verdict = Validate(*program, hardware, plan);
      INFO(verdict.message);
      CHECK((variant > 0 || verdict.ok()));
      if (verdict.rule == Rule::kMalformed) continue;
      const std::string at_once = RunPlan(*program, hardware, plan, testing::CopyTiming::kAtOnce);
      const std::string late = RunPlan(*program, hardware, plan, testing::CopyTiming::kLate);
      CHECK(Simulate(cost_model, plan).ok());
      if (verdict.ok()) {
        ++valid;
        if (!at_once.empty() || !late.empty()) {
          FAIL("seed " << seed << " variant " << variant << ": " << at_once << " / " << late << "\n"
                       << PlanToString(*program, plan));
        }
      } else {
        ++broken;
        found += !at_once.empty() || !late.empty();
      }
    }
  }
  // The test means something only if there are many plans of both kinds, and the machine sees most
  // of what is wrong.
  UNSCOPED_INFO(valid << " valid, " << broken << " broken, " << found
                      << " of them found by the machine");
  CHECK(valid > 5000);
  CHECK(broken > 5000);
  CHECK(found * 2 > broken);
}

}  // namespace
}  // namespace mallocgame

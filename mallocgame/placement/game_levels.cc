#include "mallocgame/placement/game_levels.h"

#include <algorithm>
#include <array>
#include <utility>

#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/priority/priority_tables.h"
#include "mallocgame/placement/placement.h"

namespace mallocgame {
namespace {

// On a time game a tensor is in fast or in main memory.
class TensorLevels final : public GameLevels {
 public:
  explicit TensorLevels(const Program& program)
      : GameLevels(MakePlacementGraph(program)), program_(program) {}

  std::vector<std::string> names() const override { return {"fast", "main"}; }

  void Write(absl::Span<const uint8_t> map, Intent& intent) const override {
    for (size_t a = 0; a < intent.size(); ++a) {
      const int32_t tensor = TensorOf(a);
      intent[a].mode = tensor >= 0 && map[tensor] == 0 ? Mode::kKeep : Mode::kSkip;
    }
  }

  // In fast memory is what was served from there at each access.
  void Decided(int32_t segment, Mode mode, absl::Span<uint8_t> map) const override {
    if (const int32_t tensor = TensorOf(segment); tensor >= 0 && mode == Mode::kSkip)
      map[tensor] = 1;
  }

 private:
  // At one access is enough.
  void Want(int32_t segment, Mode mode, absl::Span<uint8_t> map) const override {
    if (const int32_t tensor = TensorOf(segment); tensor >= 0 && mode != Mode::kSkip)
      map[tensor] = 0;
  }
  int32_t TensorOf(size_t access) const {
    return graph_.tensor_of[program_.access(AccessId(access)).buffer.index()];
  }

  const Program& program_;
};

// What the levels of a priority game stand for. The first ones place a residence, the last one
// leaves everything in main memory.
constexpr std::array kModeOfLevel = {Mode::kLate, Mode::kEarly, Mode::kPreload, Mode::kSplit,
                                     Mode::kSkip};
static_assert(kModeOfLevel.size() == kActionModes);
static_assert(kModeOfLevel[PlacementProblem::kSplitLevel] == Mode::kSplit);

uint8_t LevelOf(Mode mode) {
  const auto* const level = std::find(kModeOfLevel.begin(), kModeOfLevel.end(), mode);
  return static_cast<uint8_t>(level - kModeOfLevel.begin());
}

// By how many runs of 1,000 a run has its turn later than by importance, for each level of its
// second number.
constexpr std::array kLater = {-128, -32, 32, 128, 0};
static_assert(kLater.size() == kActionModes);

// On a priority game a run has a mode and a turn.
class RunLevels final : public GameLevels {
 public:
  explicit RunLevels(const PriorityTables& tables)
      : GameLevels(MakePlacementGraph(tables)), runs_(tables.runs) {}

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const Mode mode : kModeOfLevel) names.emplace_back(ModeName(mode));
    return names;
  }

  // Ranks are in thousandths of a place. Of equal ones that of the more important run comes first.
  void Write(absl::Span<const uint8_t> map, Intent& intent) const override {
    const auto places = static_cast<int64_t>(intent.size());
    for (size_t r = 0; r < intent.size(); ++r) {
      const int32_t node = runs_[r].id;
      intent[r].mode = kModeOfLevel[map[2 * node]];
      intent[r].rank =
          static_cast<double>(1000 * static_cast<int64_t>(r) + kLater[map[2 * node + 1]] * places);
    }
  }

  void Decided(int32_t segment, Mode mode, absl::Span<uint8_t> map) const override {
    map[2 * runs_[segment].id] = LevelOf(mode);
  }

 private:
  void Want(int32_t segment, Mode mode, absl::Span<uint8_t> map) const override {
    Decided(segment, mode, map);
  }

  absl::Span<const Run> runs_;
};

}  // namespace

std::unique_ptr<const GameLevels> GameLevels::Of(const Game& game) {
  if (const PriorityGame* const priority = PriorityGame::From(game); priority != nullptr)
    return std::make_unique<const RunLevels>(priority->priority_tables());
  return std::make_unique<const TensorLevels>(game.program());
}

std::vector<uint8_t> GameLevels::Read(const Intent& intent) const {
  std::vector<uint8_t> map(2 * graph_.nodes.size(), static_cast<uint8_t>(names().size() - 1));
  for (size_t i = 0; i < intent.size(); ++i)
    Want(static_cast<int32_t>(i), intent[i].mode, absl::MakeSpan(map));
  return map;
}

}  // namespace mallocgame

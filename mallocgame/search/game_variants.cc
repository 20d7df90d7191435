#include "mallocgame/search/game_variants.h"

#include <algorithm>

#include "mallocgame/base/error.h"
#include "mallocgame/game/games.h"

namespace mallocgame {
std::shared_ptr<const Game> GameWith(const Game& game, const GameOptions& options) {
  auto with = Game::Create(game.shared_program(), game.hardware(), options);
  MG_CHECK(with.ok());
  return *std::move(with);
}

std::shared_ptr<const Game> GameAtOtherPrices(const Game& game) {
  const BothPrices* const both = game.program().both();
  if (both == nullptr) return nullptr;
  const auto hardware = CalibrateHardware(game.hardware(), both->law);
  MG_CHECK(hardware.ok());
  auto others = Game::Create(both->other, *hardware, game.options());
  MG_CHECK(others.ok());
  return *std::move(others);
}

std::shared_ptr<const PriorityGame> PriorityGameWith(const Game& game,
                                                     const PriorityGameOptions& options) {
  auto with = PriorityGame::Create(game.shared_program(), game.hardware(), options);
  MG_CHECK(with.ok());
  return *std::move(with);
}

std::shared_ptr<const Game> GameShowing(const Game& game, int candidates) {
  const std::unique_ptr<GameOptions> options = game.options().Clone();
  if (!options->Set("candidates", int64_t{candidates}).ok() || *options == game.options())
    return game.shared_from_this();
  return GameWith(game, *options);
}

std::shared_ptr<const PriorityGame> GameToSearch(const PriorityGame& game) {
  PriorityGameOptions options = game.options();
  options.candidates = kMaxCandidates;
  options.exact_stalls = false;
  return options == game.options() ? game.shared() : PriorityGameWith(game, options);
}

std::shared_ptr<const Game> GameNamed(absl::string_view name, const Game& game) {
  if (game.options().game() == name) return game.shared_from_this();
  const auto options = OptionsOfGame(name);
  MG_CHECK(options.ok());
  (*options)->TakeOver(game.options());
  return GameWith(game, **options);
}

std::shared_ptr<const TimeGame> TimeGameOf(const Game& game) {
  return std::static_pointer_cast<const TimeGame>(GameNamed("time", game));
}

std::shared_ptr<const PriorityGame> PriorityGameOf(const Game& game) {
  return std::static_pointer_cast<const PriorityGame>(GameNamed("priority", game));
}

PriorityGameOptions PriorityOptionsOf(const Game& game) {
  PriorityGameOptions options;
  options.TakeOver(game.options());
  return options;
}

std::shared_ptr<const Game> GameOfSmallBuffers(const Game& game) {
  if (game.options().min_buffer_bytes <= kSmallBufferBytes) return nullptr;
  const std::unique_ptr<GameOptions> options = game.options().Clone();
  options->min_buffer_bytes = kSmallBufferBytes;
  return GameWith(game, *options);
}

double WorthOfSmallBuffers(const Game& game) {
  const Program& program = game.program();
  double saved_ps = 0;
  for (Tick t = 0; t < program.ticks(); ++t) {
    uint64_t large = 0, all = 0;
    const Instruction& instruction = program.instruction(t);
    for (int32_t slot = 0; slot < instruction.access_count; ++slot) {
      const AccessId access(instruction.first_access + slot);
      const int64_t size = program.buffer(program.access(access).buffer).size_bytes;
      if (size > game.usable_bytes() || size < kSmallBufferBytes) continue;
      all |= uint64_t{1} << slot;
      if (size >= game.options().min_buffer_bytes) large |= uint64_t{1} << slot;
    }
    if (all == large) continue;
    const int64_t saved_once_ps =
        game.cost_model().PriceOf(t, large).time_ps - game.cost_model().PriceOf(t, all).time_ps;
    saved_ps += static_cast<double>(saved_once_ps) * static_cast<double>(program.trips(t));
  }
  return saved_ps / std::max(1.0, static_cast<double>(game.all_main_ps()));
}

std::shared_ptr<const Game> GameByDefault(const Game& game) {
  constexpr double kLeastWorth = 0.01;
  const bool small = WorthOfSmallBuffers(game) >= kLeastWorth;
  return small ? GameOfSmallBuffers(game) : game.shared_from_this();
}

std::shared_ptr<const Game> GameWithoutLargest(const Game& game) {
  const Program& program = game.program();
  const std::unique_ptr<GameOptions> options = game.options().Clone();
  bool found = false;
  for (size_t b = 0; b < program.buffers().size(); ++b) {
    const Buffer& buffer = program.buffers()[b];
    if (!buffer.eligible || 2 * buffer.size_bytes <= game.usable_bytes() ||
        buffer.size_bytes > game.usable_bytes())
      continue;
    const auto accesses = program.accesses_of(BufferId(static_cast<int64_t>(b)));
    options->forbidden.insert(options->forbidden.end(), accesses.begin(), accesses.end());
    found |= !accesses.empty();
  }
  if (!found) return nullptr;
  return GameWith(game, *options);
}

}  // namespace mallocgame

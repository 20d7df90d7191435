// Other games of the same program and hardware, which searches turn to.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/time/time_game.h"

namespace mallocgame {

// The same game with other options, which must be in their ranges.
std::shared_ptr<const Game> GameWith(const Game& game, const GameOptions& options);

// The same game at the other prices of its program (Program::both); null: there are none.
std::shared_ptr<const Game> GameAtOtherPrices(const Game& game);

// The same game, showing so many candidates. A game that shows none stays as it is.
std::shared_ptr<const Game> GameShowing(const Game& game, int candidates);

// The same game for a search that asks for latencies at the ends of games: it shows all candidates
// that it can, and takes no time for exact stalls on the way.
std::shared_ptr<const PriorityGame> GameToSearch(const PriorityGame& game);

// Another game of the same program and hardware, by its name, with the options that both have; the
// game itself if it is of that name.
std::shared_ptr<const Game> GameNamed(absl::string_view name, const Game& game);
std::shared_ptr<const TimeGame> TimeGameOf(const Game& game);
std::shared_ptr<const PriorityGame> PriorityGameOf(const Game& game);
// The options of the last.
PriorityGameOptions PriorityOptionsOf(const Game& game);
// The priority game of these options.
std::shared_ptr<const PriorityGame> PriorityGameWith(const Game& game,
                                                     const PriorityGameOptions& options);

// A smaller buffer is as good as a scalar.
inline constexpr int64_t kSmallBufferBytes = 512;
// The same game, which also asks about small buffers. There are many of them and they rarely
// matter, but on some chips (v5e, v6e) an instruction waits for its smallest operand. Null if the
// game asks about them already.
std::shared_ptr<const Game> GameOfSmallBuffers(const Game& game);

// What small buffers can save: the share of the all-main latency that instructions take less if
// their small buffers, too, are in fast memory. Negative if they take more.
double WorthOfSmallBuffers(const Game& game);

// The game that is played where nobody says how small a buffer it asks about: of small buffers too
// where they are worth 1 % or more. Without them XLA's own plan may be out of reach.
std::shared_ptr<const Game> GameByDefault(const Game& game);

// The same game, but buffers that fill more than half of fast memory stay out of it. Null if
// there are none.
std::shared_ptr<const Game> GameWithoutLargest(const Game& game);

}  // namespace mallocgame

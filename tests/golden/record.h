// A rule of the game, shown by recorded games on a program small enough to draw: what is written
// down is all that a caller of the library sees of them, as text that a person can follow.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "mallocgame/game/game.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/program/program.h"
#include "tests/support/programs.h"

namespace mallocgame::golden {

// An action of the time game, or of the priority game.
struct Choice {
  // NOLINTNEXTLINE(google-explicit-constructor): an example lists the actions themselves.
  Choice(Action action) : number(static_cast<int>(action)) {}
  Choice(int candidate, Mode mode) : number(PriorityAction(candidate, mode)) {}
  int number;
};

// One game, from its first decision to its last.
struct Play {
  std::string shows;  // what this game shows, in a few words
  std::vector<Choice> actions;
};

struct Example {
  Example(std::string file, std::string sentence)
      : name(std::move(file)), rule(std::move(sentence)) {
    options.min_buffer_bytes = priority.min_buffer_bytes = 0;
  }

  std::string name;  // of its file, without ".txt"
  std::string rule;  // a sentence
  testing::ProgramBuilder program;
  Hardware hardware = testing::TestHardware(8);
  // Every buffer is asked about, unless the example says otherwise.
  TimeGameOptions options;
  PriorityGameOptions priority;
  bool is_priority_game = false;  // else it is a time game
  std::vector<Play> plays;

  const GameOptions& game_options() const {
    return is_priority_game ? static_cast<const GameOptions&>(priority) : options;
  }
};

// Program, hardware and options, then each game decision by decision, then its plan, what Validate
// says of it and what Simulate says it costs. A game that can't be played as written is recorded up
// to the action that is refused.
std::string Record(const Example& example);

}  // namespace mallocgame::golden

// Where a program does the same again, as it does in layers that are unrolled. Found by structure:
// two ticks are the same if their instructions have the same prices and accesses, and so have those
// around them. Names are not looked at.
#pragma once

#include <vector>

#include "mallocgame/base/ids.h"
#include "mallocgame/game/game.h"

namespace mallocgame {

class Repeats {
 public:
  explicit Repeats(const Game& game);

  // Whether no tick is the same as another one.
  bool empty() const { return empty_; }
  // Of all ticks that are the same as this one, the one in the middle, which stands for them.
  Tick representative(Tick tick) const { return representative_[tick]; }

 private:
  bool empty_ = true;
  std::vector<Tick> representative_;
};

}  // namespace mallocgame

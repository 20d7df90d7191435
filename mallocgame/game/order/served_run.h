// How an order game served a run of accesses.
#ifndef MALLOCGAME_GAME_ORDER_SERVED_RUN_H_
#define MALLOCGAME_GAME_ORDER_SERVED_RUN_H_

#include <cstdint>

#include "mallocgame/base/ids.h"

namespace mallocgame {

// The first and the last access name the run: they mean the same in all order games of a program.
struct ServedRun {
  AccessId first, last;
  uint8_t service = 0;  // a value of Service (order_state.h)
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_ORDER_SERVED_RUN_H_

// What fast memory is worth where the runs of an order game compete for it, without a linear
// programme.
#ifndef MALLOCGAME_GAME_ORDER_RUN_PRICES_H_
#define MALLOCGAME_GAME_ORDER_RUN_PRICES_H_

#include "mallocgame/game/order/order_tables.h"
#include "mallocgame/game/prices.h"

namespace mallocgame {

// Runs get bytes by what they save for each byte and picosecond held, the most first, as long as
// those before them leave room: an offset is not asked for. At each time space is worth what the
// first run saves for a byte and a picosecond that finds no room then; nothing where all find room.
// The channel is free.
Prices RunPrices(const OrderTables& tables);

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_ORDER_RUN_PRICES_H_

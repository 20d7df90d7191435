// How a player serves runs who has a wish for each of them.
#ifndef MALLOCGAME_GAME_ORDER_SERVICES_H_
#define MALLOCGAME_GAME_ORDER_SERVICES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "mallocgame/game/game.h"
#include "mallocgame/game/order/order_state.h"
#include "mallocgame/game/order/served_run.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

// For each run, how it would be served by a player who wants to get `plan`, which must be well
// formed: Split where the plan serves its accesses in several ways.
std::vector<Service> ServicesOf(const Game& game, const Plan& plan);

// The first and the last access of a run.
std::pair<AccessId, AccessId> AccessesOf(const OrderTables& tables, int32_t run);

// What a game decided so far, in its order.
std::vector<ServedRun> ServedRunsOf(const OrderState& state);

// Serves a candidate, of which there must be so many, as is wished or, if that is illegal, in the
// nearest way that is legal. Returns how.
Service ServeAs(OrderState& state, int candidate, Service wished);

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_ORDER_SERVICES_H_

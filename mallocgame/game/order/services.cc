#include "mallocgame/game/order/services.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

// What is tried instead of an illegal service, the nearest first.
constexpr std::array<std::array<Service, 4>, kServices> kOtherServices = {{
    {Service::kLate, Service::kSplit, Service::kEarly, Service::kPreload},
    {Service::kSplit, Service::kSkip, Service::kPreload, Service::kEarly},
    {Service::kLate, Service::kSplit, Service::kSkip, Service::kPreload},
    {Service::kLate, Service::kSplit, Service::kSkip, Service::kEarly},
    {Service::kLate, Service::kSkip, Service::kEarly, Service::kPreload},
}};

}  // namespace

std::vector<Service> ServicesOf(const Game& game, const Plan& plan) {
  const OrderTables& tables = game.order_tables();
  std::vector<bool> preloaded(plan.residences.size());
  for (const Copy& copy : plan.copies) {
    if (copy.preload) preloaded[copy.residence.index()] = true;
  }
  std::vector<Service> services;
  for (const Run& run : tables.runs) {
    const auto served_by = [&](int32_t i) {
      return plan.served_by[tables.arrangement.decision(run.buffer, i).access.index()];
    };
    bool same = true, any = false;
    for (int32_t i = run.first; i <= run.last; ++i) {
      same &= served_by(i) == served_by(run.first);
      any |= served_by(i).valid();
    }
    Service service = Service::kSplit;
    if (!any) {
      service = Service::kSkip;
    } else if (same) {
      const ResidenceId id = served_by(run.first);
      service = run.first == 0 && preloaded[id.index()]                        ? Service::kPreload
                : plan.residences[id.index()].begin < run.planned.latest_fetch ? Service::kEarly
                                                                               : Service::kLate;
    }
    services.push_back(service);
  }
  return services;
}

std::pair<AccessId, AccessId> AccessesOf(const OrderTables& tables, int32_t run) {
  const Run& own = tables.runs[run];
  return {tables.arrangement.decision(own.buffer, own.first).access,
          tables.arrangement.decision(own.buffer, own.last).access};
}

std::vector<ServedRun> ServedRunsOf(const OrderState& state) {
  std::vector<ServedRun> served;
  for (const OrderState::Decided& decided : state.decided()) {
    const auto [first, last] = AccessesOf(state.tables(), decided.run);
    served.push_back({first, last, static_cast<uint8_t>(decided.service)});
  }
  return served;
}

Service ServeAs(OrderState& state, int candidate, Service wished) {
  if (state.TryApply(OrderAction(candidate, wished))) return wished;
  for (const Service other : kOtherServices[static_cast<size_t>(wished)]) {
    if (state.TryApply(OrderAction(candidate, other))) return other;
  }
  MG_CHECK(false);
  return wished;
}

}  // namespace mallocgame

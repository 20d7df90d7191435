// Values to messages and back, field by field.
#include "mallocgame/replay/wire.h"

#include <string>
#include <vector>

#include "mallocgame/game/time/time_game.h"
#include "mallocgame/replay/replay.pb.h"
#include "tests/catch.h"
#include "tests/replay/sample.h"

namespace mallocgame::replay {
namespace {

using Catch::Matchers::Contains;

template <class Field>
std::vector<int64_t> StoredFields(const Field& field) {
  return {field.begin(), field.end()};
}

TEST_CASE("hardware comes back with every field, and is validated") {
  mallocgame::Hardware hardware = *HardwarePreset("tpu_v5e");
  hardware.name = "mine";
  hardware.max_preloads = 3;
  Hardware wire;
  ToWire(hardware, &wire);
  CHECK(wire.fast_bytes() == hardware.fast_bytes);
  CHECK(*HardwareFromWire(wire) == hardware);

  wire.set_alignment_bytes(0);
  CHECK_THAT(std::string(HardwareFromWire(wire).status().message()), Contains("alignment_bytes"));
  ToWire(hardware, &wire);
  wire.set_name("\xff");
  CHECK(HardwareFromWire(wire).status().message() == "hardware name: not UTF-8 text");
  ToWire(hardware, &wire);
  wire.set_askable(true);
  CHECK_THAT(std::string(HardwareFromWire(wire).status().message()),
             Contains("askable true, allowed: false"));
}

// Two residences, a slice that is fetched and an eviction, and three accesses.
mallocgame::Plan SomePlan() {
  mallocgame::Plan plan;
  plan.program_fingerprint = "0123456789abcdef";
  plan.hardware = "mine";
  plan.residences = {{BufferId(4), 256, 1, 5}, {BufferId(2), 0, 3, 9}};
  plan.copies = {{CopyKind::kPrefetch, ResidenceId(0), 1, 2, 16, 32, true, -1},
                 {CopyKind::kEviction, ResidenceId(1), 8, 9, 0, 64, false, 7}};
  plan.served_by = {ResidenceId(0), ResidenceId(), ResidenceId(1)};
  return plan;
}

TEST_CASE("a plan is stored by columns of differences") {
  Plan wire;
  ToWire(SomePlan(), &wire);
  CHECK(StoredFields(wire.residences().buffer()) == std::vector<int64_t>{4, -2});
  CHECK(StoredFields(wire.residences().offset()) == std::vector<int64_t>{256, -256});
  CHECK(StoredFields(wire.copies().kind()) == std::vector<int64_t>{0, 1});
  CHECK(StoredFields(wire.copies().preload()) == std::vector<int64_t>{1, -1});
  CHECK(StoredFields(wire.copies().replaces()) == std::vector<int64_t>{-1, 8});
  CHECK(StoredFields(wire.served_by()) == std::vector<int64_t>{0, -1, 2});
  CHECK(*PlanFromWire(wire) == SomePlan());
}

TEST_CASE("a plan that is no plan is refused with its table, column and row") {
  Plan wire;
  ToWire(SomePlan(), &wire);
  wire.mutable_copies()->set_kind(1, 2);
  CHECK(PlanFromWire(wire).status().message() ==
        "plan, copies: column kind, row 1: 2 is out of range");
  wire.Clear();
  ToWire(SomePlan(), &wire);
  wire.mutable_residences()->add_end(0);
  CHECK(PlanFromWire(wire).status().message() ==
        "plan, residences: column end has 3 rows, the first column has 2");
}

TEST_CASE("options and totals come back; figures by tick are left behind") {
  mallocgame::TimeGameOptions options;
  options.min_buffer_bytes = 12;
  options.paper_actions = true;
  options.keep_free = 0.125;
  options.forbidden = {AccessId(9), AccessId(2)};
  GameOptions wire_options;
  ToWire(options, &wire_options);
  CHECK(**OptionsFromWire(wire_options) == options);
  // An option that has no field of its own.
  OtherOption& other = *wire_options.add_others();
  other.set_name("keep_free");
  other.set_real(0.5);
  options.keep_free = 0.5;
  CHECK(**OptionsFromWire(wire_options) == options);
  other.set_name("runs");
  CHECK_THAT(std::string(OptionsFromWire(wire_options).status().message()),
             Catch::Contains("options, found option 'runs' for the time game"));

  mallocgame::Report report;
  int64_t next = 1;
  for (int64_t mallocgame::Report::* figure :
       {&mallocgame::Report::latency_ps, &mallocgame::Report::latency_cold_ps,
        &mallocgame::Report::compute_ps, &mallocgame::Report::stall_ps,
        &mallocgame::Report::all_main_ps, &mallocgame::Report::prefetched_bytes,
        &mallocgame::Report::written_back_bytes, &mallocgame::Report::preloaded_bytes,
        &mallocgame::Report::peak_fast_bytes, &mallocgame::Report::exact_ps,
        &mallocgame::Report::predicted_ps, &mallocgame::Report::unpriced_ps}) {
    report.*figure = next++;  // all different, so that no two can be mixed up
  }
  Report wire_report;
  ToWire(report, &wire_report);
  CHECK(wire_report.unpriced_ps() == 12);
  CHECK(ReportFromWire(wire_report) == report);
  report.stall_at_ps = {1, 2};
  ToWire(report, &wire_report);
  CHECK(ReportFromWire(wire_report).stall_at_ps.empty());
}

TEST_CASE("text is UTF-8, messages are whole, and equal messages have equal bytes") {
  CHECK(*ReadText("name", "\u00e9") == "\u00e9");
  CHECK(ReadText("name", "\xe9").status().message() == "name: not UTF-8 text");

  Plan wire, back;
  ToWire(SomePlan(), &wire);
  const std::string bytes = SerializeMessage(wire);
  CHECK(bytes == SerializeMessage(wire));
  REQUIRE(ParseMessage(bytes, back).ok());
  CHECK(*PlanFromWire(back) == SomePlan());
  CHECK_FALSE(ParseMessage(bytes.substr(0, bytes.size() - 1), back).ok());
}

}  // namespace
}  // namespace mallocgame::replay

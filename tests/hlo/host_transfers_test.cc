// Transfers between the host and the chip: which there are, what they move, and how long a program
// waits for them.
#include "mallocgame/hlo/cost/host_transfers.h"

#include <string>
#include <vector>

#include "mallocgame/hlo/import/import.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;
using hlo_test::UnitHardware;

const char* const kChip = "f32[300,1024]";  // 1,228,800 bytes, 81.92 us at 15 GB/s
const char* const kHost = "f32[300,1024]{1,0:S(5)}";
constexpr int64_t kPs = 81'920'000;

std::vector<TimedTransfer> TransfersOf(const ModuleText& text) {
  const auto module = hlo_test::Parse(text);
  return HostTransfers(*module, *Flatten(*module));
}

// w is on the host; x is on the chip.
ModuleText Begin() {
  ModuleText m;
  m.Computation("main")
      .Add(std::string("w = ") + kHost + " parameter()")
      .Add(std::string("x = ") + kChip + " parameter()");
  return m;
}

TEST_CASE("an asynchronous copy from the host goes on until its end") {
  ModuleText m = Begin();
  m.Add(std::string("start = (") + kChip + ", " + kHost + ", u32[]) copy-start(w)")
      .Add(std::string("a = ") + kChip + " negate(x)")
      .Add(std::string("done = ") + kChip + " copy-done(start)")
      .Add(std::string("r = ") + kChip + " add(a, done)");
  const std::vector<TimedTransfer> transfers = TransfersOf(m);
  REQUIRE(transfers.size() == 1);
  CHECK(transfers[0].begin == 2);
  CHECK(transfers[0].end == 4);
  CHECK(transfers[0].ps == kPs);
}

TEST_CASE("what the host computes gets its operands and gives its results over PCIe") {
  ModuleText m;
  m.Computation("adam", true)
      .Add(std::string("g = ") + kChip + " parameter()")
      .Add(std::string("h = ") + kHost + " parameter()")
      .Add(std::string("s = ") + kChip + " add(g, h)");
  m.Computation("main")
      .Add(std::string("x = ") + kChip + " parameter()")
      .Add(std::string("w = ") + kHost + " parameter()")
      .Add(std::string("start = ((") + kChip + ", " + kHost + "), " + kChip +
               ", u32[]) async-start(x, w)",
           "async_execution_thread: 'host'", {"adam"})
      .Add(std::string("a = ") + kChip + " negate(x)")
      .Add(std::string("done = ") + kChip + " async-done(start)")
      .Add(std::string("r = ") + kChip + " add(a, done)");
  const std::vector<TimedTransfer> transfers = TransfersOf(m);
  REQUIRE(transfers.size() == 2);  // What lies on the host already needs none.
  for (const TimedTransfer& transfer : transfers) {
    CHECK(transfer.begin == 2);
    CHECK(transfer.end == 4);
    CHECK(transfer.ps == kPs);
  }
  const std::string bytes = m.Bytes();
  ImportInput input;
  input.module = bytes;
  const auto imported = ImportHlo(input, UnitHardware());
  REQUIRE(imported.ok());
  CHECK(imported->summary.host_transfers == 2);
  CHECK(imported->summary.host_computations == 1);
  CHECK(imported->summary.async_computations == 0);
  CHECK(imported->program->cost().instructions[4].link_ps == 2 * kPs - 300 * 1024);
}

TEST_CASE("of a slice of an array on the host, and of an update there, the part moves") {
  ModuleText m;
  m.Computation("wrapped", true)
      .Add(std::string("p = ") + kHost + " parameter()")
      .Add("s = f32[3,1024] slice(p)");
  m.Computation("main")
      .Add(std::string("w = ") + kHost + " parameter()")
      .Add("x = f32[6,1024] parameter()")
      .Add("i = s32[] parameter()")
      .Add(std::string("start = ((") + kHost + "), f32[3,1024], u32[]) async-start(w)", "",
           {"wrapped"})
      .Add("done = f32[3,1024] async-done(start)")
      .Add(std::string("new = ") + kHost + " dynamic-update-slice(w, x, i, i)")
      .Add(std::string("r = (f32[3,1024], ") + kHost + ") tuple(done, new)");
  const std::vector<TimedTransfer> transfers = TransfersOf(m);
  REQUIRE(transfers.size() == 2);
  CHECK(transfers[0].ps == kPs / 100);
  CHECK(transfers[1].ps == kPs / 50);
  CHECK(transfers[1].begin == transfers[1].end);
}

TEST_CASE("what stays on the host, or is on the chip, is no transfer") {
  ModuleText m = Begin();
  m.Add(std::string("same = ") + kHost + " copy(w)")
      .Add(std::string("a = ") + kChip + " copy(x)")
      .Add(std::string("r = (") + kHost + ", " + kChip + ") tuple(same, a)");
  CHECK(TransfersOf(m).empty());
}

TEST_CASE("a program waits for the host, wherever its arrays lie") {
  ModuleText m = Begin();
  m.Add(std::string("here = ") + kChip + " copy(w)")
      .Add(std::string("back = ") + kHost + " copy(x)")
      .Add(std::string("r = (") + kChip + ", " + kHost + ") tuple(here, back)");
  const std::string bytes = m.Bytes();
  ImportInput input;
  input.module = bytes;
  const absl::StatusOr<Imported> imported = ImportHlo(input, UnitHardware());
  REQUIRE(imported.ok());
  CHECK(imported->summary.host_transfers == 2);
  CHECK(imported->program->cost().instructions[2].link_ps == kPs);
  CHECK(imported->program->cost().instructions[3].link_ps == kPs);
}

}  // namespace
}  // namespace mallocgame::hlo

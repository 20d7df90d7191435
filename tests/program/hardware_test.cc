// Hardware: units, limits, presets, JSON.
#include "mallocgame/hardware/hardware.h"

#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

TEST_CASE("units") {
  Hardware h = testing::TestHardware(16);
  h.main_bytes_per_second = 3'000'000'000'000;
  h.clock_hz = 2'000'000'000'000;
  CHECK(h.TransferPs(0) == 0);
  CHECK(h.TransferPs(-1) == 0);
  CHECK(h.TransferPs(3) == 1);
  CHECK(h.TransferPs(4) == 2);  // up
  CHECK(h.CyclesToPs(4) == 2);
  CHECK(h.CyclesToPs(3) == 2);  // to nearest
  h.clock_hz = 3'000'000'000'000;
  CHECK(h.CyclesToPs(4) == 1);
  h.main_bytes_per_second = h.clock_hz = 1;
  CHECK(h.TransferPs(INT64_MAX) == int64_t{1} << 60);
  CHECK(h.CyclesToPs(INT64_MAX) == int64_t{1} << 60);
}

TEST_CASE("presets") {
  for (const std::string& name : HardwarePresetNames()) {
    const auto hardware = HardwarePreset(name);
    REQUIRE(hardware.ok());
    CHECK(hardware->name == name);
    CHECK(ValidateHardware(*hardware).ok());
  }
  const auto v4i = HardwarePreset("tpu_v4i");
  CHECK(v4i->fast_bytes == 128 << 20);
  CHECK(v4i->fast_memory_space == 3);
  CHECK(v4i->TransferPs(614) == 1000);
  CHECK(v4i->CyclesToPs(21) == 20000);

  const auto small = HardwarePreset("tpu_v4i_16mib");
  REQUIRE(small.ok());
  Hardware expected = *v4i;
  expected.name = "tpu_v4i_16mib";
  expected.fast_bytes = 16 << 20;
  CHECK(*small == expected);
  CHECK(HardwarePreset("tpu_v6e_95mib").ok());
  CHECK_FALSE(HardwarePreset("tpu_v6e_96mib").ok());  // 64 KiB too many
  // Names that begin with those of other chips.
  CHECK(HardwarePreset("tpu_v4_16mib")->main_bytes_per_second == 614'000'000'000);
  CHECK(HardwarePreset("tpu_v4_megacore_16mib")->main_bytes_per_second == 1'228'000'000'000);

  for (const char* name : {"tpu_v4i_0mib", "tpu_v4i_129mib", "tpu_v4i_-1mib", "tpu_v4i_016mib",
                           "tpu_v4i_mib", "tpu_v4i_ 1mib", "tpu_v4i_99999999999999999999mib"}) {
    const auto status = HardwarePreset(name).status();
    INFO(name);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(status.message()), Catch::Contains("1 to 128"));
  }
  for (const char* name :
       {"", "tpu", "tpu_v4i_", "tpu_v4i_16", "tpu_v4i16mib", "tpu_v4_mega", "TPU_V4I"}) {
    const auto status = HardwarePreset(name).status();
    INFO(name);
    CHECK(status.code() == absl::StatusCode::kNotFound);
    CHECK_THAT(std::string(status.message()), Catch::Contains("tpu_v5e, tpu_v6e, tpu7x"));
  }
}

TEST_CASE("limits") {
  const auto broken = [](const std::function<void(Hardware&)>& change, const std::string& part) {
    Hardware h = testing::TestHardware(16);
    REQUIRE(ValidateHardware(h).ok());
    change(h);
    const absl::Status status = ValidateHardware(h);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(status.message()), Catch::Contains(part));
  };
  broken([](Hardware& h) { h.name.clear(); }, "name");
  broken([](Hardware& h) { h.fast_bytes = 0; }, "fast_bytes is 0");
  broken([](Hardware& h) { h.fast_bytes = INT64_MAX; }, "fast_bytes");
  broken([](Hardware& h) { h.alignment_bytes = 0; }, "alignment_bytes is 0");
  broken([](Hardware& h) { h.main_bytes_per_second = -1; }, "main_bytes_per_second is -1");
  broken([](Hardware& h) { h.fast_read_bytes_per_second = 0; }, "fast_read");
  broken([](Hardware& h) { h.fast_write_bytes_per_second = 0; }, "fast_write");
  broken([](Hardware& h) { h.flops_per_second = 0; }, "flops");
  broken([](Hardware& h) { h.transcendentals_per_second = 0; }, "transcendentals");
  broken([](Hardware& h) { h.clock_hz = 0; }, "clock_hz");
  broken([](Hardware& h) { h.max_outstanding_prefetches = 0; }, "max_outstanding_prefetches");
  broken([](Hardware& h) { h.max_outstanding_evictions = 0; }, "max_outstanding_evictions");
  broken([](Hardware& h) { h.max_preloads = -1; }, "max_preloads is -1");
  broken([](Hardware& h) { h.fast_memory_space = 0; }, "fast_memory_space");
  broken([](Hardware& h) { h.copy_latency_ps = -1; }, "copy_latency_ps is -1");
}

TEST_CASE("A copy takes the transfer of its bytes and the latency") {
  Hardware h = testing::TestHardware(16, 4);
  CHECK(h.CopyPs(100) == h.TransferPs(100));
  CHECK(!absl::StrContains(HardwareToJson(h), "copy_latency_ps"));
  h.copy_latency_ps = 7;
  CHECK(h.CopyPs(100) == h.TransferPs(100) + 7);
  CHECK(h.CopyPs(0) == 0);
  CHECK(h.CopyPs(INT64_MAX) == h.TransferPs(INT64_MAX));
  const auto back = HardwareFromJson(HardwareToJson(h));
  REQUIRE(back.ok());
  CHECK(*back == h);
}

TEST_CASE("JSON") {
  const Hardware h = testing::TestHardware(16, 4);
  const std::string json = HardwareToJson(h);
  const auto back = HardwareFromJson(json);
  INFO(back.status());
  REQUIRE(back.ok());
  CHECK(*back == h);

  const auto broken = [&json](const std::string& from, const std::string& to,
                              const std::string& part) {
    REQUIRE_THAT(json, Catch::Contains(from));
    const auto status = HardwareFromJson(absl::StrReplaceAll(json, {{from, to}})).status();
    INFO(status);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(status.message()), Catch::Contains(part));
  };
  broken("\"clock_hz\"", "\"clock\"", "'clock_hz' is missing");
  broken("\"name\": \"test\",", "\"name\": \"test\", \"color\": 3,", "'color' is not known");
  broken("\"name\": \"test\",", "\"name\": \"test\", \"askable\": false,",
         "'askable' is not known");
  broken("\"test\"", "7", "'name'");
  broken("\"fast_bytes\": 16", "\"fast_bytes\": 1.5", "'fast_bytes' is 1.5");
  broken("\"fast_bytes\": 16", "\"fast_bytes\": \"16\"", "'fast_bytes'");
  broken("\"fast_bytes\": 16", "\"fast_bytes\": 18446744073709551615", "'fast_bytes'");
  broken("\"fast_bytes\": 16", "\"fast_bytes\": -3", "fast_bytes is -3");
  broken("\"max_preloads\": 1", "\"max_preloads\": 3000000000", "'max_preloads'");
  broken("{", "[", "JSON object");
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[1]"), json.substr(0, json.size() / 2),
        std::string(100000, '['), std::string("\xff\xfe{}")}) {
    CHECK(HardwareFromJson(text).status().code() == absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace mallocgame

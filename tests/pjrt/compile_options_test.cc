#include "mallocgame/pjrt/compile_options.h"

#include "absl/strings/escaping.h"
#include "tests/catch.h"

namespace mallocgame::pjrt {
namespace {

// What JAX 0.10.2 gives for the same, without debug_options.
TEST_CASE("Options are JAX's") {
  const auto one = CompileOptions(1, {{"f", 0.5},
                                      {"xla_a", int64_t{3}},
                                      {"xla_dump_hlo_as_proto", true},
                                      {"xla_dump_to", "/tmp/x"}});
  REQUIRE(one.ok());
  CHECK(absl::BytesToHexString(*one) ==
        "1a2108ffffffffffffffffff01200128013001"
        "62010092010100980101b80101c8011d"
        "28ffffffffffffffffff01"
        "3a0e0a0166120921000000000000e03f"
        "3a0b0a05786c615f6112021803"
        "3a1b0a15786c615f64756d705f686c6f5f61735f70726f746f12021001"
        "3a170a0b786c615f64756d705f746f12080a062f746d702f78");
  const auto four = CompileOptions(4, {});
  REQUIRE(four.ok());
  CHECK(absl::BytesToHexString(*four) ==
        "1a3b08ffffffffffffffffff01200128043001"
        "4a18080110041a030a01001a030a01011a030a01021a030a0103"
        "62010092010100980101b80101c8011d"
        "28ffffffffffffffffff01");
}

TEST_CASE("There is at least one partition") {
  CHECK(CompileOptions(0, {}).status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mallocgame::pjrt

#include "mallocgame/base/refusal.h"

#include "tests/catch.h"

namespace mallocgame {
namespace {

TEST_CASE("A status carries a refusal") {
  const Refusal refusal{"overlap", {"a:1", "", "b\n2:"}, {0, 17}, int64_t{1} << 40};
  const absl::Status status = Refused(refusal, absl::UnimplementedError("why"));
  CHECK(status.code() == absl::StatusCode::kUnimplemented);
  CHECK(status.message() == "why");
  CHECK(RefusalOf(status) == refusal);
  CHECK(RefusalOf(Refused({}, status)) == Refusal{});
}

TEST_CASE("A status without a refusal has an empty one") {
  CHECK(RefusalOf(absl::OkStatus()) == Refusal{});
  CHECK(RefusalOf(absl::InternalError("7:overlap")) == Refusal{});
}

TEST_CASE("Words before a message leave the code and the refusal") {
  const Refusal refusal{"schedule", {"a"}, {}, 0};
  const absl::Status status =
      Prefixed("module", Refused(refusal, absl::InvalidArgumentError("why")));
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(status.message() == "module: why");
  CHECK(RefusalOf(status) == refusal);
  CHECK(RefusalOf(Prefixed("module", absl::InternalError("why"))) == Refusal{});
}

}  // namespace
}  // namespace mallocgame

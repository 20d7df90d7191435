// Plans as JSON text.
#include "mallocgame/replay/plan_file.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/plan/validate.h"
#include "tests/catch.h"
#include "tests/replay/sample.h"

namespace mallocgame {
namespace {

using Catch::Matchers::Contains;
using testing::Replace;

struct PlanSample {
  std::shared_ptr<const Program> program = testing::SampleBuilder().Build();
  Hardware hardware = testing::TestHardware(testing::kSampleFastBytes);
  Plan plan = testing::SamplePlan(*program, hardware);
  std::string json = PlanToJson(*program, plan);

  std::string ErrorOf(const std::string& text) const {
    return std::string(PlanFromJson(*program, text).status().message());
  }
};

TEST_CASE("a plan comes back as it was, and is written the same again") {
  const PlanSample s;
  const absl::StatusOr<Plan> back = PlanFromJson(*s.program, s.json);
  INFO(back.status());
  REQUIRE(back.ok());
  CHECK(*back == s.plan);
  CHECK(PlanToJson(*s.program, *back) == s.json);

  const Plan all_main = AllMainPlan(*s.program, s.hardware);
  CHECK(*PlanFromJson(*s.program, PlanToJson(*s.program, all_main)) == all_main);
}

TEST_CASE("every kind of copy comes back") {
  PlanSample s;
  s.plan.copies = {{.residence = ResidenceId(0),
                    .begin = 0,
                    .end = 2,
                    .part_begin = 0,
                    .part_end = 16,
                    .preload = true},
                   {.residence = ResidenceId(0),
                    .begin = 0,
                    .end = 2,
                    .part_begin = 0,
                    .part_end = 8,
                    .replaces = 2},
                   {.kind = CopyKind::kEviction,
                    .residence = ResidenceId(0),
                    .begin = 1,
                    .end = 3,
                    .part_begin = 8,
                    .part_end = 16}};
  const absl::StatusOr<Plan> back = PlanFromJson(*s.program, PlanToJson(*s.program, s.plan));
  INFO(back.status());
  REQUIRE(back.ok());
  CHECK(*back == s.plan);
}

TEST_CASE("the text is for people: names, and a line for each thing") {
  const PlanSample s;
  CHECK_THAT(
      s.json,
      Contains("\n    {\"residence\":0,\"buffer\":0,\"name\":\"weights\",\"offset\":4,\"bytes\":16,"
               "\"begin\":1,\"end\":3}\n"));
  CHECK_THAT(s.json, Contains("\"tick\":2,\"instruction\":\"third\",\"name\":\"weights\"}"));
}

TEST_CASE("a plan of another program is refused with both fingerprints") {
  const PlanSample s;
  const std::shared_ptr<const Program> other = testing::SampleBuilder("other").Build();
  const std::string message(PlanFromJson(*other, s.json).status().message());
  CHECK_THAT(message, Contains(s.program->fingerprint()) && Contains(other->fingerprint()) &&
                          Contains("other"));
}

TEST_CASE("what is wrong in a plan is named with its place") {
  const PlanSample s;
  CHECK_THAT(s.ErrorOf(Replace(s.json, "\"version\": 1", "\"version\": 2")),
             Contains("\"version\" is 2") && Contains("1"));
  CHECK_THAT(s.ErrorOf(Replace(s.json, "mallocgame plan", "minimalloc plan")),
             Contains("\"format\" is \"minimalloc plan\""));
  CHECK_THAT(s.ErrorOf(Replace(s.json, "\"hardware\"", "\"hard\"")),
             Contains("top: key \"hardware\" is missing"));
  CHECK_THAT(s.ErrorOf(Replace(s.json, "{\n", "{\"note\": 1,\n")),
             Contains("unknown key \"note\""));
  CHECK_THAT(s.ErrorOf(Replace(s.json, "\"buffer\":0", "\"buffer\":4")),
             Contains("residences[0]: \"buffer\" is 4; allowed: integers from 0 to 3"));
  CHECK_THAT(s.ErrorOf(Replace(s.json, "\"buffer\":0", "\"buffer\":0.5")),
             Contains("\"buffer\" is 0.5"));
  CHECK_THAT(s.ErrorOf(Replace(s.json, "\"buffer\":0", "\"buffer\":1")),
             Contains("\"name\" is \"weights\"; allowed: \"input\""));
  CHECK_THAT(s.ErrorOf(Replace(s.json, "\"offset\":4", "\"offset\":9223372036854775808")),
             Contains("9223372036854775808"));
  CHECK_THAT(s.ErrorOf(Replace(s.json, "\"end\":3", "\"end\":4")),
             Contains("\"end\" is 4; allowed: integers from 0 to 3"));
  CHECK_THAT(s.ErrorOf(Replace(s.json, "prefetch", "evict")),
             Contains("copies[0]: \"kind\" is \"evict\""));
  CHECK_THAT(s.ErrorOf(Replace(s.json, "\"preload\":false", "\"preload\":0")),
             Contains("allowed: true, false"));
  CHECK_THAT(s.ErrorOf(Replace(s.json, "\"replaces\":-1", "\"replaces\":-2")),
             Contains("\"replaces\" is -2"));
  CHECK_THAT(s.ErrorOf(Replace(s.json, "\"instruction\":\"third\"", "\"instruction\":\"second\"")),
             Contains("served[0]"));
  CHECK_THAT(s.ErrorOf(Replace(s.json, "\"residences\": [", "\"residences\": [[],")),
             Contains("residences[0]: is array"));
  CHECK_THAT(s.ErrorOf("[]"), Contains("top: is array"));
  CHECK_THAT(s.ErrorOf(s.json + "x"), Contains("not JSON"));
}

TEST_CASE("an access can't be served twice") {
  const PlanSample s;
  const size_t begin = s.json.find("{\"access\"");
  REQUIRE(begin != std::string::npos);
  const std::string line = s.json.substr(begin, s.json.find('}', begin) - begin + 1);
  CHECK_THAT(s.ErrorOf(Replace(s.json, line, line + "," + line)),
             Contains("served[1]: access") && Contains("listed twice"));
}

TEST_CASE("names that aren't UTF-8 are replaced, and the plan still comes back") {
  ProgramData data = testing::SampleBuilder().Data();
  data.buffers[0].name = "weights\xff\"\\";
  data.instructions[2].name = "third\xc0";
  const absl::StatusOr<std::shared_ptr<const Program>> program = Program::Create(data);
  REQUIRE(program.ok());
  const Plan plan =
      testing::SamplePlan(**program, testing::TestHardware(testing::kSampleFastBytes));
  const absl::StatusOr<Plan> back = PlanFromJson(**program, PlanToJson(**program, plan));
  INFO(back.status());
  REQUIRE(back.ok());
  CHECK(*back == plan);
}

TEST_CASE("a place outside of fast memory comes back: Validate names it") {
  PlanSample s;
  for (const int64_t offset : {int64_t{-4}, INT64_MIN, INT64_MAX}) {
    s.plan.residences[0].offset = offset;
    const absl::StatusOr<Plan> back = PlanFromJson(*s.program, PlanToJson(*s.program, s.plan));
    REQUIRE(back.ok());
    CHECK(*back == s.plan);
    CHECK(Validate(*s.program, s.hardware, *back).rule == Rule::kSpace);
  }
}

TEST_CASE("a plan that is cut short is an error at every length") {
  const PlanSample s;
  for (size_t n = 0; n + 1 < s.json.size(); ++n) {  // the last byte is a newline
    INFO(n);
    CHECK(PlanFromJson(*s.program, s.json.substr(0, n)).status().code() ==
          absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace mallocgame

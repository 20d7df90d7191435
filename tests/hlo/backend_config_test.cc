// The parts of a configuration, and the numbers in it.
#include "mallocgame/hlo/module/backend_config.h"

#include "nlohmann/json.hpp"
#include "tests/catch.h"

namespace mallocgame::hlo {
namespace {

using Json = nlohmann::json;

bool HasPart(const char* text) {
  const Json part = PartOf(text, "part");
  return part.is_array() || part.is_object();
}

TEST_CASE("a part is the first list or object of a name, at any depth") {
  CHECK(PartOf(R"({"part":[1,[2]],"other":[3]})", "part") == Json::parse("[1,[2]]"));
  CHECK(PartOf(R"({"a":{"b":[{"part" : {"n":{"m":[]}}}]}})", "part") ==
        Json::parse(R"({"n":{"m":[]}})"));
  CHECK(PartOf(R"({"part":[1],"a":{"part":[2]}})", "part") == Json::parse("[1]"));
  CHECK(PartOf(R"({"part":7,"a":{"part":"[1]","b":{"part":[2]}}})", "part") == Json::parse("[2]"));
  CHECK(PartOf(R"({"part":["]","\"]","\\"],"a":0})", "part") == Json::parse(R"(["]","\"]","\\"])"));
  // As a string, a value or the end of a longer name it is no name.
  CHECK(PartOf(R"({"a":"part","b":"\"part\":[1]","apart":[2],"part":[3]})", "part") ==
        Json::parse("[3]"));
}

TEST_CASE("a text may have no whole part of a name") {
  CHECK_FALSE(HasPart(""));
  CHECK_FALSE(HasPart(R"({"other":[1]})"));
  for (const char* text : {R"({"part")", R"({"part":)", R"({"part":[)", R"({"part":[{])",
                           R"({"part":["])", R"({"part":["\)", R"({"part":]})", R"({"part":[1}})",
                           R"({"part":7})", R"({"part":"[1]"})", R"({"part":null})"}) {
    INFO(text);
    CHECK_FALSE(HasPart(text));
  }
}

TEST_CASE("numbers of 0 or more, as JAX and as XLA write them") {
  CHECK(NumberOf(Json(7)) == 7);
  CHECK(NumberOf(Json("7")) == 7);
  CHECK(NumberOf(Json(INT64_MAX)) == INT64_MAX);
  for (const char* text : {"-1", R"("-1")", "18446744073709551615", R"("18446744073709551615")",
                           "1.5", R"("a")", R"("")", "null", "[1]", "true"}) {
    INFO(text);
    CHECK_FALSE(NumberOf(Json::parse(text)));
  }
}

}  // namespace
}  // namespace mallocgame::hlo

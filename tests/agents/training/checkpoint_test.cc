// Checkpoints of a made-up agent: fields in their order, lists of structs, and the envelope.
#include "agents/training/checkpoint.h"

#include "agents/training/checkpoint_file.h"
#include "tests/catch.h"

namespace mallocgame::training {
namespace {

struct Toy {
  static constexpr absl::string_view kAgent = "toy";
  static constexpr int kFormatVersion = 3;
  struct Part {
    std::string name;
    int32_t size = 0;
    template <class Self>
    static auto Fields(Self& self) {
      return std::tie(self.name, self.size);
    }
  };
  uint64_t seed = 0;
  std::vector<Part> parts;
  std::vector<float> weights;
  template <class Self>
  static auto Fields(Self& self) {
    return std::tie(self.seed, self.parts, self.weights);
  }
};

std::string Packed() { return PackCheckpoint(Toy{5, {{"one", 1}, {"two", 2}}, {0.5F, -1}}); }

TEST_CASE("a checkpoint comes back as it was") {
  const auto toy = UnpackCheckpoint<Toy>(Packed());
  REQUIRE(toy.ok());
  REQUIRE(toy->seed == 5);
  REQUIRE(toy->parts.size() == 2);
  REQUIRE(toy->parts[1].name == "two");
  REQUIRE(toy->parts[1].size == 2);
  REQUIRE(toy->weights == std::vector<float>{0.5F, -1});
}

TEST_CASE("the fields are written one behind the other, inside the envelope") {
  std::string body;
  WriteBytes(uint64_t{5}, body);
  WriteBytes(uint64_t{2}, body);
  WriteBytes(absl::string_view("one"), body);
  WriteBytes(int32_t{1}, body);
  WriteBytes(absl::string_view("two"), body);
  WriteBytes(int32_t{2}, body);
  WriteBytes(std::vector<float>{0.5F, -1}, body);
  REQUIRE(OpenCheckpoint("toy", 3, Packed())->body == body);
  REQUIRE(SealCheckpoint("toy", 3, body) == Packed());
  REQUIRE(Packed().find("mallocgame toy checkpoint 3, rules ") == 0);
}

TEST_CASE("each part of the envelope is checked") {
  const auto message = [](int version, const std::string& bytes) {
    return std::string(OpenCheckpoint("toy", version, bytes).status().message());
  };
  REQUIRE(message(3, "mallocgame toyish checkpoint 3") == "not a checkpoint of the toy agent");
  REQUIRE(message(4, Packed()).find("found 'mallocgame toy checkpoint 3") != std::string::npos);
  REQUIRE(message(4, Packed()).find("expected 'mallocgame toy checkpoint 4") != std::string::npos);
  for (size_t at = Packed().find('\n') + 1; at < Packed().size(); ++at) {
    std::string damaged = Packed();
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    REQUIRE(message(3, damaged) == CutShort().message());
  }
}

TEST_CASE("the envelope names the rules of the game that is played") {
  const std::string time = SealCheckpoint("toy", 3, "body");
  const std::string order = SealCheckpoint("toy", 3, "body", "priority");
  REQUIRE(time.find("mallocgame toy checkpoint 3, rules 1\n") == 0);
  REQUIRE(order.find("mallocgame toy checkpoint 3, priority rules 3\n") == 0);
  REQUIRE(OpenCheckpoint("toy", 3, time)->game == "time");
  REQUIRE(OpenCheckpoint("toy", 3, order)->game == "priority");
  REQUIRE(OpenCheckpoint("toy", 3, order)->body == "body");
  const std::string schedule = SealCheckpoint("toy", 3, "body", "schedule");
  REQUIRE(schedule.find("mallocgame toy checkpoint 3, schedule rules 1\n") == 0);
  REQUIRE(OpenCheckpoint("toy", 3, schedule)->game == "schedule");
}

TEST_CASE("the envelope names the observations that networks see") {
  const std::string sealed = SealCheckpoint("toy", 3, "body", "time", 2);
  REQUIRE(sealed.find("mallocgame toy checkpoint 3, rules 1, observation 2\n") == 0);
  REQUIRE(OpenCheckpoint("toy", 3, sealed, 2)->body == "body");
  for (const int other : {0, 1}) {
    const std::string message(OpenCheckpoint("toy", 3, sealed, other).status().message());
    REQUIRE(message.find("another version") != std::string::npos);
  }
}

TEST_CASE("a body that ends early is refused") {
  const std::string packed = Packed();
  const absl::string_view body = OpenCheckpoint("toy", 3, packed)->body;
  for (size_t size = 0; size < body.size(); ++size)
    REQUIRE(!UnpackCheckpoint<Toy>(SealCheckpoint("toy", 3, body.substr(0, size))).ok());
}

}  // namespace
}  // namespace mallocgame::training

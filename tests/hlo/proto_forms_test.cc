// Modules are read from every message that holds one.
#include "mallocgame/hlo/module/proto_forms.h"

#include <string>

#include "absl/strings/match.h"
#include "google/protobuf/arena.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;

ModuleText OneNegation() {
  ModuleText m;
  m.Computation("main").Add("p = f32[8] parameter()").Add("q = f32[8] negate(p)");
  return m;
}

// A field that holds bytes.
std::string Field(int number, const std::string& value) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  for (size_t left = value.size();;) {
    field += static_cast<char>(left > 127 ? (left & 127) | 128 : left);
    left >>= 7;
    if (left == 0) break;
  }
  return field + value;
}

std::string Root(absl::string_view bytes) {
  google::protobuf::Arena arena;
  const absl::StatusOr<HloProto*> proto = ParseAnyForm(bytes, arena);
  if (!proto.ok()) return std::string(proto.status().message());
  return (*proto)->hlo_module().computations(0).instructions(1).name();
}

TEST_CASE("a module alone, with an assignment, with a config, or with arguments") {
  ModuleText m = OneNegation();
  const std::string whole = m.Bytes(), module = m.proto().hlo_module().SerializeAsString();
  CHECK(Root(whole) == "q");
  CHECK(Root(module) == "q");
  CHECK(whole == Field(1, module));
  CHECK(Root(Field(1, module) + Field(2, Field(6, "config"))) == "q");
  CHECK(Root(Field(1, whole) + Field(2, Field(2, "argument")) + Field(4, "host")) == "q");
  m.Place("q", {}, 0, 1);
  google::protobuf::Arena arena;
  CHECK((*ParseAnyForm(m.Bytes(), arena))->has_buffer_assignment());
  CHECK((*ParseAnyForm(Field(1, m.Bytes()), arena))->has_buffer_assignment());
}

TEST_CASE("a module's name is no message, whatever it is") {
  for (const std::string name : {"", "\n", "jit_f", "\n\x02q\x12", "\x0a\x04\x1a\x02\x12"}) {
    ModuleText m = OneNegation();
    m.proto().mutable_hlo_module()->set_name(name);
    CHECK(Root(m.proto().hlo_module().SerializeAsString()) == "q");
    CHECK(Root(m.Bytes()) == "q");
  }
}

TEST_CASE("what holds no module is refused") {
  const std::string module = OneNegation().proto().hlo_module().SerializeAsString();
  CHECK(Root("") == "found 0 bytes, allowed: 1 to 2147483647");
  // Nothing is read beyond the size, of which protobuf would take 32 bits.
  const char byte = 0;
  CHECK(Root({&byte, size_t{3} << 30}) == "found 3221225472 bytes, allowed: 1 to 2147483647");
  CHECK(Root({&byte, (size_t{1} << 32) + 1}) == "found 4294967297 bytes, allowed: 1 to 2147483647");
  CHECK(absl::StrContains(Root("HloModule m, is_scheduled=true\n"), "found HLO text"));
  CHECK(absl::StrContains(Root(module.substr(0, module.size() - 3)), "damaged, cut short"));
  CHECK(absl::StrContains(Root("\x1f\x8b compressed"), "not a serialized HloProto or HloModule"));
  CHECK(absl::StrContains(Root(Field(1, Field(1, "name"))), "no computations with instructions"));
}

}  // namespace
}  // namespace mallocgame::hlo

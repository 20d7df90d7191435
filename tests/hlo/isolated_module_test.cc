// Isolated modules are moved to other placements.
#include "mallocgame/hlo/write/isolated_module.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "mallocgame/hlo/cost/lowered_programs.h"
#include "mallocgame/hlo/cost/lowered_programs.pb.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/write/placed_module.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;

constexpr char kOneList[] = R"({"aliasing_operands":{"lists":[{"indices":["0","1","2"]}]}})";

// An addition of two operands, which have one parameter or two.
std::string Isolated(bool shared_parameter, const std::string& backend_config = "") {
  ModuleText m;
  m.Computation("ISOLATED_COMPUTATION__ENTRY")
      .Add("ISOLATED_PARAM__0 = f32[8] parameter()")
      .Add("ISOLATED_OPERAND__0 = f32[8] bitcast(ISOLATED_PARAM__0)");
  if (!shared_parameter) m.Add("ISOLATED_PARAM__1 = f32[8] parameter()");
  m.Add("ISOLATED_OPERAND__1 = f32[8] bitcast(ISOLATED_PARAM__" +
        std::string(shared_parameter ? "0)" : "1)"));
  m.Add("ISOLATED__ = f32[8] add(ISOLATED_OPERAND__0, ISOLATED_OPERAND__1)");
  m.at("ISOLATED__").set_backend_config(backend_config);
  HloModuleProtoWithConfig proto;
  *proto.mutable_hlo_module() = m.proto().hlo_module();
  proto.mutable_config()->mutable_entry_computation_layout();
  return proto.SerializeAsString();
}

HloModuleProtoWithConfig Placed(const std::string& isolated,
                                const InstructionPlacement& placement) {
  const auto placed = PlaceIsolatedModule(isolated, placement, "isolated_hlo.add");
  REQUIRE(placed.ok());
  HloModuleProtoWithConfig proto;
  REQUIRE(proto.ParseFromString(*placed));
  return proto;
}

std::vector<std::string> Names(const HloModuleProtoWithConfig& proto) {
  std::vector<std::string> names;
  for (const HloInstructionProto& instruction : proto.hlo_module().computations(0).instructions())
    names.push_back(instruction.name());
  return names;
}

const std::vector<std::string> kTwoParameters = {"ISOLATED_PARAM__0", "ISOLATED_OPERAND__0",
                                                 "ISOLATED_PARAM__1", "ISOLATED_OPERAND__1",
                                                 "ISOLATED__"};
const std::vector<std::string> kOneParameter = {"ISOLATED_PARAM__0", "ISOLATED_OPERAND__0",
                                                "ISOLATED_OPERAND__1", "ISOLATED__"};

TEST_CASE("an isolated module has the spaces of its placement everywhere") {
  const auto proto = Placed(Isolated(false), {{{1}, {0}}, {1}, {0, 1}, {{0, 0, 0}}, "", 0, {}});
  CHECK(proto.hlo_module().name() == "isolated_hlo.add");
  CHECK(Names(proto) == kTwoParameters);
  const HloComputationProto& entry = proto.hlo_module().computations(0);
  std::vector<int64_t> spaces;
  for (const HloInstructionProto& instruction : entry.instructions())
    spaces.push_back(instruction.shape().layout().memory_space());
  CHECK(spaces == std::vector<int64_t>{1, 1, 0, 0, 1});
  for (const ProgramShapeProto& shape :
       {entry.program_shape(), proto.hlo_module().host_program_shape(),
        proto.config().entry_computation_layout()}) {
    REQUIRE(shape.parameters_size() == 2);
    CHECK(shape.parameter_names_size() == 2);
    CHECK(shape.parameters(0).layout().memory_space() == 1);
    CHECK(shape.parameters(1).layout().memory_space() == 0);
    CHECK(shape.result().layout().memory_space() == 1);
  }
  const auto& aliases = proto.hlo_module().input_output_alias();
  REQUIRE(aliases.entries_size() == 1);
  CHECK(aliases.entries(0).parameter_number() == 0);
  CHECK(aliases.entries(0).kind() == 2);
}

TEST_CASE("operands that are one value have one parameter while they lie in one space") {
  CHECK(Names(Placed(Isolated(true), {{{0}, {1}}, {0}, {0, 0}, {}, "", 0, {}})) == kTwoParameters);
  CHECK(Names(Placed(Isolated(false), {{{1}, {1}}, {0}, {0, 0}, {}, "", 0, {}})) == kOneParameter);
  CHECK(Names(Placed(Isolated(false), {{{1}, {1}}, {0}, {0, 1}, {}, "", 0, {}})) == kTwoParameters);
}

TEST_CASE("so do operands in one list of the backend_config that the instruction has") {
  CHECK(Names(Placed(Isolated(false), {{{1}, {1}}, {0}, {0, 1}, {}, kOneList, 0, {}})) ==
        kOneParameter);
  CHECK(Names(Placed(Isolated(true, kOneList), {{{1}, {1}}, {0}, {0, 1}, {}, "{}", 0, {}})) ==
        kTwoParameters);
  const auto proto = Placed(Isolated(true, kOneList),
                            {{{0}, {0}}, {0}, {0, 1}, {{0, 0, 0}, {1, 0, 0}}, "", 7, {}});
  CHECK(proto.hlo_module().input_output_alias().entries_size() == 1);
  CHECK(proto.hlo_module().computations(0).instructions(3).channel_id() == 7);
}

TEST_CASE("it has the frontend attributes of its instruction and of all that this calls") {
  const auto modules = [](const std::string& of_root, const std::string& of_fused) {
    const auto attributes = [](const std::string& of) {
      return "frontend_attributes: '" + of + "'";
    };
    ModuleText m;
    m.Computation("fused", /*fused=*/true)
        .Add("a = f32[8] parameter()")
        .Add("b = f32[8] negate(a)", attributes(of_fused));
    m.Computation("main")
        .Add("p = f32[8] parameter()")
        .Add("q = f32[8] bitcast(p)")
        .Add("r = f32[8] fusion(q)", "fusion_kind: 'kLoop' " + attributes(of_root), {"fused"});
    m.Place("p", {}, 4096, 0);
    return m;
  };
  HloProto own = modules("root", "fused").proto();
  const auto placed = PlacedModule::Read(own.hlo_module().SerializeAsString(),
                                         own.buffer_assignment().SerializeAsString());
  REQUIRE(placed.ok());
  auto placement = placed->PlacementOf({"r"});
  REQUIRE(placement.ok());
  CHECK(placement->frontend_attributes == std::vector<std::string>{"root", "", "fused"});
  HloModuleProtoWithConfig other;
  *other.mutable_hlo_module() = modules("first", "").proto().hlo_module();
  other.mutable_config()->mutable_entry_computation_layout();
  const auto proto = Placed(other.SerializeAsString(), *placement);
  CHECK(proto.hlo_module().computations(0).instructions(1).frontend_attributes() == "fused");
  CHECK(proto.hlo_module().computations(1).instructions(2).frontend_attributes() == "root");
  placement->frontend_attributes.pop_back();
  CHECK_FALSE(PlaceIsolatedModule(other.SerializeAsString(), *placement, "m").ok());
}

TEST_CASE("what is no placement of the module is refused") {
  const auto message = [](const InstructionPlacement& placement) {
    return std::string(PlaceIsolatedModule(Isolated(false), placement, "m").status().message());
  };
  CHECK(absl::StrContains(message({{{0}}, {0}, {0}, {}, "", 0, {}}), "has 2 operands"));
  CHECK(absl::StrContains(message({{{0}, {0, 0}}, {0}, {0, 1}, {}, "", 0, {}}), "operand 1"));
  CHECK(absl::StrContains(message({{{0}, {0}}, {0}, {0, 1}, {{2, 0, 0}}, "", 0, {}}), "none of"));
  CHECK(absl::StrContains(message({{{1}, {0}}, {0}, {0, 1}, {{0, 0, 0}}, "", 0, {}}),
                          "another memory space"));
  CHECK_FALSE(PlaceIsolatedModule("damaged", {}, "m").ok());
}

TEST_CASE("a placed module tells which operands share bytes with the result") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("a = f32[8]{0:S(1)} negate(p)")
      .Add("b = f32[8]{0:S(1)} add(a, a)")
      .Add("c = f32[8] negate(b)");
  m.Place("a", {}, 4096, 1).Place("b", {}, 4096, 1);
  const auto placed = PlacedModule::Read(m.proto().hlo_module().SerializeAsString(),
                                         m.proto().buffer_assignment().SerializeAsString());
  REQUIRE(placed.ok());
  const auto b = placed->PlacementOf({"b"});
  REQUIRE(b.ok());
  CHECK(b->operands == std::vector<std::vector<int64_t>>{{1}, {1}});
  CHECK(b->results == std::vector<int64_t>{1});
  CHECK(b->values == std::vector<int64_t>{0, 0});
  CHECK(b->shared == std::vector<SharedArray>{{0, 0, 0}});
  CHECK(placed->PlacementOf({"c"})->shared.empty());
  CHECK_FALSE(placed->PlacementOf({"d"}).ok());
  CHECK_FALSE(placed->PlacementOf({}).ok());
}

TEST_CASE("of several instructions the one with the lowest id counts, wherever it stands") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("first = f32[8]{0:S(1)} negate(p)", "channel_id: 3")
      .Add("second = f32[8]{0:S(1)} negate(p)", "channel_id: 5");
  m.Place("first", {}, 4096, 1).Place("second", {}, 8192, 1);
  HloProto proto = m.proto();
  HloModuleProto& module = *proto.mutable_hlo_module();
  module.mutable_computations(0)->mutable_instructions()->SwapElements(1, 2);
  REQUIRE(module.computations(0).instructions(1).name() == "second");
  const auto placed =
      PlacedModule::Read(module.SerializeAsString(), proto.buffer_assignment().SerializeAsString());
  REQUIRE(placed.ok());
  CHECK(placed->PlacementOf({"second", "first"})->channel_id == 3);
}

TEST_CASE("a lowered program tells its hash, those that it calls, and its price") {
  IsaProgram program;
  program.set_name("0123456789abcdef0123456789abcdef");
  IsaProgram::Call& call = *program.add_calls();
  call.set_callee("f123456789abcdef0123456789abcdef");
  call.set_text("%fusion.1 = f32[8]{0} fusion(%p)");
  const auto read = ReadLoweredProgram(program.SerializeAsString());
  REQUIRE(read.ok());
  CHECK(read->name == program.name());
  CHECK(read->calls == std::map<std::string, std::string>{{"fusion.1", call.callee()}});
  CHECK_FALSE(ReadLoweredProgram("").ok());
  CHECK_FALSE(ReadLoweredProgram(program.SerializeAsString().substr(0, 20)).ok());
  ModuleText m;
  m.Computation("main").Add("p = f32[8] parameter()").Add("q = f32[8] negate(p)");
  m.at("q").set_backend_config(R"({"estimated_cycles":"42"})");
  CompilerMetadata metadata;
  *metadata.mutable_hlo() = m.proto();
  const auto cycles = ReadEstimatedCycles(metadata.SerializeAsString());
  REQUIRE(cycles.ok());
  CHECK(*cycles == std::map<std::string, int64_t>{{"q", 42}});
  CHECK_FALSE(ReadEstimatedCycles("damaged").ok());
}

}  // namespace
}  // namespace mallocgame::hlo

// Writes the fuzzers' seeds: what our own writers write of small programs, a hand-made HLO module
// with a loop, and real modules (only the fields that are read) from folders with files named as
// capturing names them.
//
//   fuzz_make_seeds SEEDS_FOLDER [PROGRAM_FOLDER...]
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/position.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/replay/container.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/replay/game_log.h"
#include "mallocgame/replay/plan_file.h"
#include "mallocgame/replay/program_file.h"
#include "tests/fuzz/readers.h"
#include "tests/fuzz/sample.h"
#include "tests/support/play.h"

namespace mallocgame::fuzz {
namespace {

std::string folder;

void Write(absl::string_view reader, absl::string_view name, absl::string_view bytes) {
  std::filesystem::create_directories(absl::StrCat(folder, "/", reader));
  const absl::Status status = WriteFile(absl::StrCat(folder, "/", reader, "/", name), bytes);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  MG_CHECK(status.ok());
}

std::string Serialize(const hlo::HloProto& proto) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  MG_CHECK(proto.SerializeToCodedStream(&out));
  out.Trim();
  return bytes;
}

// A computation under construction. Ids count up over the whole module.
class Computation {
 public:
  Computation(hlo::HloProto& proto, const std::string& name, int64_t id)
      : module_(*proto.mutable_hlo_module()) {
    computation_ = module_.add_computations();
    computation_->set_name(name);
    computation_->set_id(id);
  }

  int64_t Add(const std::string& opcode, const hlo::ShapeProto& shape,
              const std::vector<int64_t>& operands = {}) {
    hlo::HloInstructionProto* instruction = computation_->add_instructions();
    const int64_t id = computation_->id() * 100 + computation_->instructions_size();
    instruction->set_name(absl::StrCat(opcode, ".", id));
    instruction->set_opcode(opcode);
    *instruction->mutable_shape() = shape;
    instruction->set_id(id);
    for (const int64_t operand : operands) instruction->add_operand_ids(operand);
    computation_->set_root_id(id);
    return id;
  }
  hlo::HloInstructionProto& last() {
    return *computation_->mutable_instructions(computation_->instructions_size() - 1);
  }
  void Schedule() {
    auto& sequence = (*module_.mutable_schedule()->mutable_sequences())[computation_->id()];
    for (const auto& instruction : computation_->instructions())
      sequence.add_instruction_ids(instruction.id());
  }

 private:
  hlo::HloModuleProto& module_;
  hlo::HloComputationProto* computation_;
};

hlo::ShapeProto ArrayShape(hlo::PrimitiveType type, const std::vector<int64_t>& dimensions) {
  hlo::ShapeProto shape;
  shape.set_element_type(type);
  for (size_t i = 0; i < dimensions.size(); ++i) {
    shape.add_dimensions(dimensions[i]);
    shape.add_is_dynamic_dimension(false);
    shape.mutable_layout()->add_minor_to_major(dimensions.size() - 1 - i);
  }
  return shape;
}

hlo::ShapeProto TupleShape(const std::vector<hlo::ShapeProto>& elements) {
  hlo::ShapeProto shape;
  shape.set_element_type(hlo::TUPLE);
  for (const auto& element : elements) *shape.add_tuple_shapes() = element;
  return shape;
}

// A program that adds a weight to a state four times, then the weight to the result. It has
// parameters, constants, a copy, tuples, a while and fusions.
hlo::HloProto HandMade() {
  const hlo::ShapeProto counter = ArrayShape(hlo::S32, {}), data = ArrayShape(hlo::F32, {64, 128});
  const hlo::ShapeProto carried = TupleShape({counter, data, data});
  hlo::HloProto proto;
  proto.mutable_hlo_module()->set_name("hand_made");
  const auto integer = [&](Computation& c, int value) {
    const int64_t id = c.Add("constant", counter);
    *c.last().mutable_literal()->mutable_shape() = counter;
    c.last().mutable_literal()->add_s32s(value);
    return id;
  };
  const auto element = [&](Computation& c, const hlo::ShapeProto& shape, int64_t tuple,
                           int64_t index) {
    const int64_t id = c.Add("get-tuple-element", shape, {tuple});
    c.last().set_tuple_index(index);
    return id;
  };

  Computation fused(proto, "fused", 1);
  const int64_t a = fused.Add("parameter", data), b = fused.Add("parameter", data);
  fused.last().set_parameter_number(1);
  fused.Add("add", data, {a, b});
  const auto fusion = [&](Computation& c, int64_t x, int64_t y) {
    const int64_t id = c.Add("fusion", data, {x, y});
    c.last().set_fusion_kind("kLoop");
    c.last().add_called_computation_ids(1);
    return id;
  };

  Computation condition(proto, "condition", 2);
  const int64_t seen = condition.Add("parameter", carried),
                i = element(condition, counter, seen, 0);
  condition.Add("compare", ArrayShape(hlo::PRED, {}), {i, integer(condition, 4)});
  condition.last().set_comparison_direction("LT");
  condition.Schedule();

  Computation body(proto, "body", 3);
  const int64_t in = body.Add("parameter", carried), k = element(body, counter, in, 0);
  const int64_t next = body.Add("add", counter, {k, integer(body, 1)});
  const int64_t state = element(body, data, in, 1), weight = element(body, data, in, 2);
  body.Add("tuple", carried, {next, fusion(body, state, weight), weight});
  body.Schedule();

  Computation entry(proto, "main", 4);
  const int64_t p0 = entry.Add("parameter", data), p1 = entry.Add("parameter", data);
  entry.last().set_parameter_number(1);
  const int64_t start = entry.Add("copy", data, {p0});
  const int64_t tuple = entry.Add("tuple", carried, {integer(entry, 0), start, p1});
  const int64_t loop = entry.Add("while", carried, {tuple});
  entry.last().add_called_computation_ids(3);
  entry.last().add_called_computation_ids(2);
  fusion(entry, element(entry, data, loop, 1), p1);
  entry.Schedule();
  proto.mutable_hlo_module()->set_entry_computation_name("main");
  proto.mutable_hlo_module()->set_entry_computation_id(4);
  return proto;
}

// A module alone, without a schedule: it calls the hand-made program twice, and then has its loop,
// which never runs.
std::string HandMadeShared() {
  const hlo::ShapeProto counter = ArrayShape(hlo::S32, {}), data = ArrayShape(hlo::F32, {64, 128});
  const hlo::ShapeProto carried = TupleShape({counter, data, data});
  hlo::HloProto proto = HandMade();
  Computation entry(proto, "twice", 5);
  const int64_t p0 = entry.Add("parameter", data), p1 = entry.Add("parameter", data);
  entry.last().set_parameter_number(1);
  const int64_t once = entry.Add("call", data, {p0, p1});
  entry.last().add_called_computation_ids(4);
  const int64_t twice = entry.Add("call", data, {once, p1});
  entry.last().add_called_computation_ids(4);
  const int64_t nine = entry.Add("constant", counter);
  *entry.last().mutable_literal()->mutable_shape() = counter;
  entry.last().mutable_literal()->add_s32s(9);
  const int64_t tuple = entry.Add("tuple", carried, {nine, twice, p1});
  const int64_t loop = entry.Add("while", carried, {tuple});
  entry.last().add_called_computation_ids(3);
  entry.last().add_called_computation_ids(2);
  entry.Add("get-tuple-element", data, {loop});
  entry.last().set_tuple_index(1);
  hlo::HloModuleProto& module = *proto.mutable_hlo_module();
  module.set_name("shared");
  module.clear_schedule();
  module.set_entry_computation_name("twice");
  module.set_entry_computation_id(5);
  return module.SerializeAsString();
}

// A kernel that says what it costs, and where its operands have to lie.
hlo::HloProto HandMadeKernel() {
  const hlo::ShapeProto data = ArrayShape(hlo::F32, {64, 128});
  hlo::HloProto proto;
  proto.mutable_hlo_module()->set_name("kernel");
  Computation entry(proto, "main", 1);
  const int64_t x = entry.Add("parameter", data), y = entry.Add("parameter", data);
  entry.last().set_parameter_number(1);
  const int64_t both = entry.Add("tuple", TupleShape({data, data}), {x, y});
  const int64_t made = entry.Add("copy", data, {x});
  const int64_t kernel = entry.Add("custom-call", data, {made, both});
  entry.last().set_custom_call_target("tpu_custom_call");
  entry.last().set_backend_config(
      R"({"custom_call_config":{"body":"TUzv","cost_estimate":{"flops":"8","bytes_accessed":"6"},)"
      R"("input_memory_space_colors":[{"operand_index":"0","color":"1","shape_index":[]},)"
      R"({"operand_index":"1","color":"0","shape_index":["1"]}]}})");
  entry.Add("copy", data, {kernel});
  entry.Schedule();
  proto.mutable_hlo_module()->set_entry_computation_name("main");
  proto.mutable_hlo_module()->set_entry_computation_id(1);
  return proto;
}

// The hand-made program after code generation. The fusions have prices, and one operand is in fast
// memory.
std::string PricedHandMade() {
  hlo::HloProto proto = HandMade();
  for (auto& computation : *proto.mutable_hlo_module()->mutable_computations()) {
    for (auto& instruction : *computation.mutable_instructions()) {
      if (instruction.opcode() != "fusion") continue;
      instruction.set_backend_config("{\"estimated_cycles\":\"1000\"}");
      instruction.mutable_shape()->mutable_layout()->set_memory_space(3);
    }
  }
  return Serialize(proto);
}

void WriteRealProgram(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const auto module = [&](const char* file) {
    hlo::HloProto proto;
    MG_CHECK(proto.ParseFromString(*ReadFile(absl::StrCat(path, "/", file))));
    proto.DiscardUnknownFields();
    return Serialize(proto);
  };
  const std::string before = module("pre_msa.hlo.pb.gz");
  Write("hlo", name, before);
  Write("priced", name, JoinParts({before, module("codegen_default.hlo.pb.gz")}));
  Write("assignment", name, JoinParts({before, module("post_msa.hlo.pb.gz")}));
  if (const auto profile = ReadFile(absl::StrCat(path, "/profile.json.gz")); profile.ok()) {
    Write("profile", name, JoinParts({before, *profile}));
  }
}

// A game of the sample program in which the last of the legal actions is always taken.
GameLog LastLegalActions(const std::string& kind) {
  const auto game = *Game::Create(SampleProgram(), SampleHardware(), *testing::OptionsOf(kind));
  const std::unique_ptr<Position> position = game->NewInitialPosition();
  while (!position->IsTerminal()) {
    const ActionSet legal = position->legal_actions();
    MG_CHECK(position->Apply(legal[legal.size() - 1]).ok());
  }
  return *RecordGame(*game, position->actions(), "last legal action", 1);
}

// What solver_readers.cc reads.
void WriteSolvers() {
  Write("offsets", "problem", "id,lower,upper,size\na,0,4,3\nb,2,7,5\nc,3,9,2\nd,6,12,4\n");
  Write("offsets", "solution", "id,lower,upper,size,offset\na,0,4,3,0\nb,2,7,5,3\n");
  Write(
      "offsets", "all_columns",
      "\xEF\xBB\xBFsize,note,gaps,offset,upper,alignment,id,hint,lower\r\n"
      "18,x,7-8 9-11@2:13,,12,2,Big,-1,6\r\n\r\n15,,, 40 ,10,1,Little,3,5\r\n0,,,,9,,none,,5\r\n");
  Write("offsets", "older_names",
        "buffer_id,start,end,size,gaps\na,0,4,3,1-2\nb,2,6,5,3-3@1:2 5-5@0:0\nc,-3,8,2,-2--1\n");
  Write("offsets", "windows",
        "id,lower,upper,size,gaps\na,0,10,4,0-5@0:1 5-10@2:4\nb,0,10,3,5-10@1:2\nc,2,8,2,3-4\n");
  std::string searched = "id,lower,upper,size\n";
  Rng rng(1);
  for (int i = 0; i < 24; ++i) {
    const uint32_t begin = rng.Below(20);
    absl::StrAppend(&searched, i, ",", begin, ",", begin + 1 + rng.Below(9), ",", 1 + rng.Below(9),
                    "\n");
  }
  Write("offsets", "random", searched);
}

void WriteSample() {
  const GameLog log = LastLegalActions("time");
  Write("game_log", "sample", *UnpackFile(FileKind::kGameLog, SerializeGameLog(log)));
  Write("game_log", "priority",
        *UnpackFile(FileKind::kGameLog, SerializeGameLog(LastLegalActions("priority"))));
  Write("plan", "sample", PlanToJson(*SampleProgram(), log.plan));

  ProgramFile file;
  file.program = SampleProgram();
  file.hardware = SampleHardware();
  file.xla_plan = log.plan;
  file.origin = "made by hand";
  Write("program_file", "sample", *UnpackFile(FileKind::kProgram, SerializeProgramFile(file)));
  Rng rng(1);
  for (const bool roofline : {false, true}) {
    file.program = testing::RandomProgram(rng, {.roofline = roofline});
    file.xla_plan.reset();
    Write("program_file", roofline ? "random_roofline" : "random_profile",
          *UnpackFile(FileKind::kProgram, SerializeProgramFile(file)));
  }
  Write("program", "unchanged", absl::string_view("\x05\x4c\x28", 3));
  Write("program", "larger_buffer", absl::string_view("\x01\xcc\x28\x01\x03\x00\x00\x00\x48", 9));
  Write("hardware", "sample", HardwareToJson(SampleHardware()));
  Write("hardware", "tpu_v4i", HardwareToJson(*HardwarePreset("tpu_v4i")));
}

int Run(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: fuzz_make_seeds SEEDS_FOLDER [PROGRAM_FOLDER...]\n");
    return 2;
  }
  folder = argv[1];
  const std::string before = Serialize(HandMade()), priced = PricedHandMade();
  Write("hlo", "hand_made", before);
  Write("hlo", "kernel", Serialize(HandMadeKernel()));
  Write("hlo", "shared", HandMadeShared());
  Write("priced", "hand_made", JoinParts({before, priced}));
  Write("assignment", "hand_made", JoinParts({before, priced}));
  Write("profile", "hand_made",
        JoinParts({before, "{\"fusion.307\": [[\"00\", \"0\", 1000], [\"10\", \"1\", 700]]}"}));
  WriteSample();
  WriteSolvers();
  for (int i = 2; i < argc; ++i) WriteRealProgram(argv[i]);
  return 0;
}

}  // namespace
}  // namespace mallocgame::fuzz

int main(int argc, char** argv) { return mallocgame::fuzz::Run(argc, argv); }

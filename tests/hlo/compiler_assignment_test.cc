// The compiler's own answer to what shares storage: in every captured module that has its buffer
// assignment, the values that are one storage here lie in one place there.
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/hlo/module/dataflow.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"
#include "mallocgame/replay/files.h"
#include "tests/catch.h"

namespace mallocgame::hlo {
namespace {

// Where a value lies: the number of an allocation, and an offset in it.
using Place = std::pair<int64_t, int64_t>;

struct Count {
  int64_t storages = 0;  // of two values or more
  int64_t values = 0;    // in these
  std::vector<std::string> apart;
};

// The array that a logical buffer is; kNone if it is a tuple's table or off the time axis.
int32_t ArrayOf(const Module& module, const Schedule& schedule, const LogicalBufferProto& buffer) {
  const std::optional<int32_t> i = module.FindById(buffer.defined_at().instruction_id());
  if (!i || schedule.tick_of[*i] == kNone) return kNone;
  const auto range = module.SubShape(*i, buffer.defined_at().shape_index());
  const ShapeProto* shape = &module.instruction(*i).proto->shape();
  for (const int64_t k : buffer.defined_at().shape_index())
    shape = &shape->tuple_shapes(static_cast<int>(k));
  if (!range.ok() || shape->element_type() == TUPLE) return kNone;
  return module.instruction(*i).first_array + range->first;
}

Count CountOf(const Module& module) {
  const absl::StatusOr<Schedule> schedule = Flatten(module);
  REQUIRE(schedule.ok());
  const absl::StatusOr<Dataflow> dataflow = Dataflow::Build(module, *schedule);
  INFO(dataflow.status());
  REQUIRE(dataflow.ok());
  const BufferAssignmentProto& assignment = module.proto().buffer_assignment();
  std::map<int64_t, Place> places;
  for (const BufferAllocationProto& allocation : assignment.buffer_allocations()) {
    for (const auto& assigned : allocation.assigned())
      places[assigned.logical_buffer_id()] = {allocation.index(), assigned.offset()};
  }
  std::map<int32_t, std::vector<std::pair<Place, std::string>>> storages;
  for (const LogicalBufferProto& buffer : assignment.logical_buffers()) {
    const auto place = places.find(buffer.id());
    const int32_t array = ArrayOf(module, *schedule, buffer);
    if (array == kNone || place == places.end() || buffer.size() == 0) continue;
    const std::optional<int32_t> i = module.FindById(buffer.defined_at().instruction_id());
    storages[dataflow->SetOf(array)].emplace_back(place->second, module.Where(*i));
  }
  Count count;
  for (const auto& [set, values] : storages) {
    if (values.size() < 2) continue;
    ++count.storages;
    count.values += std::ssize(values);
    for (const auto& [place, where] : values) {
      if (place != values[0].first)
        count.apart.push_back(absl::StrCat(values[0].second, " and ", where));
    }
  }
  return count;
}

TEST_CASE("values that are one storage lie in one place of the compiler's assignment") {
  int64_t modules = 0, storages = 0, values = 0;
  const std::filesystem::path folder = MALLOCGAME_SOURCE_DIR "/benchmarks/programs/hlo/core";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!absl::StartsWith(name, "post_msa")) continue;
    const absl::StatusOr<std::string> bytes = ReadFile(entry.path().string());
    REQUIRE(bytes.ok());
    const auto module = Module::Parse(*bytes, entry.path().string());
    REQUIRE(module.ok());
    const Count count = CountOf(**module);
    INFO(entry.path());
    CHECK(count.apart == std::vector<std::string>{});
    ++modules;
    storages += count.storages;
    values += count.values;
  }
  // 28 captures, of which 16 were compiled for less memory too.
  CHECK(modules == 44);
  CHECK(storages == 171);
  CHECK(values == 651);
}

}  // namespace
}  // namespace mallocgame::hlo

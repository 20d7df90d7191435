#include "bindings/c/mallocgame.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bindings/c/handles.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/games.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/replay/game_log.h"
#include "mallocgame/replay/plan_file.h"
#include "mallocgame/search/game_variants.h"

namespace mallocgame::c {
namespace {

static_assert(sizeof(bool) == sizeof(uint8_t) && sizeof(bool) == 1);

std::string& LastError() {
  thread_local std::string last;
  return last;
}

// Runs the body of a function of the interface: what it returns or throws becomes a code.
template <class Body>
int Run(const Body& body) noexcept {
  absl::Status status;
  try {
    status = body();
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& error) {
    status = absl::InternalError(error.what());
  }
  if (status.ok()) return MG_OK;
  try {
    LastError() = std::string(status.message());
  } catch (const std::bad_alloc&) {
    LastError().clear();
  }
  constexpr int kCodes[] = {MG_INVALID_ARGUMENT,   MG_NOT_FOUND,   MG_PERMISSION_DENIED,
                            MG_RESOURCE_EXHAUSTED, MG_UNAVAILABLE, MG_DATA_LOSS,
                            MG_FAILED_PRECONDITION};
  const int code = status.raw_code();
  return std::count(std::begin(kCodes), std::end(kCodes), code) > 0 ? code : MG_INTERNAL;
}

// Run() with what a handle stands for: what never changes as a shared pointer, and what does alone.
template <class T, class Body>
int Of(mg_handle handle, const char* name, const Body& body) {
  return Run([&]() -> absl::Status {
    MG_ASSIGN_OR_RETURN(const Shared<T> object, Handles::Get().Share<T>(handle, name));
    return body(object);
  });
}
template <class T, class Body>
int With(mg_handle handle, const char* name, const Body& body) {
  return Run([&]() -> absl::Status {
    MG_ASSIGN_OR_RETURN(const auto object, Handles::Get().Take<T>(handle, name));
    return body(*object);
  });
}

absl::Status Need(const void* pointer, const char* name) {
  if (pointer != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, ": found a null pointer"));
}

absl::Status NeedRoom(const void* out, size_t room, size_t needed, const char* name) {
  MG_RETURN_IF_ERROR(Need(out, name));
  if (room >= needed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": found room for ", room, " numbers, allowed: ", needed, " or more"));
}

absl::Status NeedIndex(const char* name, int64_t found, int64_t count) {
  if (found >= 0 && found < count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": found ", found, ", allowed: 0 to ", count - 1));
}

absl::Status Give(absl::string_view bytes, void* out, size_t room, size_t* size, bool text) {
  const size_t needed = bytes.size() + (text ? 1 : 0);
  if (size == nullptr && room < needed) return Need(size, "size");
  if (room > 0) MG_RETURN_IF_ERROR(Need(out, "out"));
  if (size != nullptr) *size = bytes.size();
  if (room < needed) return absl::OkStatus();
  std::memcpy(out, bytes.data(), bytes.size());
  if (text) static_cast<char*>(out)[bytes.size()] = '\0';
  return absl::OkStatus();
}

absl::StatusOr<OptionValue> ValueOf(const GameOptions& options, const mg_option& given) {
  for (const auto& [name, usual] : options.List()) {
    if (name != given.name) continue;
    if (std::holds_alternative<double>(usual)) return given.value;
    const bool yes_or_no = std::holds_alternative<bool>(usual);
    const bool is_whole = std::abs(given.value) < 0x1p63 && std::floor(given.value) == given.value;
    if (!is_whole || (yes_or_no && given.value != 0 && given.value != 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat(given.name, ": found ", given.value,
                       ", allowed: ", yes_or_no ? "0 or 1" : "a whole number"));
    }
    const auto whole = static_cast<int64_t>(given.value);
    if (yes_or_no) return whole == 1;
    if (std::holds_alternative<int64_t>(usual)) return whole;
    auto accesses = std::get<std::vector<AccessId>>(usual);
    if (whole < 0 || whole > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat(given.name, ": found ", whole, ", allowed: the index of an access"));
    }
    accesses.emplace_back(static_cast<int32_t>(whole));
    return accesses;
  }
  return int64_t{0};  // GameOptions::Set says what is allowed.
}

absl::StatusOr<Shared<Game>> MakeGame(const ProgramFile& file, const char* kind,
                                      const char* hardware_text,
                                      absl::Span<const mg_option> given) {
  MG_RETURN_IF_ERROR(Need(kind, "kind"));
  Hardware hardware = file.hardware;
  if (hardware_text != nullptr) {
    const absl::string_view text = hardware_text;
    const bool json = text.find('{') != absl::string_view::npos;
    MG_ASSIGN_OR_RETURN(hardware, json ? HardwareFromJson(text) : HardwarePreset(text));
  }
  MG_ASSIGN_OR_RETURN(const std::unique_ptr<GameOptions> options, OptionsOfGame(kind));
  bool any_buffers = true;
  for (const mg_option& one : given) {
    MG_RETURN_IF_ERROR(Need(one.name, "options"));
    MG_ASSIGN_OR_RETURN(const OptionValue value, ValueOf(*options, one));
    MG_RETURN_IF_ERROR(options->Set(one.name, value));
    if (absl::string_view(one.name) == "min_buffer_bytes") any_buffers = false;
  }
  MG_ASSIGN_OR_RETURN(const Shared<Game> game, Game::Create(file.program, hardware, *options));
  return any_buffers ? GameByDefault(*game) : game;
}

ObservationOptions ObservationOf(const mg_observation* given) {
  if (given == nullptr) given = &MG_OBSERVATION_FULL;
  return {given->neighbours, given->ticks_back, given->ticks_ahead, given->ticks_per_column,
          given->address_cells};
}

absl::Status Add(Object object, mg_handle* out, const char* name) {
  MG_RETURN_IF_ERROR(Need(out, name));
  *out = Handles::Get().Add(std::move(object));
  return absl::OkStatus();
}

absl::Status AddProgram(absl::string_view bytes, mg_handle* out) {
  MG_ASSIGN_OR_RETURN(ProgramFile file, ParseProgramFile(bytes));
  return Add(std::make_shared<const ProgramFile>(std::move(file)), out, "program");
}

std::string JsonOfPlan(const Position& position) {
  const Shared<Game> planned = position.PlannedGame();
  const std::vector<Tick> order = position.InstructionOrder();
  if (order.empty()) return PlanToJson(planned->program(), position.ToPlan());
  return OrderedPlanToJson(position.game().program(), order, planned->program(), position.ToPlan());
}

absl::StatusOr<StepBuffers> BuffersOf(const mg_buffers* out, bool steps, Autoreset autoreset) {
  MG_RETURN_IF_ERROR(Need(out, "out"));
  const bool ends = steps && autoreset == Autoreset::kSameStep;
  const std::tuple<const void*, const char*, bool> needed[] = {
      {out->observations, "observations", true},
      {out->masks, "masks", true},
      {out->latency_ps, "latency_ps", true},
      {out->rewards, "rewards", steps},
      {out->terminated, "terminated", steps},
      {out->final_observations, "final_observations", ends},
      {out->final_masks, "final_masks", ends}};
  for (const auto& [pointer, name, is_needed] : needed)
    if (is_needed) MG_RETURN_IF_ERROR(Need(pointer, name));
  return StepBuffers{.observations = out->observations,
                     .masks = out->masks,
                     .rewards = out->rewards,
                     .terminated = reinterpret_cast<bool*>(out->terminated),
                     .latency_ps = out->latency_ps,
                     .final_observations = out->final_observations,
                     .final_masks = out->final_masks};
}

absl::StatusOr<VectorEnvOptions> EnvsOptions(const mg_envs_options& given) {
  MG_RETURN_IF_ERROR(NeedIndex("autoreset", given.autoreset, MG_DISABLED + 1));
  MG_RETURN_IF_ERROR(NeedIndex("fixed", given.fixed, 2));
  VectorEnvOptions options;
  options.autoreset = static_cast<Autoreset>(given.autoreset);
  options.order = given.fixed == 1 ? GameOrder::kFixed : GameOrder::kDrawn;
  options.threads = given.threads;
  return options;
}

}  // namespace
}  // namespace mallocgame::c

// NOLINTBEGIN(readability-identifier-naming,readability-inconsistent-declaration-parameter-name)
using namespace mallocgame;     // NOLINT(google-build-using-namespace)
using namespace mallocgame::c;  // NOLINT(google-build-using-namespace)

uint32_t mg_version() { return 1000 * MG_VERSION_MAJOR + MG_VERSION_MINOR; }

const char* mg_last_error() { return LastError().c_str(); }

int mg_free(mg_handle handle) {
  return Run([&] { return Handles::Get().Free(handle); });
}

int mg_program_load(const char* path, mg_handle* program) {
  return Run([&]() -> absl::Status {
    MG_RETURN_IF_ERROR(Need(path, "path"));
    MG_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
    return AddProgram(bytes, program);
  });
}

int mg_program_parse(const void* bytes, size_t size, mg_handle* program) {
  return Run([&]() -> absl::Status {
    MG_RETURN_IF_ERROR(Need(bytes, "bytes"));
    return AddProgram(absl::string_view(static_cast<const char*>(bytes), size), program);
  });
}

int mg_program_name(mg_handle program, char* out, size_t room, size_t* size) {
  return Of<ProgramFile>(program, "program", [&](const Shared<ProgramFile>& file) {
    return Give(file->program->name(), out, room, size, true);
  });
}

int mg_game_create(mg_handle program, const char* kind, const char* hardware,
                   const mg_option* options, size_t num_options, mg_handle* game) {
  return Of<ProgramFile>(program, "program", [&](const Shared<ProgramFile>& file) -> absl::Status {
    if (num_options > 0) MG_RETURN_IF_ERROR(Need(options, "options"));
    MG_ASSIGN_OR_RETURN(Shared<Game> made,
                        MakeGame(*file, kind, hardware, absl::MakeSpan(options, num_options)));
    return Add(std::move(made), game, "game");
  });
}

int mg_game_info_of(mg_handle game, mg_game_info* info) {
  return Of<Game>(game, "game", [&](const Shared<Game>& of) -> absl::Status {
    MG_RETURN_IF_ERROR(Need(info, "info"));
    *info = {of->all_main_ps(), of->num_actions(), of->max_decisions()};
    return absl::OkStatus();
  });
}

int mg_game_action_name(mg_handle game, int32_t action, char* out, size_t room, size_t* size) {
  return Of<Game>(game, "game", [&](const Shared<Game>& of) -> absl::Status {
    MG_RETURN_IF_ERROR(NeedIndex("action", action, of->num_actions()));
    return Give(of->ActionToString(action), out, room, size, true);
  });
}

int mg_observer_create(mg_handle game, const mg_observation* observation, mg_handle* observer) {
  return Of<Game>(game, "game", [&](const Shared<Game>& of) -> absl::Status {
    MG_ASSIGN_OR_RETURN(Observer made, Observer::Create(of, ObservationOf(observation)));
    return Add(std::make_shared<const Observer>(std::move(made)), observer, "observer");
  });
}

int mg_observer_size(mg_handle observer, size_t* numbers, size_t* parts) {
  return Of<Observer>(observer, "observer", [&](const Shared<Observer>& of) {
    if (numbers != nullptr) *numbers = of->size();
    if (parts != nullptr) *parts = of->game().options().Layout(of->options()).size();
    return absl::OkStatus();
  });
}

int mg_observer_part(mg_handle observer, size_t index, mg_part* part) {
  return Of<Observer>(observer, "observer", [&](const Shared<Observer>& of) -> absl::Status {
    MG_RETURN_IF_ERROR(Need(part, "part"));
    const std::vector<ObservationPart> layout = of->game().options().Layout(of->options());
    MG_RETURN_IF_ERROR(NeedIndex("index", index, layout.size()));
    const ObservationPart& one = layout[index];
    mg_part found = {};
    MG_CHECK(one.name.size() < sizeof found.name && one.shape.size() <= std::size(found.shape));
    one.name.copy(found.name, sizeof found.name - 1);
    found.offset = one.offset;
    found.rank = static_cast<int32_t>(one.shape.size());
    for (size_t i = 0; i < one.shape.size(); ++i) found.shape[i] = one.shape[i];
    *part = found;
    return absl::OkStatus();
  });
}

int mg_observer_write(mg_handle observer, mg_handle position, float* out, size_t room) {
  return Of<Observer>(observer, "observer", [&](const Shared<Observer>& of) -> absl::Status {
    MG_RETURN_IF_ERROR(NeedRoom(out, room, of->size(), "out"));
    MG_ASSIGN_OR_RETURN(const auto at, Handles::Get().Take<Position>(position, "position"));
    if (&at->game() != &of->game()) {
      return absl::InvalidArgumentError(
          "position: found one of another game, allowed: one of the observer's");
    }
    of->Write(*at, out);
    return absl::OkStatus();
  });
}

int mg_position_create(mg_handle game, mg_handle* position) {
  return Of<Game>(game, "game", [&](const Shared<Game>& of) {
    return Add(of->NewInitialPosition(), position, "position");
  });
}

int mg_position_clone(mg_handle position, mg_handle* clone) {
  return With<Position>(position, "position",
                        [&](const Position& at) { return Add(at.Clone(), clone, "clone"); });
}

int mg_position_info_of(mg_handle position, mg_position_info* info) {
  return With<Position>(position, "position", [&](const Position& at) -> absl::Status {
    MG_RETURN_IF_ERROR(Need(info, "info"));
    *info = {at.latency_ps(), at.num_decisions(), at.IsTerminal() ? 1 : 0};
    return absl::OkStatus();
  });
}

int mg_position_legal(mg_handle position, int8_t* mask, size_t room) {
  return With<Position>(position, "position", [&](const Position& at) -> absl::Status {
    const size_t count = at.game().num_actions();
    MG_RETURN_IF_ERROR(NeedRoom(mask, room, count, "mask"));
    std::memset(mask, 0, count);
    for (const int action : at.legal_actions()) mask[action] = 1;
    return absl::OkStatus();
  });
}

int mg_position_apply(mg_handle position, int32_t action, int64_t* saved_ps) {
  return With<Position>(position, "position", [&](Position& at) -> absl::Status {
    MG_ASSIGN_OR_RETURN(const int64_t saved, at.Apply(action));
    if (saved_ps != nullptr) *saved_ps = saved;
    return absl::OkStatus();
  });
}

int mg_position_undo(mg_handle position) {
  return With<Position>(position, "position", [&](Position& at) {
    if (at.num_decisions() == 0)
      return absl::FailedPreconditionError("undo: the position is the start of its game");
    at.Undo();
    return absl::OkStatus();
  });
}

int mg_position_actions(mg_handle position, uint8_t* out, size_t room, size_t* size) {
  return With<Position>(position, "position", [&](const Position& at) {
    const absl::Span<const uint8_t> actions = at.actions();
    return Give({reinterpret_cast<const char*>(actions.data()), actions.size()}, out, room, size,
                false);
  });
}

int mg_position_text(mg_handle position, char* out, size_t room, size_t* size) {
  return With<Position>(position, "position", [&](const Position& at) {
    return Give(at.ToString(), out, room, size, true);
  });
}

int mg_position_plan(mg_handle position, char* out, size_t room, size_t* size) {
  return With<Position>(position, "position", [&](const Position& at) {
    return Give(JsonOfPlan(at), out, room, size, true);
  });
}

int mg_position_log(mg_handle position, const char* player, uint64_t seed, void* out, size_t room,
                    size_t* size) {
  return With<Position>(position, "position", [&](const Position& at) -> absl::Status {
    MG_RETURN_IF_ERROR(Need(player, "player"));
    if (!at.IsTerminal())
      return absl::FailedPreconditionError("log: the game is not over; play it to its end first");
    MG_ASSIGN_OR_RETURN(const GameLog log, RecordGame(at.game(), at.actions(), player, seed));
    return Give(SerializeGameLog(log), out, room, size, false);
  });
}

int mg_log_replay(mg_handle program, const void* log, size_t size, mg_handle* position) {
  return Of<ProgramFile>(program, "program", [&](const Shared<ProgramFile>& file) -> absl::Status {
    MG_RETURN_IF_ERROR(Need(log, "log"));
    MG_ASSIGN_OR_RETURN(const GameLog parsed,
                        ParseGameLog(absl::string_view(static_cast<const char*>(log), size)));
    MG_ASSIGN_OR_RETURN(const ReplayVerdict verdict, ReplayLog(parsed, file->program));
    if (!verdict.same) return absl::DataLossError(verdict.message);
    if (position == nullptr) return absl::OkStatus();
    MG_ASSIGN_OR_RETURN(const Shared<Game> game,
                        Game::Create(file->program, parsed.hardware, *parsed.options));
    MG_ASSIGN_OR_RETURN(std::unique_ptr<Position> end, PlayActions(*game, parsed.actions));
    return Add(std::move(end), position, "position");
  });
}

int mg_envs_create(const mg_handle* games, size_t num_games, int32_t count,
                   const mg_envs_options* options, mg_handle* envs) {
  return Run([&]() -> absl::Status {
    MG_RETURN_IF_ERROR(Need(games, "games"));
    MG_RETURN_IF_ERROR(Need(options, "options"));
    std::vector<Shared<Game>> list;
    for (const mg_handle handle : absl::MakeSpan(games, num_games)) {
      MG_ASSIGN_OR_RETURN(auto game, Handles::Get().Share<Game>(handle, "games"));
      list.push_back(std::move(game));
    }
    MG_ASSIGN_OR_RETURN(const VectorEnvOptions settings, EnvsOptions(*options));
    MG_ASSIGN_OR_RETURN(auto drawn, GameList::Create(list, ObservationOf(&options->observation)));
    MG_ASSIGN_OR_RETURN(auto made, VectorEnv::Create(std::move(drawn), count, settings));
    return Add(std::move(made), envs, "envs");
  });
}

int mg_envs_info_of(mg_handle envs, mg_envs_info* info) {
  return With<VectorEnv>(envs, "envs", [&](const VectorEnv& of) -> absl::Status {
    MG_RETURN_IF_ERROR(Need(info, "info"));
    *info = {of.count(), of.games().num_actions(), of.games().observation_size(), of.threads()};
    return absl::OkStatus();
  });
}

int mg_envs_reset(mg_handle envs, const uint64_t* seeds, const uint8_t* which,
                  const mg_buffers* out) {
  return With<VectorEnv>(envs, "envs", [&](VectorEnv& of) -> absl::Status {
    MG_ASSIGN_OR_RETURN(const StepBuffers buffers, BuffersOf(out, false, Autoreset::kDisabled));
    const size_t count = of.count();
    std::vector<std::optional<uint64_t>> given;
    if (seeds != nullptr) given.assign(seeds, seeds + count);
    const std::unique_ptr<bool[]> chosen(which == nullptr ? nullptr : new bool[count]);
    for (size_t i = 0; which != nullptr && i < count; ++i) chosen[i] = which[i] != 0;
    return of.Reset(given, absl::MakeSpan(chosen.get(), which == nullptr ? 0 : count), buffers);
  });
}

int mg_envs_step(mg_handle envs, const int64_t* actions, const mg_buffers* out) {
  return With<VectorEnv>(envs, "envs", [&](VectorEnv& of) -> absl::Status {
    MG_RETURN_IF_ERROR(Need(actions, "actions"));
    MG_ASSIGN_OR_RETURN(const StepBuffers buffers, BuffersOf(out, true, of.autoreset()));
    return of.Step(absl::MakeSpan(actions, static_cast<size_t>(of.count())), buffers);
  });
}

int mg_envs_position(mg_handle envs, int32_t index, mg_handle* position) {
  return With<VectorEnv>(envs, "envs", [&](const VectorEnv& of) -> absl::Status {
    MG_RETURN_IF_ERROR(NeedIndex("index", index, of.count()));
    return Add(of.environment(index).position().Clone(), position, "position");
  });
}
// NOLINTEND(readability-identifier-naming,readability-inconsistent-declaration-parameter-name)

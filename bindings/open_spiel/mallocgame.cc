#include "bindings/open_spiel/mallocgame.h"

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "open_spiel/spiel_utils.h"

namespace mallocgame {
namespace {

// By the number of players.
spiel::GameType TypeOf(int players) {
  using Type = spiel::GameType;
  const auto text = [](const char* value) { return spiel::GameParameter(std::string(value)); };
  return {"mallocgame",
          "mallocGame",
          Type::Dynamics::kSequential,
          Type::ChanceMode::kDeterministic,
          Type::Information::kPerfectInformation,
          players == 2 ? Type::Utility::kZeroSum : Type::Utility::kGeneralSum,
          Type::RewardModel::kTerminal,
          /*max_num_players=*/2,
          /*min_num_players=*/1,
          /*provides_information_state_string=*/true,
          /*provides_information_state_tensor=*/false,
          /*provides_observation_string=*/true,
          /*provides_observation_tensor=*/true,
          {{"program", text("wavernn_64steps_b8.tpu_v4i")},
           {"hardware", text("")},
           {"actions", text("full")},
           {"game", text("time")},
           {"candidates", spiel::GameParameter(4)},
           {"observation", text("flat")},
           {"players", spiel::GameParameter(1)}}};
}

int PlayersOf(const spiel::GameParameters& parameters) {
  const auto given = parameters.find("players");
  const int players = given == parameters.end() ? 1 : given->second.int_value();
  if (players != 1 && players != 2) {
    spiel::SpielFatalError("mallocgame: players: found " + std::to_string(players) +
                           ", allowed: 1, 2");
  }
  return players;
}

const spiel::GameRegisterer kRegistered(TypeOf(1), [](const spiel::GameParameters& parameters) {
  return std::make_shared<const MallocGame>(parameters);
});

void Check(int code) {
  if (code != MG_OK) spiel::SpielFatalError(std::string("mallocgame: ") + mg_last_error());
}

void OneOf(const char* name, const std::string& found, const char* a, const char* b) {
  if (found == a || found == b) return;
  spiel::SpielFatalError(std::string("mallocgame: ") + name + ": found '" + found +
                         "', allowed: '" + a + "', '" + b + "'");
}

// What a function of the C interface makes.
template <class Make>
Owned Made(const Make& make) {
  mg_handle handle = 0;
  Check(make(&handle));
  return Owned(handle);
}

// The bytes that a function of the C interface gives.
template <class Give, class... Arguments>
std::string BytesOf(const Give& give, Arguments... arguments) {
  size_t size = 0;
  Check(give(arguments..., nullptr, 0, &size));
  std::string bytes(size + 1, '\0');  // texts end with a 0
  Check(give(arguments..., bytes.data(), bytes.size(), &size));
  bytes.resize(size);
  return bytes;
}

// A name whose text may hold "%2C" for a comma; a file may have a name that only looks so.
std::string Unquoted(const std::string& name) {
  if (std::filesystem::exists(name)) return name;
  std::string plain;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '%' && i + 2 < name.size() && std::isxdigit(name[i + 1]) != 0 &&
        std::isxdigit(name[i + 2]) != 0) {
      plain += static_cast<char>(std::stoi(name.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      plain += name[i];
    }
  }
  return plain;
}

std::string PathOf(const std::string& program) {
  if (std::filesystem::exists(program)) return program;
  const char* folder = std::getenv("MALLOCGAME_PROGRAMS");
  const std::string path =
      std::string(folder != nullptr ? folder : MALLOCGAME_PROGRAMS) + "/" + program + ".mgp";
  return std::filesystem::exists(path) ? path : program;
}

// The C interface takes the name of a preset or JSON.
std::string HardwareOf(const std::string& hardware) {
  if (!std::filesystem::exists(hardware)) return hardware;
  std::ostringstream json;
  json << std::ifstream(hardware).rdbuf();
  return json.str();
}

}  // namespace

MallocGame::MallocGame(const spiel::GameParameters& parameters)
    : spiel::Game(TypeOf(PlayersOf(parameters)), parameters),
      players_(ParameterValue<int>("players")) {
  const auto program = Unquoted(ParameterValue<std::string>("program"));
  const auto hardware = Unquoted(ParameterValue<std::string>("hardware"));
  const auto kind = ParameterValue<std::string>("game");
  const auto actions = ParameterValue<std::string>("actions");
  const auto observation = ParameterValue<std::string>("observation");
  const int candidates = ParameterValue<int>("candidates");
  OneOf("actions", actions, "full", "paper");
  OneOf("observation", observation, "flat", "compact");
  std::vector<mg_option> options;
  if (actions == "paper") options.push_back({"paper_actions", 1});
  if (candidates != 4) options.push_back({"candidates", static_cast<double>(candidates)});

  const std::string chip = HardwareOf(hardware);
  program_ = Made([&](auto* out) { return mg_program_load(PathOf(program).c_str(), out); });
  game_ = Made([&](auto* out) {
    return mg_game_create(program_.get(), kind.c_str(), chip.empty() ? nullptr : chip.c_str(),
                          options.data(), options.size(), out);
  });
  Check(mg_game_info_of(game_.get(), &info_));
  if (info_.max_decisions == 0) {
    spiel::SpielFatalError("mallocgame: program: '" + program +
                           "' has nothing to decide; allowed: one access or more");
  }
  const auto* parts = observation == "compact" ? &MG_OBSERVATION_COMPACT : &MG_OBSERVATION_FULL;
  observer_ = Made([&](auto* out) { return mg_observer_create(game_.get(), parts, out); });
  size_t numbers = 0;
  Check(mg_observer_size(observer_.get(), &numbers, nullptr));
  observation_size_ = static_cast<int>(numbers);
}

std::unique_ptr<spiel::State> MallocGame::NewInitialState() const {
  return std::make_unique<MallocState>(shared_from_this());
}

std::string MallocGame::ActionToString(spiel::Player /*player*/, spiel::Action action) const {
  return BytesOf(mg_game_action_name, game_.get(), static_cast<int32_t>(action));
}

std::unique_ptr<spiel::State> MallocGame::Replay(const std::string& log) const {
  const Owned end =
      Made([&](auto* out) { return mg_log_replay(program_.get(), log.data(), log.size(), out); });
  const std::string actions = BytesOf([&](char* out, size_t room, size_t* size) {
    return mg_position_actions(end.get(), reinterpret_cast<uint8_t*>(out), room, size);
  });
  std::unique_ptr<spiel::State> state = NewInitialState();
  for (const char action : actions) {
    state->ApplyActionWithLegalityCheck(static_cast<uint8_t>(action));
  }
  if (static_cast<const MallocState&>(*state).Plan() != BytesOf(mg_position_plan, end.get())) {
    spiel::SpielFatalError("mallocgame: the log is of a game with other options than " +
                           ToString());
  }
  return state;
}

MallocState::MallocState(std::shared_ptr<const spiel::Game> game) : spiel::State(std::move(game)) {
  position_ = Made([&](auto* out) { return mg_position_create(this->game().game_.get(), out); });
  Look();
}

MallocState::MallocState(const MallocState& other) : spiel::State(other), info_(other.info_) {
  position_ = Made([&](auto* out) { return mg_position_clone(other.position_.get(), out); });
}

void MallocState::Look() { Check(mg_position_info_of(position_.get(), &info_)); }

void MallocState::CheckPlayer(spiel::Player player) const {
  SPIEL_CHECK_GE(player, 0);
  SPIEL_CHECK_LT(player, num_players_);
}

std::vector<spiel::Action> MallocState::LegalActions() const {
  std::vector<int8_t> mask(num_distinct_actions_);
  Check(mg_position_legal(position_.get(), mask.data(), mask.size()));
  std::vector<spiel::Action> legal;
  for (int action = 0; action < num_distinct_actions_; ++action) {
    if (mask[action] != 0) legal.push_back(action);
  }
  return legal;
}

std::string MallocState::ActionToString(spiel::Player player, spiel::Action action) const {
  return game().ActionToString(player, action);
}

std::string MallocState::ToString() const { return BytesOf(mg_position_text, position_.get()); }

std::vector<double> MallocState::Returns() const {
  const auto all_main_ps = static_cast<double>(game().info_.all_main_ps);
  const bool known = IsTerminal() && all_main_ps > 0;
  const double first = known ? 1 - static_cast<double>(info_.latency_ps) / all_main_ps : 0;
  if (num_players_ == 2) return {first, -first};
  return {first};
}

std::string MallocState::InformationStateString(spiel::Player player) const {
  CheckPlayer(player);
  return HistoryString();
}

std::string MallocState::ObservationString(spiel::Player player) const {
  CheckPlayer(player);
  return ToString();
}

void MallocState::ObservationTensor(spiel::Player player, absl::Span<float> values) const {
  CheckPlayer(player);
  SPIEL_CHECK_EQ(values.size(), game().observation_size_);
  Check(mg_observer_write(game().observer_.get(), position_.get(), values.data(), values.size()));
}

std::unique_ptr<spiel::State> MallocState::Clone() const {
  return std::make_unique<MallocState>(*this);
}

void MallocState::DoApplyAction(spiel::Action action) {
  const bool fits = action >= 0 && action < num_distinct_actions_;
  Check(mg_position_apply(position_.get(), fits ? static_cast<int32_t>(action) : -1, nullptr));
  Look();
}

void MallocState::UndoAction(spiel::Player player, spiel::Action action) {
  SPIEL_CHECK_FALSE(history_.empty());
  SPIEL_CHECK_TRUE((history_.back() == PlayerAction{player, action}));
  Check(mg_position_undo(position_.get()));
  Look();
  history_.pop_back();
  --move_number_;
}

std::string MallocState::Plan() const { return BytesOf(mg_position_plan, position_.get()); }

std::string MallocState::Log(const std::string& player, uint64_t seed) const {
  return BytesOf(mg_position_log, position_.get(), player.c_str(), seed);
}

}  // namespace mallocgame

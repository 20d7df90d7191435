// How an agent's checkpoint becomes bytes and is read back. A Checkpoint is a struct that lists its
// fields once, in the order in which they are written:
//
//     struct Checkpoint {
//       static constexpr absl::string_view kAgent = "muzero";
//       static constexpr int kFormatVersion = 1;
//       template <class Self>
//       static auto Fields(Self& self) { return std::tie(self.config, self.seed); }
//       ...
//     };
//
// A field is a number, a string, a list of numbers, a Config (training/settings.h), a struct that
// lists its own fields in the same way, a list of such, or one that may be absent. A Checkpoint may
// have a method game(), which names the game that the agent plays; without it that is the time
// game. An agent whose networks see observations (game/observation.h) has a kObservationVersion
// beside its kFormatVersion.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/training/bytes.h"
#include "agents/training/checkpoint_file.h"
#include "agents/training/settings.h"
#include "mallocgame/base/error.h"

namespace mallocgame::training {

template <class T>
concept HasFields = requires(T& value) { T::Fields(value); };
template <class T>
concept HasGame = requires(const T& value) { value.game(); };
template <class T>
concept HasSettings = requires(const T& value) { Settings(value); };

template <HasFields T>
void WriteField(const std::vector<T>& list, std::string& out);
template <HasFields T>
void WriteField(const std::optional<T>& field, std::string& out);
template <class T>
void WriteField(const T& field, std::string& out) {
  if constexpr (HasFields<T>) {
    std::apply([&out](const auto&... part) { (WriteField(part, out), ...); }, T::Fields(field));
  } else if constexpr (HasSettings<T>) {
    WriteBytes(SettingsText(field), out);
  } else {
    WriteBytes(field, out);
  }
}
template <HasFields T>
void WriteField(const std::vector<T>& list, std::string& out) {
  WriteBytes(static_cast<uint64_t>(list.size()), out);
  for (const T& element : list) WriteField(element, out);
}
template <HasFields T>
void WriteField(const std::optional<T>& field, std::string& out) {
  WriteBytes(static_cast<uint8_t>(field.has_value()), out);
  if (field) WriteField(*field, out);
}

template <HasFields T>
absl::Status ReadField(absl::string_view& in, std::vector<T>& list);
template <HasFields T>
absl::Status ReadField(absl::string_view& in, std::optional<T>& field);
template <class T>
absl::Status ReadField(absl::string_view& in, T& field) {
  if constexpr (HasFields<T>) {
    absl::Status status;
    std::apply(
        [&](auto&... part) {
          const auto read = [&](auto& next) { return (status = ReadField(in, next)).ok(); };
          static_cast<void>((read(part) && ...));
        },
        T::Fields(field));
    return status;
  } else if constexpr (HasSettings<T>) {
    absl::string_view text;
    MG_RETURN_IF_ERROR(ReadBytes(in, text));
    return ReadSettings(text, field);
  } else {
    return ReadBytes(in, field);
  }
}
template <HasFields T>
absl::Status ReadField(absl::string_view& in, std::vector<T>& list) {
  uint64_t size = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, size));
  for (uint64_t i = 0; i < size; ++i) {
    T element;
    MG_RETURN_IF_ERROR(ReadField(in, element));
    list.push_back(std::move(element));
  }
  return absl::OkStatus();
}
template <HasFields T>
absl::Status ReadField(absl::string_view& in, std::optional<T>& field) {
  uint8_t has_value = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, has_value));
  return has_value == 0 ? absl::OkStatus() : ReadField(in, field.emplace());
}

template <class Checkpoint>
std::string GameOf(const Checkpoint& checkpoint) {
  if constexpr (HasGame<Checkpoint>) return checkpoint.game();
  return kUsualGame;
}

template <class Checkpoint>
constexpr int ObservationVersionOf() {
  if constexpr (requires { Checkpoint::kObservationVersion; })
    return Checkpoint::kObservationVersion;
  return 0;
}

template <HasFields Checkpoint>
std::string PackCheckpoint(const Checkpoint& checkpoint) {
  std::string body;
  WriteField(checkpoint, body);
  return SealCheckpoint(Checkpoint::kAgent, Checkpoint::kFormatVersion, body, GameOf(checkpoint),
                        ObservationVersionOf<Checkpoint>());
}

// InvalidArgument: the bytes are not a checkpoint of this agent, are damaged, or are of another
// version (of the format, the rules, the observations, or the settings).
template <HasFields Checkpoint>
absl::StatusOr<Checkpoint> UnpackCheckpoint(absl::string_view bytes) {
  MG_ASSIGN_OR_RETURN(OpenedCheckpoint opened,
                      OpenCheckpoint(Checkpoint::kAgent, Checkpoint::kFormatVersion, bytes,
                                     ObservationVersionOf<Checkpoint>()));
  Checkpoint checkpoint;
  MG_RETURN_IF_ERROR(ReadField(opened.body, checkpoint));
  if (GameOf(checkpoint) != opened.game) return CutShort();
  return checkpoint;
}

}  // namespace mallocgame::training

// Our values to the messages of replay.proto and back. Reading checks types and table lengths;
// Program::Create, ValidateHardware and Validate check what the values mean. Private to this
// folder.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/game/game.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"
#include "mallocgame/simulator/report.h"

namespace google::protobuf {
class MessageLite;
}

namespace mallocgame::replay {

class Program;
class Hardware;
class Plan;
class GameOptions;
class Report;

void ToWire(const ProgramData& data, Program* wire);
void ToWire(const mallocgame::Hardware& hardware, Hardware* wire);
void ToWire(const mallocgame::Plan& plan, Plan* wire);
void ToWire(const mallocgame::GameOptions& options, GameOptions* wire);
// Writes the totals, not the figures by tick.
void ToWire(const mallocgame::Report& report, Report* wire);

// InvalidArgument names the table, column and row.
absl::StatusOr<ProgramData> ProgramFromWire(const Program& wire);
// The hardware has passed ValidateHardware.
absl::StatusOr<mallocgame::Hardware> HardwareFromWire(const Hardware& wire);
absl::StatusOr<mallocgame::Plan> PlanFromWire(const Plan& wire);
absl::StatusOr<std::shared_ptr<const mallocgame::GameOptions>> OptionsFromWire(
    const GameOptions& wire);
mallocgame::Report ReportFromWire(const Report& wire);
// The text itself, or InvalidArgument if it is not UTF-8. Messages call it `what`.
absl::StatusOr<std::string> ReadText(const char* what, const std::string& wire);

// Equal messages give equal bytes.
std::string SerializeMessage(const google::protobuf::MessageLite& message);
// Fills `message`; InvalidArgument if the bytes are no message of its type.
absl::Status ParseMessage(absl::string_view bytes, google::protobuf::MessageLite& message);

}  // namespace mallocgame::replay

// Makes a program and hardware of any bytes: a random valid program, then edits of single numbers
// of both. Program::Create refuses most of them. The rest of the library must bear the others.
#pragma once

#include "absl/strings/string_view.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/program/program.h"

namespace mallocgame::fuzz {

struct EditedProgram {
  ProgramData program;
  Hardware hardware;
};
EditedProgram MakeEditedProgram(absl::string_view bytes);

}  // namespace mallocgame::fuzz

// Programs made of the small modules of module_text.h, and what stands in them, as text.
#pragma once

#include <memory>
#include <string>

#include "mallocgame/hlo/import/import.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo_test {

// The program of a module. The test fails if the importer refuses it.
std::shared_ptr<const Program> Import(const ModuleText& module, ImportSummary* summary = nullptr,
                                      const Hardware& hardware = UnitHardware());

// The test fails if there is none of that name.
const Buffer& BufferNamed(const Program& program, const std::string& name);

// The accesses of one tick, such as "read a, update b".
std::string AccessesAt(const Program& program, Tick tick);
std::string AccessesOf(const Program& program, const std::string& name,
                       InstructionKind kind = InstructionKind::kOrdinary);

// The names of all instructions; the entry of a loop has < behind it, its exit >.
std::string Names(const Program& program);

// A loop that counts to 16, reads a table and writes a slice of an accumulator in each trip.
ModuleText LoopModule();

}  // namespace mallocgame::hlo_test

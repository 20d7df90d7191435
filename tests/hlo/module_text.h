// HLO modules that tests write down in the spelling of HLO text, one line for each instruction.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo_test {

// Reads "f32[8,128]{1,0:T(8,128)(2,1)S(1)SC(0:4)}", "(s32[], f32[4])" or "b(f32[4])". Without
// braces the layout is row-major and untiled.
hlo::ShapeProto ParseShape(const std::string& text);

class ModuleText {
 public:
  ModuleText() { proto_.mutable_hlo_module()->set_name("m"); }

  // Begins a computation. It must come before its callers; the last one is the entry. A fused
  // computation has no schedule.
  ModuleText& Computation(const std::string& name, bool fused = false);
  // Adds "name = SHAPE opcode(operand, operand)". The last instruction of a computation is its
  // root. `extra` has further fields in protobuf's text format.
  ModuleText& Add(const std::string& line, const std::string& extra = "",
                  const std::vector<std::string>& called = {});
  // Stores the element `output_index` of the entry's result where its parameter is.
  ModuleText& Donate(int64_t output_index, int64_t parameter);
  // Says that the assignment put the array at `index` of an instruction into memory space `color`,
  // with half of its bytes on each core if its layout is split.
  ModuleText& Place(const std::string& name, const std::vector<int64_t>& index, int64_t offset,
                    int64_t color);

  // Has an instruction call a computation.
  ModuleText& Call(const std::string& name, const std::string& computation);

  hlo::HloProto& proto() { return proto_; }
  hlo::HloInstructionProto& at(const std::string& name);
  std::string Bytes() const { return proto_.SerializeAsString(); }

 private:
  hlo::HloProto proto_;
  hlo::HloComputationProto* computation_ = nullptr;
  std::map<std::string, int64_t> ids_, computations_;
  int64_t parameters_ = 0;
};

// The module as the importer reads it. The test fails if the importer refuses it.
std::unique_ptr<const hlo::Module> Parse(const ModuleText& text);

// The instruction of this name. The test fails if there is none.
int32_t Named(const hlo::Module& module, const std::string& name);

// The text format of a constant's value.
std::string Literal(int64_t value);

// Hardware with 1 MiB of fast memory in memory space 1. Every rate is 1e12 a second, so a byte, a
// flop and a cycle take a picosecond.
Hardware UnitHardware();

}  // namespace mallocgame::hlo_test

// HLO modules written down in tests, one line an instruction, in the spelling of HLO text.
#ifndef MALLOCGAME_TESTS_HLO_MODULE_TEXT_H_
#define MALLOCGAME_TESTS_HLO_MODULE_TEXT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hlo/hlo.pb.h"

namespace mallocgame::hlo_test {

// "f32[8,128]{1,0:T(8,128)(2,1)S(3)}", "(s32[], f32[4])"; without braces the layout is row-major
// and untiled.
hlo::ShapeProto ParseShape(const std::string& text);

class ModuleText {
 public:
  ModuleText() { proto_.mutable_hlo_module()->set_name("m"); }

  // Computations stand before their callers; the last one is the entry. Fusion bodies have no
  // schedule.
  ModuleText& Computation(const std::string& name, bool fused = false);
  // "name = SHAPE opcode(operand, operand)". The last one is the root. `extra`: text format of
  // further fields.
  ModuleText& Add(const std::string& line, const std::string& extra = "",
                  const std::vector<std::string>& called = {});
  // The result at output_index is stored where the parameter's is.
  ModuleText& Donate(int64_t output_index, int64_t parameter);
  // Where the assignment put the array at `index` of an instruction: memory space `color`.
  ModuleText& Place(const std::string& name, const std::vector<int64_t>& index, int64_t offset,
                    int64_t color);

  hlo::HloProto& proto() { return proto_; }
  hlo::HloInstructionProto& at(const std::string& name);
  std::string Bytes() const { return proto_.SerializeAsString(); }

 private:
  hlo::HloProto proto_;
  hlo::HloComputationProto* computation_ = nullptr;
  std::map<std::string, int64_t> ids_, computations_;
  int64_t parameters_ = 0;
};

// 1 MiB of fast memory in memory space 1; every rate 1e12 a second: a byte, a flop and a cycle take
// a picosecond.
Hardware UnitHardware();

}  // namespace mallocgame::hlo_test

#endif  // MALLOCGAME_TESTS_HLO_MODULE_TEXT_H_

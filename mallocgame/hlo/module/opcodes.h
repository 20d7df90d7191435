// Opcodes, and kinds of instructions that several sources must tell apart alike. Private to the
// folder.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// All opcodes of XLA (xla/hlo/ir/hlo_opcode.h, August 2026), by Computes.
// clang-format off
#define MALLOCGAME_HLO_MOVES(V) \
  V(kAddDependency, "add-dependency") V(kAfterAll, "after-all") V(kAllGather, "all-gather") \
  V(kAllGatherDone, "all-gather-done") V(kAllGatherStart, "all-gather-start") \
  V(kAllReduceDone, "all-reduce-done") V(kAllToAll, "all-to-all") V(kAsyncDone, "async-done") \
  V(kAsyncUpdate, "async-update") V(kBatchNormGrad, "batch-norm-grad") \
  V(kBatchNormInference, "batch-norm-inference") V(kBatchNormTraining, "batch-norm-training") \
  V(kBitcast, "bitcast") V(kBroadcast, "broadcast") \
  V(kCollectiveBroadcast, "collective-broadcast") V(kCollectivePermute, "collective-permute") \
  V(kCollectivePermuteDone, "collective-permute-done") \
  V(kCollectivePermuteStart, "collective-permute-start") V(kConcatenate, "concatenate") \
  V(kConstant, "constant") V(kCopy, "copy") V(kCopyDone, "copy-done") \
  V(kCopyStart, "copy-start") V(kDomain, "domain") V(kDynamicReshape, "dynamic-reshape") \
  V(kDynamicSlice, "dynamic-slice") V(kDynamicUpdateSlice, "dynamic-update-slice") \
  V(kGather, "gather") V(kGetDimensionSize, "get-dimension-size") \
  V(kGetTupleElement, "get-tuple-element") V(kInfeed, "infeed") V(kOptBarrier, "opt-barrier") \
  V(kOutfeed, "outfeed") V(kPad, "pad") V(kParameter, "parameter") \
  V(kPartitionId, "partition-id") V(kRaggedAllToAll, "ragged-all-to-all") V(kRecv, "recv") \
  V(kRecvDone, "recv-done") V(kReduceScatter, "reduce-scatter") V(kReplicaId, "replica-id") \
  V(kReshape, "reshape") V(kReverse, "reverse") \
  V(kRngGetAndUpdateState, "rng-get-and-update-state") V(kSend, "send") \
  V(kSendDone, "send-done") V(kSetDimensionSize, "set-dimension-size") V(kSlice, "slice") \
  V(kTopk, "topk") V(kTranspose, "transpose") V(kTuple, "tuple")
#define MALLOCGAME_HLO_OPERATIONS(V) \
  V(kAbs, "abs") V(kAdd, "add") V(kAnd, "and") V(kBitcastConvert, "bitcast-convert") \
  V(kCeil, "ceil") V(kClamp, "clamp") V(kCompare, "compare") V(kComplex, "complex") \
  V(kConvert, "convert") V(kCountLeadingZeros, "count-leading-zeros") V(kDivide, "divide") \
  V(kFloor, "floor") V(kImag, "imag") V(kIota, "iota") V(kIsFinite, "is-finite") \
  V(kMaximum, "maximum") V(kMinimum, "minimum") V(kMulhi, "mulhi") V(kMultiply, "multiply") \
  V(kNegate, "negate") V(kNot, "not") V(kOr, "or") V(kPopcnt, "popcnt") V(kReal, "real") \
  V(kReducePrecision, "reduce-precision") V(kRemainder, "remainder") \
  V(kRoundNearestAfz, "round-nearest-afz") V(kRoundNearestEven, "round-nearest-even") \
  V(kSelect, "select") V(kShiftLeft, "shift-left") \
  V(kShiftRightArithmetic, "shift-right-arithmetic") \
  V(kShiftRightLogical, "shift-right-logical") V(kSign, "sign") \
  V(kStochasticConvert, "stochastic-convert") V(kSubtract, "subtract") V(kXor, "xor")
#define MALLOCGAME_HLO_FUNCTIONS(V) \
  V(kAcos, "acos") V(kAcosh, "acosh") V(kAsin, "asin") V(kAsinh, "asinh") V(kAtan2, "atan2") \
  V(kAtanh, "atanh") V(kCbrt, "cbrt") V(kCosh, "cosh") V(kCosine, "cosine") V(kErf, "erf") \
  V(kExponential, "exponential") V(kExponentialMinusOne, "exponential-minus-one") V(kLog, "log") \
  V(kLogPlusOne, "log-plus-one") V(kLogistic, "logistic") V(kPower, "power") V(kRng, "rng") \
  V(kRsqrt, "rsqrt") V(kSine, "sine") V(kSinh, "sinh") V(kSqrt, "sqrt") V(kTan, "tan") \
  V(kTanh, "tanh")
#define MALLOCGAME_HLO_OWN_RULES(V) \
  V(kAllReduce, "all-reduce") V(kAllReduceStart, "all-reduce-start") \
  V(kAsyncStart, "async-start") V(kCall, "call") V(kCholesky, "cholesky") \
  V(kConditional, "conditional") V(kConvolution, "convolution") V(kCustomCall, "custom-call") \
  V(kDot, "dot") V(kFft, "fft") V(kFusion, "fusion") V(kMap, "map") V(kRaggedDot, "ragged-dot") \
  V(kReduce, "reduce") V(kReduceWindow, "reduce-window") \
  V(kRngBitGenerator, "rng-bit-generator") V(kScaledDot, "scaled-dot") V(kScan, "scan") \
  V(kScatter, "scatter") V(kSelectAndScatter, "select-and-scatter") V(kSort, "sort") \
  V(kTriangularSolve, "triangular-solve") V(kWhile, "while")
#define MALLOCGAME_HLO_OPCODES(V) \
  MALLOCGAME_HLO_MOVES(V) MALLOCGAME_HLO_OPERATIONS(V) MALLOCGAME_HLO_FUNCTIONS(V) \
  MALLOCGAME_HLO_OWN_RULES(V)
// clang-format on

namespace mallocgame::hlo {

class HloInstructionProto;
class Module;
struct HloInstruction;

// An instruction's opcode is HloInstruction::opcode. Messages name it as its proto does.
enum class Opcode : uint8_t {
  kUnknown,  // XLA doesn't have it
#define MALLOCGAME_HLO_OPCODE(opcode, name) opcode,
  MALLOCGAME_HLO_OPCODES(MALLOCGAME_HLO_OPCODE)
#undef MALLOCGAME_HLO_OPCODE
};
using enum Opcode;

Opcode OpcodeNamed(absl::string_view name);
// Of an instruction that is in no Module.
Opcode OpcodeOf(const HloInstructionProto& instruction);

// What an instruction with an opcode computes.
enum class Computes : uint8_t {
  kNothing,         // it makes, moves, joins or passes on values
  kOperation,       // one for each element of its result
  kTranscendental,  // likewise: a function such as exp
  kByItsOwnRule,    // dot, reduce, fusion, custom-call ...: arithmetic.cc has the rules
};

Computes WhatComputes(Opcode opcode);

// InvalidArgument names an instruction whose opcode XLA doesn't have: nobody knows what it costs
// and what it updates in place. It also names a scan in a computation with a schedule, which runs
// another computation for each step as a loop does. An associative one may be there: it has no
// steps, and a compiler may have an instruction for it.
absl::Status CheckOpcodes(const Module& module);

// True for an instruction that touches no memory that a plan decides about. It names, groups or
// passes on values (parameter, constant, tuple, get-tuple-element, bitcast, while, conditional,
// call, copy-done ...), sets storage aside, pins its operand to its place or lets go of it (the
// custom calls Pin and Unpin), or is a placement hint. It has no accesses and costs nothing.
bool MovesNothing(const HloInstruction& instruction);

// True for the custom calls AllocateBuffer and CreateBuffer, whose results have no value yet.
bool SetsStorageAside(const HloInstructionProto& instruction);

// True for a kernel without a body. The compiler makes it to say in which memory its operand has to
// be. Memory space assignment takes it out again: its result is its operand.
bool IsPlacementHint(const HloInstructionProto& instruction);

// True for the custom call ConcatBitcast: it joins slices of one array that a copy brought part by
// part, and that lie side by side.
bool JoinsSlices(const HloInstructionProto& instruction);

// True for a collective-permute, or its *-start, that writes what comes into a part of its second
// operand. The others are what it sends, and where in both the parts begin.
bool PermutesInPlace(const HloInstructionProto& instruction);

// True for what runs computations on the time axis: while, conditional, call.
bool RunsComputations(Opcode opcode);

// True for the first and the last instruction of a transfer: *-start and *-done. The first may also
// be a send or a recv (BeginsTransfer).
bool IsStart(Opcode opcode);
bool IsDone(Opcode opcode);
bool BeginsTransfer(Opcode opcode);

// True for one step of a transfer that begins at one instruction and ends at another: what begins
// it, async-update, *-done.
bool IsTransfer(Opcode opcode);
// The same but for send and recv.
bool IsAsynchronous(Opcode opcode);

// What a *-start begins, or a *-done ends: X of X-start and X-done. kUnknown of others.
Opcode BegunBy(Opcode opcode);
Opcode EndedBy(Opcode opcode);

// True for an instruction by which several chips hand each other arrays, whole: all-reduce ...
bool IsCollective(Opcode opcode);

// True for the end of a collective that a *-start began. It holds operands and result until then.
bool EndsCollective(Opcode opcode);

}  // namespace mallocgame::hlo

// Finds collectives in the schedule, in fusions and in what runs asynchronously, and plays their
// transfers in order.
#include "mallocgame/hlo/cost/collectives.h"

#include <algorithm>
#include <map>

#include "mallocgame/hlo/cost/arithmetic.h"
#include "mallocgame/hlo/cost/transfer_waits.h"
#include "mallocgame/hlo/module/async_chains.h"
#include "mallocgame/hlo/module/collective_steps.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"

namespace mallocgame::hlo {
namespace {

constexpr int64_t kMaxMembers = int64_t{1} << 20;

std::optional<CollectiveKind> KindOf(Opcode opcode) {
  switch (opcode) {
    case kAllGather: return CollectiveKind::kAllGather;
    case kReduceScatter: return CollectiveKind::kReduceScatter;
    case kAllReduce: return CollectiveKind::kAllReduce;
    case kAllToAll:
    case kRaggedAllToAll: return CollectiveKind::kAllToAll;
    case kCollectivePermute:
    case kCollectiveBroadcast: return CollectiveKind::kPermute;
    default: return std::nullopt;
  }
}

// Of a collective that writes into an operand, the first alone is sent.
int64_t BytesSent(const Module& module, int32_t i) {
  const HloInstructionProto& proto = *module.instruction(i).proto;
  const bool first = module.opcode(i) == kRaggedAllToAll || PermutesInPlace(proto);
  int64_t bytes = 0;
  for (const int32_t operand : module.operands(i)) {
    for (const Array& array : module.arrays(operand))
      bytes = std::min(kMaxArrayBytes, bytes + array.size_bytes);
    if (first) break;
  }
  return bytes;
}

int64_t BytesOfResult(const Module& module, int32_t i) {
  int64_t bytes = 0;
  for (const Array& array : module.arrays(i))
    bytes = std::min(kMaxArrayBytes, bytes + array.size_bytes);
  return bytes;
}

int64_t LargestOf(const google::protobuf::RepeatedPtrField<ReplicaGroup>& groups) {
  int64_t most = 0;
  for (const ReplicaGroup& group : groups) most = std::max<int64_t>(most, group.replica_ids_size());
  return most;
}

// How many devices hand each other arrays.
int64_t MembersOf(const Module& module, const HloInstructionProto& proto) {
  int64_t members = 0;
  const MeshAxesReplicaGroupListProto& mesh = proto.mesh_axes_replica_group_list();
  if (mesh.axes_size() > 0) {
    members = 1;
    for (const auto& axis : mesh.axes()) {
      const int64_t index = axis.mesh_axis_index();
      int64_t size = axis.sub_axis_info().size();
      if (size == 0 && index >= 0 && index < mesh.mesh().axes_size())
        size = mesh.mesh().axes(static_cast<int>(index)).size();
      members = TimesUpTo(members, size, kMaxMembers);
    }
  }
  const CollectiveDeviceListProto& list = proto.collective_device_list();
  members = std::max({members, list.iota_replica_group_list().num_devices_per_group(),
                      proto.iota_collective_device_list().num_devices_per_group(),
                      LargestOf(list.replica_groups()), LargestOf(proto.replica_groups())});
  if (members == 0) {  // All devices are one group.
    const DeviceAssignmentProto& devices = module.module().device_assignment();
    members = TimesUpTo(devices.replica_count(), devices.computation_count(), kMaxMembers);
  }
  return std::clamp(members, int64_t{1}, kMaxMembers);
}

}  // namespace

class Collectives::Finder {
 public:
  Finder(const Module& module, Collectives& found)
      : module_(module), found_(found), inside_(DescribeComputations(module)) {}

  void Visit(int32_t i, Tick tick) {
    const Opcode opcode = module_.opcode(i);
    if (const auto whole = KindOf(opcode)) {
      Add(i, i, tick, *whole, Role::kWhole);
    } else if (const auto begun = KindOf(BegunBy(opcode))) {
      by_start_[i].push_back(Add(i, i, tick, *begun, Role::kBegins));
    } else if (KindOf(EndedBy(opcode)) || opcode == kAsyncDone) {
      const auto start = by_start_.find(StartOfDone(module_, i));
      if (start != by_start_.end()) End(start->second, tick);
    } else if (BringsOperands(i)) {
      const int32_t start = opcode == kAsyncUpdate ? module_.operands(i)[0] : i;
      if (module_.called(start).empty()) return;
      for (const int32_t c : inside_[module_.called(start)[0]].collectives)
        by_start_[start].push_back(Add(c, start, tick, KindInside(c), Role::kBegins));
    } else if (opcode == kFusion && !module_.called(i).empty()) {
      VisitFusion(i, inside_[module_.called(i)[0]], tick);
    }
  }

 private:
  // The collectives that run when a computation does.
  struct Inside {
    std::vector<int32_t> collectives;
    bool begins = false, ends = false;  // it has the custom call that says so
  };

  static std::vector<Inside> DescribeComputations(const Module& module) {
    std::vector<Inside> all(module.computations().size());
    // A computation comes after all that it calls.
    for (size_t c = 0; c < all.size(); ++c) {
      Inside& inside = all[c];
      const Computation& computation = module.computation(static_cast<int32_t>(c));
      for (int32_t k = 0; k < computation.instruction_count; ++k) {
        const int32_t i = computation.first_instruction + k;
        const HloInstructionProto& proto = *module.instruction(i).proto;
        inside.begins |= proto.custom_call_target() == kBeginsCollective;
        inside.ends |= proto.custom_call_target() == kEndsCollective;
        if (KindOf(module.opcode(i))) inside.collectives.push_back(i);
        if (module.opcode(i) != kFusion && module.opcode(i) != kCall &&
            module.opcode(i) != kCustomCall)
          continue;
        for (const int32_t callee : module.called(i)) {
          const Inside& deeper = all[callee];
          // One of each is enough to know the time, however often a computation is called.
          for (const int32_t collective : deeper.collectives) {
            if (inside.collectives.size() < size_t{64}) inside.collectives.push_back(collective);
          }
          inside.begins |= deeper.begins;
          inside.ends |= deeper.ends;
        }
      }
    }
    return all;
  }

  // Whether an asynchronous computation can begin. On SparseCore the async-start may have no
  // operands yet.
  bool BringsOperands(int32_t i) const {
    const Opcode opcode = module_.opcode(i);
    return (opcode == kAsyncStart && !module_.operands(i).empty()) ||
           (opcode == kAsyncUpdate && module_.operands(i).size() > 1);
  }

  CollectiveKind KindInside(int32_t i) const { return *KindOf(module_.opcode(i)); }

  void VisitFusion(int32_t i, const Inside& inside, Tick tick) {
    for (const int32_t c : inside.collectives) {
      std::vector<size_t>& going = by_channel_[module_.instruction(c).proto->channel_id()];
      if (!going.empty()) {
        if (inside.ends) End(going, tick);
      } else if (inside.begins) {
        going.push_back(Add(c, i, tick, KindInside(c), Role::kBegins));
      } else {
        Add(c, i, tick, KindInside(c), Role::kWhole);
      }
    }
  }

  // Adds the transfer of `i`, which `outer` is or contains, and returns its index.
  size_t Add(int32_t i, int32_t outer, Tick tick, CollectiveKind kind, Role role) {
    const HloInstructionProto& proto = *module_.instruction(i).proto;
    Transfer transfer{kind, BytesSent(module_, i), MembersOf(module_, proto), tick, tick};
    // A permute says who sends to whom, and has no groups.
    if (kind == CollectiveKind::kPermute) transfer.members = std::max<int64_t>(2, transfer.members);
    // A fusion that gives a part of a sum only is a reduce-scatter.
    if (kind == CollectiveKind::kAllReduce && outer != i &&
        BytesOfResult(module_, outer) < transfer.bytes) {
      transfer.kind = CollectiveKind::kReduceScatter;
    }
    found_.role_[tick] = role;
    found_.transfers_.push_back(transfer);
    return found_.transfers_.size() - 1;
  }

  void End(std::vector<size_t>& begun, Tick tick) {
    for (const size_t t : begun) found_.transfers_[t].end = tick;
    found_.role_[tick] = Role::kEnds;
    begun.clear();
  }

  const Module& module_;
  Collectives& found_;
  const std::vector<Inside> inside_;  // by computation
  // the transfers that go on: by the instruction that began them, or by channel
  std::map<int32_t, std::vector<size_t>> by_start_;
  std::map<int64_t, std::vector<size_t>> by_channel_;
};

Collectives::Collectives(const Module& module, const Schedule& schedule)
    : role_(schedule.ticks.size(), Role::kNothing) {
  Finder finder(module, *this);
  for (size_t tick = 0; tick < schedule.ticks.size(); ++tick) {
    const Schedule::Entry& entry = schedule.ticks[tick];
    if (entry.kind == InstructionKind::kOrdinary)
      finder.Visit(entry.instruction, static_cast<Tick>(tick));
  }
}

std::vector<std::pair<Tick, Tick>> Collectives::Spans() const {
  std::vector<std::pair<Tick, Tick>> spans;
  for (const Transfer& t : transfers_) {
    if (t.begin < t.end) spans.emplace_back(t.begin, t.end);
  }
  return spans;
}

std::vector<int64_t> Collectives::Waits(const Links& links,
                                        const std::function<int64_t(Tick)>& least_ps) const {
  std::vector<TimedTransfer> timed;
  for (const Transfer& t : transfers_)
    timed.push_back({t.begin, t.end, CollectivePs(t.kind, t.bytes, t.members, links)});
  return TransferWaits(timed, role_.size(), least_ps);
}

}  // namespace mallocgame::hlo

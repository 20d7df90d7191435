// Builds the indices of a Program and its fingerprint. check.cc checks the invariants.
#include "mallocgame/program/program.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/fnv.h"
#include "mallocgame/program/check.h"
#include "mallocgame/program/pins.h"

namespace mallocgame {
namespace {

// FNV-1a over a canonical encoding: an integer is eight little-endian bytes, a text or list follows
// its length.
constexpr int64_t kLinkTag = -2, kKernelTag = -3, kInMainTag = -4, kHeldTag = -5, kPinTag = -6;

class Fingerprint {
 public:
  void Add(int64_t value) {
    for (int shift = 0; shift < 64; shift += 8)
      hash_.Add(static_cast<uint8_t>(static_cast<uint64_t>(value) >> shift));
  }
  void Add(const std::string& text) {
    AddSize(text);
    for (const char c : text) hash_.Add(static_cast<uint8_t>(c));
  }
  template <class Enum>
    requires std::is_enum_v<Enum>
  void Add(Enum value) {
    Add(static_cast<int64_t>(value));
  }
  template <class List>
  void AddSize(const List& list) {
    Add(static_cast<int64_t>(list.size()));
  }
  template <class... Values>
    requires(sizeof...(Values) > 1)
  void Add(const Values&... values) {
    (Add(values), ...);
  }
  std::string Hex() const { return absl::StrFormat("%016x", hash_.value()); }

 private:
  Fnv1a hash_;
};

void AddArrays(Fingerprint& f, const std::vector<CostArray>& arrays) {
  f.AddSize(arrays);
  for (const CostArray& a : arrays) f.Add(a.size_bytes, a.accessed_bytes, a.slot, a.in_main);
}

void AddCost(Fingerprint& f, const CostData& cost) {
  f.Add(cost.kind);
  f.AddSize(cost.instructions);
  for (const InstructionCost& c : cost.instructions) {
    AddArrays(f, c.operands);
    AddArrays(f, c.outputs);
    f.Add(c.pool, c.unpriced_bytes, c.flops, c.transcendentals);
    // Most programs are for one chip and without kernels. A tag is no pool, so no other data gives
    // the same sequence.
    if (c.link_ps != 0) f.Add(kLinkTag, c.link_ps);
    if (c.kernel) f.Add(kKernelTag);
  }
  f.AddSize(cost.pools);
  for (const CostPool& pool : cost.pools) {
    f.AddSize(pool.rows);
    for (const CostRow& row : pool.rows) {
      f.Add(static_cast<int64_t>(row.operands), static_cast<int64_t>(row.outputs), row.cycles);
    }
  }
}

std::string FingerprintOf(const ProgramData& data) {
  Fingerprint f;
  f.Add(data.name, data.argument_bytes);
  f.AddSize(data.instructions);
  for (const Instruction& i : data.instructions) {
    f.Add(i.name, i.opcode, i.kind, i.region, i.logical_time, i.reserved_bytes, i.first_access,
          i.access_count, i.plain_copy);
    // For most chips there are none. A tag is no size of a name, so no other data gives the same
    // sequence.
    if (i.results_in_main) f.Add(kInMainTag);
  }
  f.AddSize(data.regions);
  for (const Region& r : data.regions) f.Add(r.kind, r.parent, r.loop, r.begin, r.end, r.trips);
  f.AddSize(data.loops);
  for (const Loop& l : data.loops) f.Add(l.entry, l.exit, l.trips, l.trips_known);
  f.AddSize(data.buffers);
  for (const Buffer& b : data.buffers) {
    f.Add(b.name, b.size_bytes, b.origin, b.is_output, b.eligible, b.ineligible_because);
  }
  f.AddSize(data.accesses);
  for (const Access& a : data.accesses) {
    f.Add(a.tick, a.buffer.value, a.kind, a.writes_in_loop);
    if (a.held_until != 0) f.Add(kHeldTag, a.held_until);
    if (a.pin != Pin::kNone) f.Add(kPinTag, a.pin);
  }
  AddCost(f, data.cost);
  return f.Hex();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Program>> Program::Create(ProgramData data) {
  MG_RETURN_IF_ERROR(CheckProgramData(data));
  std::shared_ptr<const Program> program = OfChecked(std::move(data));
  MG_RETURN_IF_ERROR(PinnedStays(*program, /*whole=*/false).status());
  return program;
}

std::shared_ptr<const Program> Program::OfChecked(ProgramData data) {
  return std::shared_ptr<const Program>(new Program(std::move(data)));
}

std::shared_ptr<const Program> Program::WithBoth(const Program& program, BothPrices both) {
  std::shared_ptr<Program> with(new Program(program.data()));
  with->both_ = std::make_shared<const BothPrices>(std::move(both));
  with->caution_ = program.caution();
  return with;
}

std::shared_ptr<const Program> Program::WithCaution(const Program& program, double caution) {
  std::shared_ptr<Program> with(new Program(program.data()));
  with->both_ = program.both_;
  with->caution_ = caution;
  return with;
}

Program::Program(ProgramData data) : data_(std::move(data)) {
  const size_t n = data_.instructions.size();
  for (const Instruction& i : data_.instructions)
    instruction_count_ += i.kind != InstructionKind::kLoopEntry;
  for (const Buffer& b : data_.buffers) eligible_count_ += b.eligible;

  buffer_first_.assign(data_.buffers.size() + 1, 0);
  for (const Access& a : data_.accesses) ++buffer_first_[a.buffer.index() + 1];
  for (size_t b = 0; b < data_.buffers.size(); ++b) buffer_first_[b + 1] += buffer_first_[b];
  by_buffer_.resize(data_.accesses.size());
  std::vector<int32_t> next(buffer_first_.begin(), buffer_first_.end() - 1);
  for (size_t i = 0; i < data_.accesses.size(); ++i) {
    by_buffer_[next[data_.accesses[i].buffer.index()]++] = AccessId(i);
  }

  for (const Access& a : data_.accesses) {
    if (a.pin != Pin::kFast) continue;
    pinned_.resize(data_.buffers.size());
    pinned_[a.buffer.index()] = true;
  }

  loop_at_.assign(n, -1);
  for (size_t l = 0; l < data_.loops.size(); ++l) {
    loop_at_[data_.loops[l].entry] = static_cast<int32_t>(l);
    loop_at_[data_.loops[l].exit] = static_cast<int32_t>(l);
  }

  for (size_t r = 0; r < data_.regions.size(); ++r) {
    auto scope = static_cast<int32_t>(r);
    while (data_.regions[scope].kind == RegionKind::kCall) scope = data_.regions[scope].parent;
    scope_of_.push_back(scope);
  }

  std::vector<bool> cut(n + 1, false);
  for (const Region& r : data_.regions) cut[r.begin] = cut[r.end] = true;
  segment_begin_.resize(n);
  segment_end_.resize(n);
  for (size_t t = 0; t < n; ++t)
    segment_begin_[t] = cut[t] ? static_cast<Tick>(t) : segment_begin_[t - 1];
  for (size_t t = n; t-- > 0;)
    segment_end_[t] = cut[t + 1] ? static_cast<Tick>(t + 1) : segment_end_[t + 1];
}

absl::Span<const Tick> Program::named_after() const {
  std::call_once(has_names_, [this] {
    absl::flat_hash_map<absl::string_view, Tick> ticks;
    for (Tick t = 0; t < this->ticks(); ++t) {
      if (instruction(t).kind != InstructionKind::kLoopEntry) ticks.emplace(instruction(t).name, t);
    }
    for (const Buffer& buffer : data_.buffers) {
      const absl::string_view name = buffer.name;
      const auto found = ticks.find(name.substr(0, name.find('{')));
      named_after_.push_back(found == ticks.end() ? -1 : found->second);
    }
  });
  return named_after_;
}

const std::string& Program::fingerprint() const {
  std::call_once(has_fingerprint_, [this] { fingerprint_ = FingerprintOf(data_); });
  return fingerprint_;
}

absl::Span<const AccessId> Program::accesses_of(BufferId id) const {
  const size_t first = buffer_first_[id.index()];
  return absl::MakeConstSpan(by_buffer_).subspan(first, buffer_first_[id.index() + 1] - first);
}

}  // namespace mallocgame

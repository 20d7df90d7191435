// Writes line by line, so that one thing is one line. Reads with nlohmann/json, and checks every
// key and range.
#include "mallocgame/replay/plan_file.h"

#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/base/error.h"
#include "mallocgame/schedule/instruction_order.h"
#include "nlohmann/json.hpp"

namespace mallocgame {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "mallocgame plan";
constexpr int64_t kPlanVersion = 1;
constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

const char* KindName(CopyKind kind) {
  return kind == CopyKind::kPrefetch ? "prefetch" : "eviction";
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A name as JSON gives it back. What is not UTF-8 in it has been replaced.
std::string AsJsonText(const std::string& name) {
  return Json::parse(Dump(Json(name)), nullptr, false).get<std::string>();
}

std::string Lines(const std::vector<std::string>& lines) {
  if (lines.empty()) return "[]";
  return absl::StrCat("[\n    ", absl::StrJoin(lines, ",\n    "), "\n  ]");
}

// Reads one object of the text, key by key. It remembers the first thing that is wrong; all reads
// after that give zeros.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) Fail(absl::StrCat("is ", object.type_name(), "; allowed: an object"));
  }

  int64_t Integer(const char* key, int64_t min, int64_t max) {
    const Json* value = Find(key);
    if (value == nullptr) return 0;
    // A number written without a sign is read as unsigned, and may exceed int64_t.
    const bool fits = value->is_number_unsigned()
                          ? value->get<uint64_t>() <= static_cast<uint64_t>(kMaxInt64)
                          : value->is_number_integer();
    if (fits && value->get<int64_t>() >= min && value->get<int64_t>() <= max)
      return value->get<int64_t>();
    Fail(absl::StrCat("\"", key, "\" is ", Found(*value), "; allowed: integers from ", min, " to ",
                      max));
    return 0;
  }

  bool Bool(const char* key) {
    const Json* value = Find(key);
    if (value == nullptr) return false;
    if (value->is_boolean()) return value->get<bool>();
    Fail(absl::StrCat("\"", key, "\" is ", Found(*value), "; allowed: true, false"));
    return false;
  }

  std::string String(const char* key) {
    const Json* value = Find(key);
    if (value == nullptr) return "";
    if (value->is_string()) return value->get<std::string>();
    Fail(absl::StrCat("\"", key, "\" is ", Found(*value), "; allowed: a string"));
    return "";
  }

  // Reads a string, and fails unless it is this one.
  void Expect(const char* key, const std::string& allowed) {
    const std::string found = String(key);
    if (status_.ok() && found != allowed) {
      Fail(absl::StrCat("\"", key, "\" is \"", absl::CHexEscape(found.substr(0, 80)),
                        "\"; allowed: \"", absl::CHexEscape(allowed), "\""));
    }
  }
  void Expect(const char* key, int64_t allowed) { Integer(key, allowed, allowed); }

  const Json* Array(const char* key) {
    const Json* value = Find(key);
    if (value == nullptr || value->is_array()) return value;
    Fail(absl::StrCat("\"", key, "\" is ", Found(*value), "; allowed: an array"));
    return nullptr;
  }

  // The same for a key that may be missing: null then.
  const Json* ArrayIfAny(const char* key) { return object_.contains(key) ? Array(key) : nullptr; }
  std::string StringIfAny(const char* key) { return object_.contains(key) ? String(key) : ""; }

  // Call this after all keys have been read: a key that was not read is not allowed.
  absl::Status Finish() {
    if (status_.ok() && object_.size() != known_.size()) {
      for (const auto& [key, value] : object_.items()) {
        if (!IsKnown(key)) {
          Fail(absl::StrCat("unknown key \"", absl::CHexEscape(key.substr(0, 80)),
                            "\"; allowed: ", absl::StrJoin(known_, ", ")));
          break;
        }
      }
    }
    return status_;
  }

  void Fail(absl::string_view what) {
    if (status_.ok())
      status_ = absl::InvalidArgumentError(absl::StrCat("plan: ", where_, ": ", what));
  }
  bool ok() const { return status_.ok(); }

 private:
  const Json* Find(const char* key) {
    if (!status_.ok()) return nullptr;
    known_.push_back(key);
    const auto it = object_.find(key);
    if (it != object_.end()) return &*it;
    Fail(absl::StrCat("key \"", key, "\" is missing"));
    return nullptr;
  }
  bool IsKnown(const std::string& key) const {
    for (const char* known : known_) {
      if (key == known) return true;
    }
    return false;
  }
  static std::string Found(const Json& value) {
    return value.is_structured() ? value.type_name() : Dump(value).substr(0, 80);
  }

  const Json& object_;
  std::string where_;
  std::vector<const char*> known_;
  absl::Status status_;
};

// After a failed read an index is 0, but the table may be empty. So indices are used only after
// ok().
absl::StatusOr<Residence> ReadResidence(const Program& program, const Json& json, size_t index) {
  ObjectReader in(json, absl::StrCat("residences[", index, "]"));
  Residence residence;
  in.Expect("residence", index);
  residence.buffer = BufferId(in.Integer("buffer", 0, std::ssize(program.buffers()) - 1));
  if (in.ok()) {
    const Buffer& buffer = program.buffer(residence.buffer);
    in.Expect("name", AsJsonText(buffer.name));
    in.Expect("bytes", buffer.size_bytes);
  }
  // Validate says what does not fit into fast memory.
  residence.offset = in.Integer("offset", std::numeric_limits<int64_t>::min(), kMaxInt64);
  residence.begin = static_cast<Tick>(in.Integer("begin", 0, program.ticks()));
  residence.end = static_cast<Tick>(in.Integer("end", 0, program.ticks()));
  MG_RETURN_IF_ERROR(in.Finish());
  return residence;
}

absl::StatusOr<Copy> ReadCopy(const Program& program, const Json& json, size_t index,
                              int64_t residences) {
  ObjectReader in(json, absl::StrCat("copies[", index, "]"));
  Copy copy;
  const std::string kind = in.String("kind");
  if (kind == KindName(CopyKind::kEviction)) {
    copy.kind = CopyKind::kEviction;
  } else if (in.ok()) {
    in.Expect("kind", KindName(CopyKind::kPrefetch));
  }
  copy.residence = ResidenceId(in.Integer("residence", 0, residences - 1));
  copy.begin = static_cast<Tick>(in.Integer("begin", 0, program.ticks()));
  copy.end = static_cast<Tick>(in.Integer("end", 0, program.ticks()));
  copy.part_begin = in.Integer("part_begin", 0, kMaxInt64);
  copy.part_end = in.Integer("part_end", 0, kMaxInt64);
  copy.preload = in.Bool("preload");
  copy.replaces = static_cast<Tick>(in.Integer("replaces", -1, int64_t{program.ticks()} - 1));
  MG_RETURN_IF_ERROR(in.Finish());
  return copy;
}

absl::Status ReadServed(const Program& program, const Json& json, size_t index, Plan& plan) {
  ObjectReader in(json, absl::StrCat("served[", index, "]"));
  const AccessId id(in.Integer("access", 0, std::ssize(program.accesses()) - 1));
  const ResidenceId residence(in.Integer("residence", 0, std::ssize(plan.residences) - 1));
  if (in.ok()) {
    const Access& access = program.access(id);
    in.Expect("tick", int64_t{access.tick});
    in.Expect("instruction", AsJsonText(program.instruction(access.tick).name));
    in.Expect("name", AsJsonText(program.buffer(access.buffer).name));
  }
  MG_RETURN_IF_ERROR(in.Finish());
  if (plan.served_by[id.index()].valid()) {
    return absl::InvalidArgumentError(
        absl::StrCat("plan: served[", index, "]: access ", id.value, " is listed twice"));
  }
  plan.served_by[id.index()] = residence;
  return absl::OkStatus();
}

// `order` stands before the tables.
std::string ToJson(const Program& program, const Plan& plan, const std::string& order) {
  std::vector<std::string> residences, copies, served;
  for (size_t i = 0; i < plan.residences.size(); ++i) {
    const Residence& r = plan.residences[i];
    const Buffer& buffer = program.buffer(r.buffer);
    residences.push_back(Dump({{"residence", i},
                               {"buffer", r.buffer.value},
                               {"name", buffer.name},
                               {"offset", r.offset},
                               {"bytes", buffer.size_bytes},
                               {"begin", r.begin},
                               {"end", r.end}}));
  }
  for (const Copy& c : plan.copies) {
    copies.push_back(Dump({{"kind", KindName(c.kind)},
                           {"residence", c.residence.value},
                           {"begin", c.begin},
                           {"end", c.end},
                           {"part_begin", c.part_begin},
                           {"part_end", c.part_end},
                           {"preload", c.preload},
                           {"replaces", c.replaces}}));
  }
  for (size_t i = 0; i < plan.served_by.size(); ++i) {
    if (!plan.served_by[i].valid()) continue;
    const Access& access = program.accesses()[i];
    served.push_back(Dump({{"access", i},
                           {"residence", plan.served_by[i].value},
                           {"tick", access.tick},
                           {"instruction", program.instruction(access.tick).name},
                           {"name", program.buffer(access.buffer).name}}));
  }
  return absl::StrCat(
      "{\n  \"format\": ", Dump(kFormat), ",\n  \"version\": ", kPlanVersion,
      ",\n  \"program\": ", Dump(program.name()),
      ",\n  \"program_fingerprint\": ", Dump(plan.program_fingerprint),
      ",\n  \"hardware\": ", Dump(plan.hardware), order, ",\n  \"residences\": ", Lines(residences),
      ",\n  \"copies\": ", Lines(copies), ",\n  \"served\": ", Lines(served), "\n}\n");
}

absl::StatusOr<Json> Parse(absl::string_view json) {
  Json root = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded())
    return absl::InvalidArgumentError("plan: not JSON text (damaged, or cut short)");
  return root;
}

absl::StatusOr<std::vector<Tick>> ReadOrder(const Json& array, Tick ticks) {
  std::vector<Tick> order;
  for (const Json& item : array) {
    if (!item.is_number_integer() || item.get<int64_t>() < 0 || item.get<int64_t>() >= ticks) {
      return absl::InvalidArgumentError(absl::StrCat("plan: order[", order.size(), "] is ",
                                                     Dump(item).substr(0, 80),
                                                     "; allowed: integers from 0 to ", ticks - 1));
    }
    order.push_back(item.get<Tick>());
  }
  return order;
}

}  // namespace

std::string PlanToJson(const Program& program, const Plan& plan) {
  return ToJson(program, plan, "");
}

std::string OrderedPlanToJson(const Program& program, const std::vector<Tick>& order,
                              const Program& reordered, const Plan& plan) {
  return ToJson(reordered, plan,
                absl::StrCat(",\n  \"ordered_from\": ", Dump(program.fingerprint()),
                             ",\n  \"order\": [", absl::StrJoin(order, ", "), "]"));
}

absl::StatusOr<OrderedPlan> OrderedPlanFromJson(const std::shared_ptr<const Program>& program,
                                                absl::string_view json) {
  OrderedPlan read;
  read.program = program;
  MG_ASSIGN_OR_RETURN(const Json root, Parse(json));
  if (root.is_object() && root.contains("order")) {
    ObjectReader in(root, "top");
    const std::string from = in.String("ordered_from");
    if (in.ok() && from != program->fingerprint()) {
      in.Fail(absl::StrCat("\"ordered_from\" is \"", absl::CHexEscape(from.substr(0, 80)),
                           "\", this is ", program->name(), " with fingerprint \"",
                           program->fingerprint(), "\""));
    }
    const Json* order = in.Array("order");
    if (!in.ok()) return in.Finish();
    MG_ASSIGN_OR_RETURN(read.order, ReadOrder(*order, program->ticks()));
    MG_ASSIGN_OR_RETURN(ReorderedProgram made, Reordered(*program, read.order));
    read.program = std::move(made.program);
  }
  MG_ASSIGN_OR_RETURN(read.plan, PlanFromJson(*read.program, json));
  return read;
}

absl::StatusOr<Plan> PlanFromJson(const Program& program, absl::string_view json) {
  MG_ASSIGN_OR_RETURN(const Json root, Parse(json));
  ObjectReader in(root, "top");
  in.Expect("format", kFormat);
  in.Expect("version", kPlanVersion);
  Plan plan;
  in.String("program");  // only for people: two programs may share a name; the fingerprint decides
  plan.program_fingerprint = in.String("program_fingerprint");
  // Whose order it is decides nothing here: this is the program that the plan is of.
  in.StringIfAny("ordered_from");
  const bool is_ordered = in.ArrayIfAny("order") != nullptr;
  if (in.ok() && plan.program_fingerprint != program.fingerprint()) {
    in.Fail(absl::StrCat("made for the program with fingerprint \"",
                         absl::CHexEscape(plan.program_fingerprint.substr(0, 80)), "\", this is ",
                         program.name(), " with fingerprint \"", program.fingerprint(), "\"",
                         is_ordered ? "; the plan has an order of instructions of its own" : ""));
  }
  plan.hardware = in.String("hardware");
  const Json* residences = in.Array("residences");
  const Json* copies = in.Array("copies");
  const Json* served = in.Array("served");
  MG_RETURN_IF_ERROR(in.Finish());
  for (const Json& item : *residences) {
    MG_ASSIGN_OR_RETURN(Residence residence, ReadResidence(program, item, plan.residences.size()));
    plan.residences.push_back(residence);
  }
  for (const Json& item : *copies) {
    MG_ASSIGN_OR_RETURN(Copy copy,
                        ReadCopy(program, item, plan.copies.size(), plan.residences.size()));
    plan.copies.push_back(copy);
  }
  plan.served_by.resize(program.accesses().size());
  for (size_t i = 0; i < served->size(); ++i)
    MG_RETURN_IF_ERROR(ReadServed(program, (*served)[i], i, plan));
  return plan;
}

}  // namespace mallocgame

// Converts everything but programs (program_wire.cc), field by field in the order of replay.proto.
#include "mallocgame/replay/wire.h"

#include <algorithm>
#include <climits>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message.h"
#include "google/protobuf/message_lite.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/utf8.h"
#include "mallocgame/game/games.h"
#include "mallocgame/replay/columns.h"
#include "mallocgame/replay/replay.pb.h"

namespace mallocgame::replay {

absl::StatusOr<std::string> ReadText(const char* what, const std::string& wire) {
  if (!IsUtf8(wire)) return absl::InvalidArgumentError(absl::StrCat(what, ": not UTF-8 text"));
  return wire;
}

void ToWire(const mallocgame::Hardware& hardware, Hardware* wire) {
  wire->set_name(hardware.name);
  wire->set_fast_bytes(hardware.fast_bytes);
  wire->set_alignment_bytes(hardware.alignment_bytes);
  wire->set_main_bytes_per_second(hardware.main_bytes_per_second);
  wire->set_fast_read_bytes_per_second(hardware.fast_read_bytes_per_second);
  wire->set_fast_write_bytes_per_second(hardware.fast_write_bytes_per_second);
  wire->set_flops_per_second(hardware.flops_per_second);
  wire->set_transcendentals_per_second(hardware.transcendentals_per_second);
  wire->set_clock_hz(hardware.clock_hz);
  wire->set_max_outstanding_prefetches(hardware.max_outstanding_prefetches);
  wire->set_max_outstanding_evictions(hardware.max_outstanding_evictions);
  wire->set_max_preloads(hardware.max_preloads);
  wire->set_fast_memory_space(hardware.fast_memory_space);
  wire->set_copy_latency_ps(hardware.copy_latency_ps);
}

absl::StatusOr<mallocgame::Hardware> HardwareFromWire(const Hardware& wire) {
  mallocgame::Hardware hardware;
  MG_ASSIGN_OR_RETURN(hardware.name, ReadText("hardware name", wire.name()));
  hardware.fast_bytes = wire.fast_bytes();
  hardware.alignment_bytes = wire.alignment_bytes();
  hardware.main_bytes_per_second = wire.main_bytes_per_second();
  hardware.fast_read_bytes_per_second = wire.fast_read_bytes_per_second();
  hardware.fast_write_bytes_per_second = wire.fast_write_bytes_per_second();
  hardware.flops_per_second = wire.flops_per_second();
  hardware.transcendentals_per_second = wire.transcendentals_per_second();
  hardware.clock_hz = wire.clock_hz();
  hardware.max_outstanding_prefetches = wire.max_outstanding_prefetches();
  hardware.max_outstanding_evictions = wire.max_outstanding_evictions();
  hardware.max_preloads = wire.max_preloads();
  hardware.fast_memory_space = wire.fast_memory_space();
  hardware.copy_latency_ps = wire.copy_latency_ps();
  if (wire.askable())
    return absl::InvalidArgumentError(
        "hardware: found askable true, allowed: false, as no hardware limits how copies are cut");
  MG_RETURN_IF_ERROR(ValidateHardware(hardware));
  return hardware;
}

void ToWire(const mallocgame::Plan& plan, Plan* wire) {
  wire->set_program_fingerprint(plan.program_fingerprint);
  wire->set_hardware(plan.hardware);
  Residences* r = wire->mutable_residences();
  WriteColumn(plan.residences, &Residence::buffer, r->mutable_buffer());
  WriteColumn(plan.residences, &Residence::offset, r->mutable_offset());
  WriteColumn(plan.residences, &Residence::begin, r->mutable_begin());
  WriteColumn(plan.residences, &Residence::end, r->mutable_end());
  Copies* c = wire->mutable_copies();
  WriteColumn(plan.copies, &Copy::kind, c->mutable_kind());
  WriteColumn(plan.copies, &Copy::residence, c->mutable_residence());
  WriteColumn(plan.copies, &Copy::begin, c->mutable_begin());
  WriteColumn(plan.copies, &Copy::end, c->mutable_end());
  WriteColumn(plan.copies, &Copy::part_begin, c->mutable_part_begin());
  WriteColumn(plan.copies, &Copy::part_end, c->mutable_part_end());
  WriteColumn(plan.copies, &Copy::preload, c->mutable_preload());
  WriteColumn(plan.copies, &Copy::replaces, c->mutable_replaces());
  WriteList(plan.served_by, wire->mutable_served_by());
}

absl::StatusOr<mallocgame::Plan> PlanFromWire(const Plan& wire) {
  mallocgame::Plan plan;
  MG_ASSIGN_OR_RETURN(plan.program_fingerprint,
                      ReadText("plan, program_fingerprint", wire.program_fingerprint()));
  MG_ASSIGN_OR_RETURN(plan.hardware, ReadText("plan, hardware", wire.hardware()));
  const Residences& r = wire.residences();
  MG_RETURN_IF_ERROR(ColumnReader<Residence>("plan, residences", plan.residences)
                         .Read("buffer", r.buffer(), &Residence::buffer)
                         .Read("offset", r.offset(), &Residence::offset)
                         .Read("begin", r.begin(), &Residence::begin)
                         .Read("end", r.end(), &Residence::end)
                         .status());
  const Copies& c = wire.copies();
  MG_RETURN_IF_ERROR(ColumnReader<Copy>("plan, copies", plan.copies)
                         .ReadEnum("kind", c.kind(), &Copy::kind, CopyKind::kEviction)
                         .Read("residence", c.residence(), &Copy::residence)
                         .Read("begin", c.begin(), &Copy::begin)
                         .Read("end", c.end(), &Copy::end)
                         .Read("part_begin", c.part_begin(), &Copy::part_begin)
                         .Read("part_end", c.part_end(), &Copy::part_end)
                         .Read("preload", c.preload(), &Copy::preload)
                         .Read("replaces", c.replaces(), &Copy::replaces)
                         .status());
  MG_ASSIGN_OR_RETURN(plan.served_by, ReadList<ResidenceId>("plan, served_by", wire.served_by()));
  return plan;
}

namespace {

using google::protobuf::FieldDescriptor;

// The field that has the option's name; null if there is none.
const FieldDescriptor* FieldOf(const std::string& option) {
  return GameOptions::descriptor()->FindFieldByName(option);
}

absl::Status SetFromWire(const std::string& name, const OptionValue& value,
                         mallocgame::GameOptions& options) {
  absl::Status set = options.Set(name, value);
  if (set.ok()) return set;
  return absl::InvalidArgumentError(absl::StrCat("options, ", set.message()));
}

}  // namespace

void ToWire(const mallocgame::GameOptions& options, GameOptions* wire) {
  const std::vector<std::string> games = GameNames();
  const auto kind = std::find(games.begin(), games.end(), options.game()) - games.begin();
  if (kind > 0) wire->set_kind(kind);
  const google::protobuf::Reflection& fields = *GameOptions::GetReflection();
  for (const auto& [name, value] : options.List()) {
    const FieldDescriptor* const field = FieldOf(name);
    if (const auto* accesses = std::get_if<std::vector<AccessId>>(&value)) {
      WriteList(*accesses, wire->mutable_forbidden());
    } else if (field != nullptr) {
      if (const bool* flag = std::get_if<bool>(&value)) fields.SetBool(wire, field, *flag);
      if (const int64_t* whole = std::get_if<int64_t>(&value)) fields.SetInt64(wire, field, *whole);
      if (const double* real = std::get_if<double>(&value)) fields.SetDouble(wire, field, *real);
    } else {
      OtherOption& other = *wire->add_others();
      other.set_name(name);
      if (const bool* flag = std::get_if<bool>(&value)) other.set_flag(*flag);
      if (const int64_t* whole = std::get_if<int64_t>(&value)) other.set_whole(*whole);
      if (const double* real = std::get_if<double>(&value)) other.set_real(*real);
    }
  }
}

absl::StatusOr<std::shared_ptr<const mallocgame::GameOptions>> OptionsFromWire(
    const GameOptions& wire) {
  const std::vector<std::string> games = GameNames();
  if (wire.has_kind() && (wire.kind() < 1 || wire.kind() >= std::ssize(games))) {
    return absl::InvalidArgumentError(absl::StrCat("options, kind: found ", wire.kind(),
                                                   ", allowed: none, or 1 to ", games.size() - 1));
  }
  MG_ASSIGN_OR_RETURN(std::unique_ptr<mallocgame::GameOptions> options,
                      OptionsOfGame(games[wire.kind()]));
  const google::protobuf::Reflection& fields = *GameOptions::GetReflection();
  for (const auto& [name, usual] : options->List()) {
    const FieldDescriptor* const field = FieldOf(name);
    if (field == nullptr) continue;
    OptionValue value;
    if (std::holds_alternative<std::vector<AccessId>>(usual)) {
      MG_ASSIGN_OR_RETURN(value, ReadList<AccessId>("options, forbidden", wire.forbidden()));
    } else if (std::holds_alternative<bool>(usual)) {
      value = fields.GetBool(wire, field);
    } else if (std::holds_alternative<int64_t>(usual)) {
      value = fields.GetInt64(wire, field);
    } else {
      value = fields.GetDouble(wire, field);
    }
    MG_RETURN_IF_ERROR(SetFromWire(name, value, *options));
  }
  for (const OtherOption& other : wire.others()) {
    const bool whole = other.value_case() == OtherOption::kWhole;
    const bool real = other.value_case() == OtherOption::kReal;
    const OptionValue value = whole  ? OptionValue(other.whole())
                              : real ? OptionValue(other.real())
                                     : OptionValue(other.flag());
    MG_RETURN_IF_ERROR(SetFromWire(other.name(), value, *options));
  }
  return std::shared_ptr<const mallocgame::GameOptions>(std::move(options));
}

void ToWire(const mallocgame::Report& report, Report* wire) {
  wire->set_latency_ps(report.latency_ps);
  wire->set_latency_cold_ps(report.latency_cold_ps);
  wire->set_compute_ps(report.compute_ps);
  wire->set_stall_ps(report.stall_ps);
  wire->set_all_main_ps(report.all_main_ps);
  wire->set_prefetched_bytes(report.prefetched_bytes);
  wire->set_written_back_bytes(report.written_back_bytes);
  wire->set_preloaded_bytes(report.preloaded_bytes);
  wire->set_peak_fast_bytes(report.peak_fast_bytes);
  wire->set_exact_ps(report.exact_ps);
  wire->set_predicted_ps(report.predicted_ps);
  wire->set_unpriced_ps(report.unpriced_ps);
  wire->set_modelled_ps(report.modelled_ps);
  wire->set_kernel_ps(report.kernel_ps);
}

mallocgame::Report ReportFromWire(const Report& wire) {
  mallocgame::Report report;
  report.latency_ps = wire.latency_ps();
  report.latency_cold_ps = wire.latency_cold_ps();
  report.compute_ps = wire.compute_ps();
  report.stall_ps = wire.stall_ps();
  report.all_main_ps = wire.all_main_ps();
  report.prefetched_bytes = wire.prefetched_bytes();
  report.written_back_bytes = wire.written_back_bytes();
  report.preloaded_bytes = wire.preloaded_bytes();
  report.peak_fast_bytes = wire.peak_fast_bytes();
  report.exact_ps = wire.exact_ps();
  report.predicted_ps = wire.predicted_ps();
  report.unpriced_ps = wire.unpriced_ps();
  report.modelled_ps = wire.modelled_ps();
  report.kernel_ps = wire.kernel_ps();
  return report;
}

std::string SerializeMessage(const google::protobuf::MessageLite& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    MG_CHECK(message.SerializeToCodedStream(&out));
  }
  return bytes;
}

absl::Status ParseMessage(absl::string_view bytes, google::protobuf::MessageLite& message) {
  if (bytes.size() > INT_MAX ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("not a well-formed message (damaged, or cut short)");
  }
  return absl::OkStatus();
}

}  // namespace mallocgame::replay

// Converts everything but programs (program_wire.cc), field by field in the order of replay.proto.
#include "mallocgame/replay/wire.h"

#include <climits>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message_lite.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/utf8.h"
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

void ToWire(const mallocgame::GameOptions& options, GameOptions* wire) {
  wire->set_min_buffer_bytes(options.min_buffer_bytes);
  wire->set_paper_actions(options.paper_actions);
  wire->set_keep_free(options.keep_free);
  WriteList(options.forbidden, wire->mutable_forbidden());
  if (options.kind == GameKind::kTime) return;
  wire->set_kind(static_cast<int64_t>(options.kind));
  wire->set_candidates(options.candidates);
  wire->set_bytes_weight(options.bytes_weight);
  wire->set_time_weight(options.time_weight);
  wire->set_exact_stalls(options.exact_stalls);
  if (options.kind == GameKind::kSchedule) wire->set_main_bytes(options.main_bytes);
}

absl::StatusOr<mallocgame::GameOptions> OptionsFromWire(const GameOptions& wire) {
  mallocgame::GameOptions options;
  options.min_buffer_bytes = wire.min_buffer_bytes();
  options.paper_actions = wire.paper_actions();
  options.keep_free = wire.keep_free();
  MG_ASSIGN_OR_RETURN(options.forbidden,
                      ReadList<AccessId>("options, forbidden", wire.forbidden()));
  if (!wire.has_kind()) return options;
  if (wire.kind() < static_cast<int64_t>(GameKind::kPriority) || wire.kind() >= kGameKinds) {
    return absl::InvalidArgumentError(absl::StrCat("options, kind: found ", wire.kind(),
                                                   ", allowed: none, or 1 to ", kGameKinds - 1));
  }
  options.kind = static_cast<GameKind>(wire.kind());
  const int most = options.kind == GameKind::kSchedule ? kMaxScheduleCandidates : kMaxCandidates;
  if (wire.candidates() < 1 || wire.candidates() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("options, candidates: found ", wire.candidates(), ", allowed: 1 to ", most));
  }
  if (options.kind == GameKind::kSchedule) options.main_bytes = wire.main_bytes();
  options.candidates = static_cast<int>(wire.candidates());
  options.bytes_weight = wire.bytes_weight();
  options.time_weight = wire.time_weight();
  options.exact_stalls = wire.exact_stalls();
  return options;
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

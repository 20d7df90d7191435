// A payload is bytes: the fields as texts, each behind its length.
#include "mallocgame/base/refusal.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace mallocgame {
namespace {

constexpr absl::string_view kUrl = "mallocgame/refusal";

void Append(std::string& bytes, absl::string_view text) {
  absl::StrAppend(&bytes, text.size(), ":", text);
}

absl::string_view TakeText(absl::string_view& bytes) {
  const size_t colon = bytes.find(':');
  size_t size = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(bytes.substr(0, colon), &size))
    return bytes = {};
  const absl::string_view text = bytes.substr(colon + 1, size);
  bytes.remove_prefix(colon + 1 + text.size());
  return text;
}

int64_t TakeNumber(absl::string_view& bytes) {
  int64_t number = 0;
  return absl::SimpleAtoi(TakeText(bytes), &number) ? number : 0;
}

}  // namespace

absl::Status Refused(const Refusal& refusal, absl::Status status) {
  std::string bytes;
  Append(bytes, refusal.rule);
  Append(bytes, absl::StrCat(refusal.exceeded_bytes));
  Append(bytes, absl::StrCat(refusal.instructions.size()));
  for (const std::string& name : refusal.instructions) Append(bytes, name);
  for (const int32_t access : refusal.accesses) Append(bytes, absl::StrCat(access));
  status.SetPayload(kUrl, absl::Cord(bytes));
  return status;
}

Refusal RefusalOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kUrl);
  if (!payload) return {};
  const std::string held(*payload);
  absl::string_view bytes = held;
  Refusal refusal;
  refusal.rule = std::string(TakeText(bytes));
  refusal.exceeded_bytes = TakeNumber(bytes);
  for (int64_t left = TakeNumber(bytes); left > 0; --left)
    refusal.instructions.emplace_back(TakeText(bytes));
  while (!bytes.empty()) refusal.accesses.push_back(static_cast<int32_t>(TakeNumber(bytes)));
  return refusal;
}

absl::Status Prefixed(absl::string_view where, const absl::Status& status) {
  absl::Status prefixed(status.code(), absl::StrCat(where, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { prefixed.SetPayload(url, payload); });
  return prefixed;
}

}  // namespace mallocgame

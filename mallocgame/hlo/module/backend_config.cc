#include "mallocgame/hlo/module/backend_config.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"

namespace mallocgame::hlo {
namespace {

using Json = nlohmann::json;

// The list or object that a text begins with; the whole text if it doesn't end.
absl::string_view FirstPart(absl::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
      continue;
    }
    if (text[i] == '"') quoted = !quoted;
    if (quoted) continue;
    depth += text[i] == '[' || text[i] == '{' ? 1 : 0;
    depth -= text[i] == ']' || text[i] == '}' ? 1 : 0;
    if (depth == 0) return text.substr(0, i + 1);
  }
  return text;
}

}  // namespace

bool SkipToValue(absl::string_view name, absl::string_view* text) {
  // In quotes with a colon behind it, it is a name: inside a JSON string the quotes are escaped.
  const std::string quoted = absl::StrCat("\"", name, "\"");
  for (size_t at = text->find(quoted); at != absl::string_view::npos; at = text->find(quoted)) {
    *text = absl::StripLeadingAsciiWhitespace(text->substr(at + quoted.size()));
    if (!absl::ConsumePrefix(text, ":")) continue;
    *text = absl::StripLeadingAsciiWhitespace(*text);
    return true;
  }
  return false;
}

Json PartOf(absl::string_view backend_config, absl::string_view name) {
  while (SkipToValue(name, &backend_config)) {
    if (!absl::StartsWith(backend_config, "[") && !absl::StartsWith(backend_config, "{")) continue;
    const absl::string_view part = FirstPart(backend_config);
    return Json::parse(part.begin(), part.end(), nullptr, /*allow_exceptions=*/false);
  }
  return nullptr;
}

std::optional<int64_t> NumberOf(const Json& written) {
  int64_t value = -1;
  if (written.is_number_integer()) {
    value = written.get<int64_t>();
  } else if (!written.is_string() ||
             !absl::SimpleAtoi(written.get_ref<const std::string&>(), &value)) {
    return std::nullopt;
  }
  return value < 0 ? std::nullopt : std::optional<int64_t>(value);
}

}  // namespace mallocgame::hlo

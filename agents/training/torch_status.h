// Where Torch's exceptions become absl::Status. Only sources that include Torch need this.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace mallocgame::training {

// Runs `call`, which returns a Status or StatusOr. `what` names the agent and what it is doing,
// such as "muzero: an update".
template <class Call>
auto CatchTorch(absl::string_view what, const Call& call) -> decltype(call()) {
  const auto error = [what](absl::string_view message) {
    return absl::InternalError(
        absl::StrCat(what, ": Torch says: ", message.substr(0, message.find('\n'))));
  };
  try {
    return call();
  } catch (const c10::Error& thrown) {
    return error(thrown.what_without_backtrace());
  } catch (const std::exception& thrown) {
    return error(thrown.what());
  }
}

}  // namespace mallocgame::training

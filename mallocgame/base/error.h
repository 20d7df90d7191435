// The error rules in one file. Data from outside (files, protos, settings, actions) gives an
// absl::Status whose message says what, where, found and allowed. MG_CHECK is for our own bugs
// alone: it prints and ends the process.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define MG_CHECK(condition)                                                                  \
  do {                                                                                       \
    if (!(condition)) [[unlikely]] {                                                         \
      std::fprintf(stderr, "%s:%d: internal error, please report: %s\n", __FILE__, __LINE__, \
                   #condition);                                                              \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)

#define MG_CONCAT_INNER(a, b) a##b
#define MG_CONCAT(a, b) MG_CONCAT_INNER(a, b)

#define MG_RETURN_IF_ERROR(expression)                                            \
  do {                                                                            \
    if (absl::Status mg_status = (expression); !mg_status.ok()) return mg_status; \
  } while (false)

// MG_ASSIGN_OR_RETURN(auto x, F()): x = *F(), or returns its status.
#define MG_ASSIGN_OR_RETURN(target, expression) \
  MG_ASSIGN_OR_RETURN_IMPL(MG_CONCAT(mg_result_, __LINE__), target, expression)
#define MG_ASSIGN_OR_RETURN_IMPL(result, target, expression) \
  auto result = (expression);                                \
  if (!result.ok()) return result.status();                  \
  target = *std::move(result)

// What pickles of a Report hold, and so those of what has one: all sources must agree on it.
#pragma once

#include <tuple>

#include "bindings/pybind/pickling.h"
#include "mallocgame/simulator/report.h"

namespace mallocgame::python {

template <>
inline constexpr auto kPickled<Report> =
    std::tuple(&Report::latency_ps, &Report::latency_cold_ps, &Report::compute_ps,
               &Report::stall_ps, &Report::all_main_ps, &Report::prefetched_bytes,
               &Report::written_back_bytes, &Report::preloaded_bytes, &Report::peak_fast_bytes,
               &Report::exact_ps, &Report::predicted_ps, &Report::unpriced_ps, &Report::kernel_ps,
               &Report::modelled_ps, &Report::stall_at_ps, &Report::fast_bytes_at);

}  // namespace mallocgame::python

// XLA's allocator with pieces of the caller's. It runs without the GIL, and each call of a Python
// piece takes it. The first exception ends the allocation, and is raised again behind it.
#include <pybind11/stl.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/pybind/handles.h"
#include "bindings/pybind/pickling.h"
#include "bindings/pybind/status.h"
#include "mallocgame/solvers/xla/heuristic.h"
#include "mallocgame/solvers/xla/named_pieces.h"
#include "mallocgame/solvers/xla/pieces.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

constexpr std::pair<XlaFailure, const char*> kFailures[] = {
    {kOutOfMemory, "out of memory"},       {kPauseTooLong, "pause too long"},
    {kWindowTooShort, "window too short"}, {kOutOfCopies, "out of copies"},
    {kOutOfService, "out of service"},     {kMustUndo, "must undo"},
    {kSameBegins, "same begins"}};
constexpr std::pair<XlaNext, const char*> kNexts[] = {{XlaNext::kKeep, "keep"},
                                                      {XlaNext::kRetry, "retry"},
                                                      {XlaNext::kRepack, "repack"},
                                                      {XlaNext::kLeaveOut, "leave out"}};

// Numbers that are out of range stay so; they are refused with the answer.
Tick TickOf(int64_t number) {
  return static_cast<Tick>(std::clamp<int64_t>(number, std::numeric_limits<Tick>::min(),
                                               std::numeric_limits<Tick>::max()));
}

py::array_t<int64_t> RangesArray(absl::Span<const ByteRange> ranges) {
  py::array_t<int64_t> array({static_cast<py::ssize_t>(ranges.size()), py::ssize_t{2}});
  auto rows = array.mutable_unchecked<2>();
  for (size_t i = 0; i < ranges.size(); ++i) {
    rows(static_cast<py::ssize_t>(i), 0) = ranges[i].begin;
    rows(static_cast<py::ssize_t>(i), 1) = ranges[i].end;
  }
  return array;
}

// A question for begins, for as long as its call lasts.
class LentBegins {
 public:
  explicit LentBegins(const XlaBeginsQuestion& question) : question_(&question) {}
  void Return() { question_ = nullptr; }

  const XlaBeginsQuestion& get() const {
    if (question_ == nullptr) {
      Raise(absl::FailedPreconditionError(
          "begins: the question was used after the call that it was given to"));
    }
    return *question_;
  }
  // For a begin that Python gave. InvalidArgument: it is out of range.
  const XlaBeginsQuestion& At(int64_t begin) const {
    const XlaBeginsQuestion& question = get();
    if (begin < question.first || begin >= question.end) {
      Raise(absl::InvalidArgumentError("begins: found " + std::to_string(begin) +
                                       ", allowed: " + std::to_string(question.first) + " to " +
                                       std::to_string(question.end - 1)));
    }
    return question;
  }
  // For an interval that Python gave, which ends where the bytes are not held any more at the
  // latest.
  const XlaBeginsQuestion& Over(int64_t begin, int64_t end) const {
    const XlaBeginsQuestion& question = get();
    if (begin < 0 || begin >= end || end > question.held_until) {
      Raise(absl::InvalidArgumentError(
          "begins: found the ticks [" + std::to_string(begin) + ", " + std::to_string(end) +
          "), allowed: 0 <= begin < end <= " + std::to_string(question.held_until)));
    }
    return question;
  }

 private:
  const XlaBeginsQuestion* question_;
};

// The pieces of one call, with the first exception of a Python function among them.
class Callbacks {
 public:
  explicit Callbacks(const Program& program) : program_(program) {}
  Callbacks(const Callbacks&) = delete;

  void Set(const char* piece, const py::object& given) {
    if (given.is_none()) return;
    if (py::isinstance<py::str>(given)) {
      RaiseIfError(SetXlaPiece(piece, given.cast<std::string>(), pieces_));
      return;
    }
    const std::string name = piece;
    if (name == "order") SetOrder(given);
    if (name == "begins") SetBegins(given);
    if (name == "retry") SetRetry(given);
    if (name == "offset") SetOffset(given);
    if (name == "repack") SetRepack(given);
  }
  const XlaPieces& pieces() const { return pieces_; }
  void RaiseIfRaised() {
    if (raised_) throw py::error_already_set(*std::move(raised_));
  }

 private:
  // Calls with the GIL; an exception of Python's becomes an error. `allowed` says which piece it is
  // and what it may answer.
  template <class T, class Call>
  absl::StatusOr<T> WithGil(const char* allowed, const Call& call) {
    const py::gil_scoped_acquire gil;
    try {
      return call();
    } catch (py::error_already_set& error) {
      raised_.emplace(std::move(error));
    } catch (const py::cast_error&) {
      return absl::InvalidArgumentError(std::string(allowed) + ", found something else");
    }
    return absl::AbortedError("a piece raised an exception");
  }

  void SetOrder(const py::object& call) {
    pieces_.order = [this, call](const XlaOrderQuestion& question) {
      return WithGil<std::vector<BufferId>>("order: allowed: a sequence of integers", [&] {
        std::vector<int32_t> buffers;
        std::vector<int64_t> sizes;
        for (const BufferId buffer : question.by_xla) {
          buffers.push_back(buffer.value);
          sizes.push_back(program_.buffer(buffer).size_bytes);
        }
        const std::vector<double> boundedness(question.boundedness.begin(),
                                              question.boundedness.end());
        std::vector<BufferId> answer;
        for (const auto number : call(ToArray(buffers), ToArray(sizes), ToArray(boundedness))
                                     .cast<std::vector<int64_t>>())
          answer.emplace_back(TickOf(number));
        return answer;
      });
    };
  }

  void SetBegins(const py::object& call) {
    pieces_.begins = [this, call](const XlaBeginsQuestion& question) {
      return WithGil<std::vector<Tick>>("begins: allowed: a sequence of integers", [&] {
        const auto lent = std::make_shared<LentBegins>(question);
        const struct Returned {
          LentBegins& lent;
          ~Returned() { lent.Return(); }
        } returned{*lent};
        std::vector<Tick> answer;
        for (const auto number : call(lent).cast<std::vector<int64_t>>())
          answer.push_back(TickOf(number));
        return answer;
      });
    };
  }

  void SetRetry(const py::object& call) {
    pieces_.retry = [this, call](const XlaAttempt& attempt) {
      return WithGil<XlaNext>("retry: allowed: a string", [&] {
        py::list failures;
        for (const auto& [failure, name] : kFailures)
          if ((attempt.failures & failure) != 0) failures.append(name);
        const char* by_xla = kNexts[static_cast<size_t>(attempt.by_xla)].second;
        const auto answer = call(attempt.buffer.value, attempt.retry, failures,
                                 attempt.repacks_of_buffer, attempt.repacks, by_xla)
                                .cast<std::string>();
        for (const auto& [next, name] : kNexts)
          if (answer == name) return next;
        Raise(absl::InvalidArgumentError("retry: found '" + answer +
                                         "', allowed: 'keep', 'retry', 'repack', 'leave out'"));
      });
    };
  }

  void SetOffset(const py::object& call) {
    pieces_.offset = [this, call](const XlaOffsetQuestion& question) {
      return WithGil<std::optional<int64_t>>("offset: allowed: an integer or None", [&] {
        return call(question.buffer.value, question.begin, question.end, question.size_bytes,
                    RangesArray(question.free), question.capacity_bytes, question.alignment_bytes)
            .cast<std::optional<int64_t>>();
      });
    };
  }

  void SetRepack(const py::object& call) {
    pieces_.repack = [this, call](const XlaRepackQuestion& question) {
      return WithGil<std::optional<std::vector<int64_t>>>(
          "repack: allowed: a sequence of integers or None", [&] {
            std::vector<int32_t> begins, ends;
            std::vector<int64_t> offsets, sizes;
            for (const XlaBlock& block : question.blocks) {
              begins.push_back(block.begin);
              ends.push_back(block.end);
              offsets.push_back(block.offset);
              sizes.push_back(block.size_bytes);
            }
            const std::vector<int64_t> reserved(question.reserved.begin(), question.reserved.end());
            return call(ToArray(begins), ToArray(ends), ToArray(offsets), ToArray(sizes),
                        ToArray(reserved), question.capacity_bytes, question.alignment_bytes)
                .cast<std::optional<std::vector<int64_t>>>();
          });
    };
  }

  const Program& program_;
  XlaPieces pieces_;
  std::optional<py::error_already_set> raised_;
};

py::tuple PlanWithPieces(const GameHandle& game, const py::object& order, const py::object& begins,
                         const py::object& retry, const py::object& offset,
                         const py::object& repack) {
  Callbacks callbacks(game.game->program());
  callbacks.Set("order", order);
  callbacks.Set("begins", begins);
  callbacks.Set("retry", retry);
  callbacks.Set("offset", offset);
  callbacks.Set("repack", repack);
  absl::StatusOr<XlaOutcome> planned =
      WithoutGil([&] { return PlanWithPieces(*game.game, Deadline(), callbacks.pieces()); });
  callbacks.RaiseIfRaised();
  XlaOutcome outcome = ValueOrRaise(std::move(planned));
  std::vector<int32_t> taken;
  taken.reserve(outcome.order.size());
  for (const BufferId buffer : outcome.order) taken.push_back(buffer.value);
  const XlaCounts& counts = outcome.counts;
  py::dict counted;
  counted["attempts"] = counts.attempts;
  counted["out_of_memory"] = counts.out_of_memory;
  counted["undone"] = counts.undone;
  counted["repacks"] = counts.repacks;
  counted["repacked"] = counts.repacked;
  return py::make_tuple(std::move(outcome.plan), ToArray(taken), counted);
}

}  // namespace

void BindLaboratory(py::module_& module) {
  py::class_<LentBegins, std::shared_ptr<LentBegins>>(
      module, "BeginsQuestion",
      "A use that is to be prefetched: mallocgame.laboratory.Pieces.begins. It must not be kept.")
      .def("__reduce_ex__",
           RefusePickling("it ends with the call that it is given to; keep what it answers"))
      .def_property_readonly("buffer", [](const LentBegins& q) { return q.get().buffer.value; })
      .def_property_readonly("access", [](const LentBegins& q) { return q.get().access.value; })
      .def_property_readonly("size_bytes", [](const LentBegins& q) { return q.get().size_bytes; })
      .def_property_readonly(
          "retry", [](const LentBegins& q) { return q.get().retry; },
          "How often the buffer was undone before.")
      .def_property_readonly(
          "first", [](const LentBegins& q) { return q.get().first; },
          "The first tick at which the copy may begin.")
      .def_property_readonly(
          "end", [](const LentBegins& q) { return q.get().end; },
          "The tick at which the copy ends; it begins before.")
      .def_property_readonly(
          "held_until", [](const LentBegins& q) { return q.get().held_until; },
          "The bytes are taken from the begin to this tick, later uses not counted.")
      .def_property_readonly(
          "preferred_ps", [](const LentBegins& q) { return q.get().preferred_ps; },
          "The time of instructions in which XLA hides the copy best.")
      .def_property_readonly("capacity_bytes",
                             [](const LentBegins& q) { return q.get().memory.capacity_bytes(); })
      .def(
          "may_begin",
          [](const LentBegins& q, int64_t begin) {
            return q.At(begin).MayBegin(static_cast<Tick>(begin));
          },
          py::arg("begin"),
          "Says whether the window from `begin` lies in the loop or branch of its end.")
      .def(
          "hidden_ps",
          [](const LentBegins& q, int64_t begin) {
            return q.At(begin).HiddenPs(static_cast<Tick>(begin));
          },
          py::arg("begin"),
          "The time of the instructions in the window, weighted by loops, all in main memory.")
      .def(
          "by_xla",
          [](const LentBegins& q, const std::optional<int64_t>& start) {
            const XlaBeginsQuestion& question = start ? q.At(*start) : q.get();
            return ToArray(
                question.ByXla(start ? std::optional(static_cast<Tick>(*start)) : std::nullopt));
          },
          py::arg("start") = py::none(),
          "XLA's own begins, the best first, as an int32 array; with `start` those around it.")
      .def(
          "free",
          [](const LentBegins& q, int64_t begin, int64_t end) {
            return RangesArray(
                q.Over(begin, end).memory.Free(static_cast<Tick>(begin), static_cast<Tick>(end)));
          },
          py::arg("begin"), py::arg("end"),
          "The ranges of bytes that are free at all ticks of [begin, end): int64 array [ranges, "
          "2].")
      .def(
          "most_used",
          [](const LentBegins& q, int64_t begin, int64_t end) {
            return q.Over(begin, end)
                .memory.MostUsed(static_cast<Tick>(begin), static_cast<Tick>(end));
          },
          py::arg("begin"), py::arg("end"),
          "The most bytes that are taken at any tick of [begin, end).");
  module.def("plan_with_pieces", &PlanWithPieces, py::arg("game"), py::arg("order") = py::none(),
             py::arg("begins") = py::none(), py::arg("retry") = py::none(),
             py::arg("offset") = py::none(), py::arg("repack") = py::none(),
             "See mallocgame.laboratory.plan_like_xla: (plan, order, counts).");
  module.def(
      "named_pieces",
      [] {
        std::vector<std::tuple<std::string, std::string, bool, std::string>> pieces;
        for (const NamedXlaPiece& one : NamedXlaPieces())
          pieces.emplace_back(std::string(one.piece), std::string(one.name), one.weighted,
                              std::string(one.what));
        return pieces;
      },
      "(piece, name, whether a weight follows, what it does) of all pieces that have a name.");
}

}  // namespace mallocgame::python

// Resets and steps of a VectorEnv as custom calls of XLA on the CPU, by its foreign function
// interface. mallocgame/envs/xla.py makes functions of JAX of them.
#include "bindings/pybind/xla.h"

#include <pybind11/numpy.h>

#include "absl/status/status.h"
#include "bindings/pybind/handles.h"
#include "bindings/pybind/pickling.h"
#include "bindings/pybind/status.h"

#if __has_include(<xla/ffi/api/ffi.h>)
#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "mallocgame/base/error.h"
#include "xla/ffi/api/ffi.h"

namespace py = pybind11;
namespace ffi = xla::ffi;

namespace mallocgame::python {
namespace {

// Which environments, and how many calls they have had: each as two numbers of 32 bits, as JAX has
// no others where nobody asks for them.
using HandleNumbers = std::array<uint32_t, 4>;

HandleNumbers NumbersOf(uint64_t id, uint64_t calls) {
  return {static_cast<uint32_t>(id), static_cast<uint32_t>(id >> 32), static_cast<uint32_t>(calls),
          static_cast<uint32_t>(calls >> 32)};
}

// Environments, and the memory that a step needs beside XLA's. What Python or an executable still
// has is found by its id; what a call uses lives until its end.
class XlaEnvironments {
 public:
  static std::shared_ptr<XlaEnvironments> Make(std::unique_ptr<VectorEnv> environments) {
    const auto made = std::make_shared<XlaEnvironments>(std::move(environments));
    Registry& all = Registry::Get();
    const std::lock_guard<std::mutex> lock(all.mutex);
    made->id_ = ++all.last;
    all.by_id[made->id_] = made;
    return made;
  }
  static std::shared_ptr<XlaEnvironments> Find(uint64_t id) {
    Registry& all = Registry::Get();
    const std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.by_id.find(id);
    return found == all.by_id.end() ? nullptr : found->second.lock();
  }
  explicit XlaEnvironments(std::unique_ptr<VectorEnv> environments)
      : environments_(std::move(environments)) {}
  XlaEnvironments(const XlaEnvironments&) = delete;
  XlaEnvironments& operator=(const XlaEnvironments&) = delete;
  ~XlaEnvironments() {
    Registry& all = Registry::Get();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.by_id.erase(id_);
  }

  uint64_t id() const { return id_; }
  const VectorEnv& environments() const { return *environments_; }

  absl::Status Reset(std::optional<uint32_t> seed, float* observations, int8_t* masks,
                     uint64_t* calls) {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return Busy();
    const size_t count = environments_->count();
    std::vector<std::optional<uint64_t>> seeds;
    for (uint64_t i = 0; seed && i < count; ++i) seeds.emplace_back(*seed + i);
    MG_RETURN_IF_ERROR(environments_->Reset(seeds, {}, Buffers(observations, masks)));
    *calls = ++calls_;
    return absl::OkStatus();
  }

  absl::Status Step(uint64_t given, absl::Span<const int32_t> actions, float* observations,
                    int8_t* masks, float* rewards, bool* terminated, uint64_t* calls) {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return Busy();
    if (given != calls_) {
      return absl::FailedPreconditionError(absl::StrCat(
          "xla: found the handle after call ", given, " of environments that have had ", calls_,
          "; allowed: the handle that the last call returned, or reset"));
    }
    StepBuffers out = Buffers(observations, masks);
    out.rewards = rewards_.data();
    out.terminated = terminated;
    actions_.assign(actions.begin(), actions.end());
    MG_RETURN_IF_ERROR(environments_->Step(actions_, out));
    for (size_t i = 0; i < rewards_.size(); ++i) rewards[i] = static_cast<float>(rewards_[i]);
    *calls = ++calls_;
    return absl::OkStatus();
  }

 private:
  struct Registry {
    static Registry& Get() {
      static Registry& all = *new Registry;  // never destroyed: executables may outlive main()
      return all;
    }
    std::mutex mutex;
    uint64_t last = 0;
    std::unordered_map<uint64_t, std::weak_ptr<XlaEnvironments>> by_id;
  };
  static absl::Status Busy() {
    return absl::UnavailableError("xla: another thread is at work with these environments");
  }
  StepBuffers Buffers(float* observations, int8_t* masks) {
    const size_t count = environments_->count();
    rewards_.resize(count);
    latency_ps_.resize(count);
    StepBuffers out;
    out.observations = observations;
    out.masks = masks;
    out.latency_ps = latency_ps_.data();
    if (environments_->autoreset() == Autoreset::kSameStep) {
      final_observations_.resize(count * environments_->games().observation_size());
      final_masks_.resize(count * environments_->games().num_actions());
      out.final_observations = final_observations_.data();
      out.final_masks = final_masks_.data();
    }
    return out;
  }

  std::unique_ptr<VectorEnv> environments_;
  uint64_t id_ = 0;
  std::mutex mutex_;
  uint64_t calls_ = 0;
  std::vector<int64_t> actions_, latency_ps_;
  std::vector<double> rewards_;
  std::vector<float> final_observations_;
  std::vector<int8_t> final_masks_;
};

using Numbers = ffi::BufferR1<ffi::U32>;
using Next = ffi::ResultBufferR1<ffi::U32>;
using Rows = ffi::ResultBufferR2<ffi::F32>;
using Masks = ffi::ResultBufferR2<ffi::S8>;

ffi::Error ErrorOf(const absl::Status& status) {
  if (status.ok()) return ffi::Error::Success();
  return {static_cast<ffi::ErrorCode>(status.code()), std::string(status.message())};
}

absl::Status WrongShape(const char* name) {
  return absl::InvalidArgumentError(
      absl::StrCat("xla: ", name, " have another shape than those of these environments"));
}

// The environments of a handle, if the arrays are as large as theirs.
absl::StatusOr<std::shared_ptr<XlaEnvironments>> Find(const Numbers& handle, Next& next,
                                                      Rows& observations, Masks& masks) {
  constexpr size_t kNumbers = std::tuple_size_v<HandleNumbers>;
  if (handle.element_count() != kNumbers || next->element_count() != kNumbers)
    return WrongShape("handles");
  const uint32_t* numbers = handle.typed_data();
  const uint64_t id = numbers[0] + (uint64_t{numbers[1]} << 32);
  auto served = XlaEnvironments::Find(id);
  if (served == nullptr) {
    return absl::FailedPreconditionError(
        "xla: the handle is of environments that are gone; keep what VectorEnv.xla() returned");
  }
  const VectorEnv& envs = served->environments();
  const auto is = [&](const auto& dimensions, int columns) {
    return dimensions[0] == envs.count() && dimensions[1] == columns;
  };
  if (!is(observations->dimensions(), envs.games().observation_size()))
    return WrongShape("observations");
  if (!is(masks->dimensions(), envs.games().num_actions())) return WrongShape("masks");
  return served;
}

void Write(const XlaEnvironments& served, uint64_t calls, Next& out) {
  const HandleNumbers numbers = NumbersOf(served.id(), calls);
  std::copy(numbers.begin(), numbers.end(), out->typed_data());
}

absl::Status ResetCall(Numbers handle, Numbers seed, Next next, Rows observations, Masks masks) {
  MG_ASSIGN_OR_RETURN(const auto served, Find(handle, next, observations, masks));
  std::optional<uint32_t> given;  // an array of no numbers or of one
  if (seed.element_count() > 0) given = seed.typed_data()[0];
  uint64_t calls = 0;
  MG_RETURN_IF_ERROR(served->Reset(given, observations->typed_data(), masks->typed_data(), &calls));
  Write(*served, calls, next);
  return absl::OkStatus();
}

absl::Status StepCall(Numbers handle, ffi::BufferR1<ffi::S32> actions, Next next, Rows observations,
                      Masks masks, ffi::ResultBufferR1<ffi::F32> rewards,
                      ffi::ResultBufferR1<ffi::PRED> terminated) {
  MG_ASSIGN_OR_RETURN(const auto served, Find(handle, next, observations, masks));
  const size_t count = served->environments().count();
  if (rewards->element_count() != count || terminated->element_count() != count)
    return WrongShape("rewards or ends");
  const uint32_t* numbers = handle.typed_data();
  uint64_t calls = 0;
  MG_RETURN_IF_ERROR(served->Step(numbers[2] + (uint64_t{numbers[3]} << 32),
                                  absl::MakeSpan(actions.typed_data(), actions.element_count()),
                                  observations->typed_data(), masks->typed_data(),
                                  rewards->typed_data(), terminated->typed_data(), &calls));
  Write(*served, calls, next);
  return absl::OkStatus();
}

// What an executable has of the environments that its calls were written for: they live as long as
// it, because Python may have forgotten them when it runs.
struct Kept {
  static ffi::TypeId id;
  std::shared_ptr<XlaEnvironments> environments;
};
ffi::TypeId Kept::id = {};
constexpr ffi::TypeInfo kKeptInfo = ffi::MakeTypeInfo<Kept>();

ffi::ErrorOr<std::unique_ptr<Kept>> Keep(int64_t id) {
  return std::make_unique<Kept>(Kept{XlaEnvironments::Find(static_cast<uint64_t>(id))});
}

XLA_FFI_DEFINE_HANDLER(kKeep, Keep, ffi::Ffi::BindInstantiate().Attr<int64_t>("environments"));

// A call as XLA makes it: before its arrays it has what Keep() was told.
template <auto kCall>
struct Called;
template <class... Arrays, absl::Status (*kCall)(Arrays...)>
struct Called<kCall> {
  static ffi::Error Run(ffi::Dictionary /*environments*/, Arrays... arrays) {
    return ErrorOf(kCall(arrays...));
  }
};
XLA_FFI_DEFINE_HANDLER(kReset, Called<ResetCall>::Run);
XLA_FFI_DEFINE_HANDLER(kStep, Called<StepCall>::Run);

}  // namespace

py::object MakeXlaEnvironments(std::unique_ptr<VectorEnv> environments) {
  return py::cast(XlaEnvironments::Make(std::move(environments)));
}

void BindXla(py::module_& module) {
  py::class_<XlaEnvironments, std::shared_ptr<XlaEnvironments>>(
      module, "XlaEnvironments",
      "Environments that XLA steps on the CPU; VectorEnv.xla makes them.")
      .def("__reduce_ex__", RefusePickling("pickle the VectorEnv that made it"))
      .def_property_readonly("id", &XlaEnvironments::id,
                             "The number by which custom calls know them.")
      .def(
          "handle",
          [](const XlaEnvironments& of) {
            const HandleNumbers none = NumbersOf(of.id(), 0);  // which only a reset takes
            return py::array_t<uint32_t>(static_cast<py::ssize_t>(none.size()), none.data());
          },
          "An array uint32 [4]: the number, and how many calls they have had.");
  module.def(
      "xla_targets",
      [] {
        py::dict targets;
        for (const auto& [name, call] :
             {std::pair("mallocgame_reset", kReset), std::pair("mallocgame_step", kStep)}) {
          py::dict stages;
          stages["instantiate"] = py::capsule(reinterpret_cast<void*>(kKeep));
          stages["execute"] = py::capsule(reinterpret_cast<void*>(call));
          targets[name] = stages;
        }
        return targets;
      },
      "The custom calls by name, as jax.ffi.register_ffi_target takes them.");
  module.def(
      "xla_type",
      [] {
        py::dict type;
        type["type_id"] = py::capsule(static_cast<const void*>(&Kept::id));
        type["type_info"] = py::capsule(static_cast<const void*>(&kKeptInfo));
        return type;
      },
      "What executables keep, as jax.ffi.register_ffi_type takes it.");
}

}  // namespace mallocgame::python

#else

namespace mallocgame::python {

pybind11::object MakeXlaEnvironments(std::unique_ptr<VectorEnv> /*environments*/) {
  RaiseInvalid(
      "xla: this mallocgame was built where there was no jaxlib; allowed: a build with jaxlib");
}

void BindXla(pybind11::module_& /*module*/) {}

}  // namespace mallocgame::python

#endif

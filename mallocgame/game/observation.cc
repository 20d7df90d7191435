#include "mallocgame/game/observation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

absl::Status CheckOptions(const ObservationOptions& options) {
  const auto check = [](const char* name, int value, int low, int high) {
    if (low <= value && value <= high) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("observation: ", name, ": found ", value, ", allowed: ", low, " to ", high));
  };
  MG_RETURN_IF_ERROR(check("neighbours", options.neighbours, 0, 1024));
  MG_RETURN_IF_ERROR(check("ticks_back", options.ticks_back, 0, 4096));
  MG_RETURN_IF_ERROR(check("ticks_ahead", options.ticks_ahead, 0, 4096));
  MG_RETURN_IF_ERROR(check("ticks_per_column", options.ticks_per_column, 1, 65536));
  return check("address_cells", options.address_cells, 0, 4096);
}

int NumbersOf(const ObservationPart& part) {
  int numbers = 1;
  for (const int length : part.shape) numbers *= length;
  return numbers;
}

}  // namespace

const ObservationPart& PartOf(absl::Span<const ObservationPart> layout, absl::string_view name) {
  const auto part = std::find_if(layout.begin(), layout.end(),
                                 [name](const ObservationPart& p) { return p.name == name; });
  MG_CHECK(part != layout.end());
  return *part;
}

void AddPart(const char* name, std::vector<int> shape, absl::Span<const Feature> columns,
             std::vector<ObservationPart>* layout) {
  if (!columns.empty()) shape.push_back(static_cast<int>(columns.size()));
  const int offset = layout->empty() ? 0 : layout->back().offset + NumbersOf(layout->back());
  ObservationPart part = {name, offset, std::move(shape), columns};
  if (NumbersOf(part) > 0) layout->push_back(std::move(part));
}

absl::StatusOr<Observer> Observer::Create(std::shared_ptr<const Game> game,
                                          const ObservationOptions& options, const Prices* prices) {
  MG_RETURN_IF_ERROR(CheckOptions(options));
  if (prices != nullptr && game->options().decides_order()) {
    return absl::InvalidArgumentError(
        absl::StrCat("observation: found prices with a ", game->options().game(),
                     " game, allowed: none; they are of one order of instructions"));
  }
  if (prices != nullptr) MG_RETURN_IF_ERROR(ValidatePrices(game->program(), *prices));
  return Observer(std::move(game), options, prices);
}

Observer::Observer(std::shared_ptr<const Game> game, const ObservationOptions& options,
                   const Prices* prices)
    : game_(std::move(game)), options_(options),
      own_(game_->MakeObserver(
          options, prices == nullptr ? nullptr : std::make_shared<const PriceSums>(*prices))) {
  const std::vector<ObservationPart> layout = game_->options().Layout(options);
  size_ = layout.back().offset + NumbersOf(layout.back());
}

}  // namespace mallocgame

#include "mallocgame/game/priority/transfer_set.h"

#include <algorithm>

namespace mallocgame {

void TransferSet::Clear(Tick ticks) {
  for (auto* list : {&free_transfers_, &touched_at_, &ranks_}) list->clear();
  transfers_.clear();
  waiting_.clear();
  touched_.clear();
  due_at_.assign(ticks + 1, {});
  free_at_.assign(ticks + 1, {});
  ranks_changed_ = false;
}

void TransferSet::KeepTransfers() {
  for (const Changed& changed : touched_) {
    touched_at_[changed.id] = -1;
    if (!Has(changed.id)) free_transfers_.push_back(changed.id);
  }
  touched_.clear();
  ranks_changed_ = false;
}

void TransferSet::DropUnchanged() {
  std::erase_if(touched_, [this](const Changed& changed) {
    const bool neither = !Has(changed.id) && changed.kept.residence < 0;
    if (!neither && transfers_[changed.id] != changed.kept) return false;
    touched_at_[changed.id] = -1;
    if (neither) free_transfers_.push_back(changed.id);
    return true;
  });
  for (size_t i = 0; i < touched_.size(); ++i)
    touched_at_[touched_[i].id] = static_cast<int32_t>(i);
}

void TransferSet::SetRank(int32_t residence, int32_t rank) {
  if (residence >= std::ssize(ranks_)) ranks_.resize(residence + 1, -1);
  ranks_[residence] = rank;
}

void TransferSet::MakeDue(int32_t id) {
  List& due = due_at_[transfers_[id].deadline];
  due.insert(std::upper_bound(due.begin(), due.end(), id,
                              [this](int32_t a, int32_t b) { return IsBefore(a, b); }),
             id);
}

void TransferSet::SetDeadline(int32_t id, Tick deadline) {
  Touch(id);
  List& due = due_at_[transfers_[id].deadline];
  due.erase(std::find(due.begin(), due.end(), id));
  transfers_[id].deadline = deadline;
  MakeDue(id);
}

int32_t TransferSet::Add(const Transfer& transfer) {
  const int32_t id = FreeTransfer(transfer);
  transfers_[id] = transfer;
  MakeDue(id);
  free_at_[transfer.free_from].push_back(id);
  for (const int32_t eviction : transfer.after) {
    if (eviction >= 0) waiting_[eviction].push_back(id);
  }
  return id;
}

// An index for a new transfer: the one that it had before if it comes back.
int32_t TransferSet::FreeTransfer(const Transfer& wanted) {
  if (!ranks_changed_) {
    for (const Changed& changed : touched_) {
      if (!Has(changed.id) && changed.kept == wanted) return changed.id;
    }
  }
  if (free_transfers_.empty()) {
    free_transfers_.push_back(static_cast<int32_t>(transfers_.size()));
    transfers_.push_back({.residence = -1});
    waiting_.emplace_back();
    touched_at_.push_back(-1);
  }
  const int32_t id = free_transfers_.back();
  free_transfers_.pop_back();
  Touch(id);
  return id;
}

// Notes how a transfer was at Keep before it changes.
void TransferSet::Touch(int32_t id) {
  if (touched_at_[id] >= 0) return;
  touched_at_[id] = static_cast<int32_t>(touched_.size());
  touched_.push_back({id, transfers_[id]});
}

void TransferSet::Remove(int32_t id) {
  Touch(id);
  Transfer& transfer = transfers_[id];
  const auto erase = [id](List& list) { list.erase(std::find(list.begin(), list.end(), id)); };
  erase(due_at_[transfer.deadline]);
  erase(free_at_[transfer.free_from]);
  for (const int32_t eviction : transfer.after) {
    if (eviction >= 0) erase(waiting_[eviction]);
  }
  transfer.residence = -1;
}

}  // namespace mallocgame

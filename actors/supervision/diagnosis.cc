#include "actors/supervision/diagnosis.h"

#include <utility>

namespace troupe::actors {

void Diagnosis::Init(Self self, ProcessContextPtr process, CrewPtr crew) {
  self_ = self;
  process_ = std::move(process);
  crew_ = std::move(crew);
}

void Diagnosis::Begin(const Failure& failure) {
  // An incomplete crew has no ranks that wait for each other.
  if (!crew_->IsComplete() || !HeldVerdict::IsFor(failure)) {
    failure_.Decide(failure);
    return;
  }
  failure_.Hold(failure, static_cast<int>(crew_->ranks.size()),
                process_->links.roster.get(), self_->clock().now());
  OnAsk();
}

void Diagnosis::OnAsk() {
  if (Settle()) return;
  for (const int rank : failure_.ToAsk()) {
    self_->send(crew_->ranks[rank], AskWaits{process_->generation});
  }
  self_->delayed_send(self_, HeldVerdict::kAskEvery, ask_atom::value);
}

}  // namespace troupe::actors

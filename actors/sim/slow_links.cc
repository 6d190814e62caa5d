#include "actors/sim/slow_links.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

namespace troupe::actors {

// The way from one rank to one stage.
class SlowLinks::Way : public SeededScheduler::Task {
 public:
  Way(std::uint64_t id, SeededScheduler& scheduler,
      std::shared_ptr<StageLink> link, int stage)
      : Task(id),
        scheduler_(scheduler),
        link_(std::move(link)),
        stage_(stage) {}

  void Push(Transfer transfer) {
    under_way_.push_back(std::move(transfer));
    scheduler_.Enqueue(*this);
  }

  resume_result resume(caf::execution_unit*, std::size_t) override {
    Transfer transfer = std::move(under_way_.front());
    under_way_.pop_front();
    link_->Send(stage_, std::move(transfer));
    return awaiting_message;
  }

 private:
  SeededScheduler& scheduler_;
  const std::shared_ptr<StageLink> link_;
  const int stage_;
  std::deque<Transfer> under_way_;
};

class SlowLinks::Link : public StageLink {
 public:
  Link(SlowLinks& owner, std::shared_ptr<StageLink> link)
      : owner_(owner), link_(std::move(link)) {}

  void Send(int stage, Transfer transfer) override {
    Way*& way = ways_[stage];
    if (way == nullptr) way = &owner_.AddWay(link_, stage);
    way->Push(std::move(transfer));
  }
  bool NeedsHostMemory(int stage) const override {
    return link_->NeedsHostMemory(stage);
  }

 private:
  SlowLinks& owner_;
  const std::shared_ptr<StageLink> link_;
  std::map<int, Way*> ways_;  // the way to each stage
};

SlowLinks::SlowLinks(caf::actor_system& system, SeededScheduler& scheduler)
    : system_(system), scheduler_(scheduler) {}

SlowLinks::~SlowLinks() = default;

std::shared_ptr<StageLink> SlowLinks::Over(std::shared_ptr<StageLink> link) {
  return std::make_shared<Link>(*this, std::move(link));
}

SlowLinks::Way& SlowLinks::AddWay(std::shared_ptr<StageLink> link, int stage) {
  ways_.push_back(std::make_unique<Way>(system_.next_actor_id(), scheduler_,
                                        std::move(link), stage));
  return *ways_.back();
}

}  // namespace troupe::actors

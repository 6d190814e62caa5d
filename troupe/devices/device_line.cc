#include "troupe/devices/device_line.h"

#include <utility>

namespace troupe {
namespace {

void Complete(const std::optional<base::Event>& news) {
  if (news.has_value()) news->Complete(absl::OkStatus());
}

}  // namespace

void DeviceLine::Post(DeviceTask task) {
  std::optional<base::Event> news;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
    tasks_.push_back(std::move(task));
    news = std::exchange(news_, std::nullopt);
  }
  Complete(news);
}

void DeviceLine::Close() {
  std::optional<base::Event> news;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    news = std::exchange(news_, std::nullopt);
  }
  Complete(news);
}

void DeviceLine::Abandon() {
  std::deque<DeviceTask> left;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  left.swap(tasks_);
}

DeviceTask DeviceLine::Await(actors::ProgramRank& strand) {
  while (true) {
    base::Event news;
    {
      absl::MutexLock lock(&mutex_);
      if (!tasks_.empty()) {
        DeviceTask task = std::move(tasks_.front());
        tasks_.pop_front();
        return task;
      }
      if (closed_) return nullptr;
      news = base::Event::Make();
      news_ = news;
    }
    strand.AwaitEvent(news);
  }
}

}  // namespace troupe

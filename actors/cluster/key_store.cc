#include "actors/cluster/key_store.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe::actors {

absl::StatusOr<std::vector<caf::strong_actor_ptr>> KeyStore::Set(
    const std::string& key, const std::string& value) {
  const bool fits = values_.size() < kKeysMax || values_.count(key) != 0;
  if (!fits || key.size() + value.size() > kKeyBytesMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the store takes ", kKeysMax, " keys of ", kKeyBytesMax,
        " bytes each; it has ", values_.size(), " and got one of ",
        key.size() + value.size(), " bytes; start fewer processes"));
  }
  values_[key] = value;
  std::vector<caf::strong_actor_ptr> waiting;
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return waiting;
  waiting = std::move(found->second);
  waiting_.erase(found);
  return waiting;
}

const std::string* KeyStore::Find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

void KeyStore::Await(const std::string& key, caf::strong_actor_ptr actor) {
  waiting_[key].push_back(std::move(actor));
}

std::vector<caf::strong_actor_ptr> KeyStore::TakeWaiting() {
  std::vector<caf::strong_actor_ptr> all;
  for (auto& [key, waiting] : waiting_) {
    all.insert(all.end(), waiting.begin(), waiting.end());
  }
  waiting_.clear();
  return all;
}

}  // namespace troupe::actors

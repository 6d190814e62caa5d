// The live objects of one kind behind the handles of the API.
//
//     Handles<Event> events;
//     Event* const event = events.Add(std::make_unique<Event>());
//     if (events.Find(handle) == nullptr) return Fail(...);
//     events.Remove(event);
//
// Threads: under the runtime's lock.

#ifndef BASE_CUDA_EMULATED_RUNTIME_HANDLES_H_
#define BASE_CUDA_EMULATED_RUNTIME_HANDLES_H_

#include <map>
#include <memory>
#include <utility>

namespace emulated_cuda {

template <typename T>
class Handles {
 public:
  T* Add(std::unique_ptr<T> object) {
    T* const handle = object.get();
    live_[handle] = std::move(object);
    return handle;
  }
  // Returns the object of a handle; null: there is none.
  T* Find(const void* handle) const {
    const auto found = live_.find(handle);
    return found == live_.end() ? nullptr : found->second.get();
  }
  // Destroys the object.
  void Remove(const T* object) { live_.erase(object); }
  bool empty() const { return live_.empty(); }

 private:
  std::map<const void*, std::unique_ptr<T>> live_;
};

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_HANDLES_H_

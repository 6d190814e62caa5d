#include "base/cuda/emulated/runtime/operation.h"

namespace emulated_cuda {

std::string NameOf(const Stream& stream) {
  return "stream " + std::to_string(stream.id) +
         (stream.is_branch ? " (of a graph)" : "") + " of device " +
         std::to_string(stream.device);
}

std::string Describe(const Work& work) {
  std::string text = work.name;
  if (work.file == nullptr) return text + ", in " + work.site.ToString();
  return text + ", launched at " + work.file + ":" + std::to_string(work.line);
}

}  // namespace emulated_cuda

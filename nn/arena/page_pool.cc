#include "nn/arena/page_pool.h"

#include <sys/mman.h>

#include <cstdint>

namespace troupe::nn {
namespace {

constexpr std::size_t kBytes = PagePool::kBlockBytes;

// Moves the pages of `from` to `to`. The addresses of both stay mapped.
bool MovePages(char* from, char* to) {
  return mremap(from, kBytes, kBytes,
                MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
                to) != MAP_FAILED;
}

// Returns addresses for one block, without pages; null if there are none.
char* ReserveBlock() {
  void* const mapped = mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(mapped);
  const std::size_t ahead =
      (kBytes - reinterpret_cast<std::uintptr_t>(begin) % kBytes) % kBytes;
  if (ahead > 0) munmap(begin, ahead);
  munmap(begin + ahead + kBytes, kBytes - ahead);
  return begin + ahead;
}

}  // namespace

bool PagePool::Keep(char* block) {
  if (empty_.empty()) {
    char* const reserved = ReserveBlock();
    if (reserved == nullptr) return false;
    empty_.push_back(reserved);
  }
  if (!MovePages(block, empty_.back())) return false;
  full_.push_back(empty_.back());
  empty_.pop_back();
  return true;
}

bool PagePool::Take(char* block) {
  if (full_.empty() || !MovePages(full_.back(), block)) return false;
  empty_.push_back(full_.back());
  full_.pop_back();
  return true;
}

void PagePool::Clear() {
  for (std::vector<char*>* blocks : {&full_, &empty_}) {
    for (char* const block : *blocks) munmap(block, kBytes);
    blocks->clear();
  }
}

}  // namespace troupe::nn

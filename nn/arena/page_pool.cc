#include "nn/arena/page_pool.h"

#include <sys/mman.h>

#include <cstdint>

namespace troupe::nn {

bool PagePool::MovePages(char* from, char* to) const {
  return mremap(from, block_bytes_, block_bytes_,
                MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
                to) != MAP_FAILED;
}

char* PagePool::ReserveBlock() const {
  const std::size_t bytes = block_bytes_;
  void* const mapped = mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(mapped);
  const std::size_t ahead =
      (bytes - reinterpret_cast<std::uintptr_t>(begin) % bytes) % bytes;
  if (ahead > 0) munmap(begin, ahead);
  munmap(begin + ahead + bytes, bytes - ahead);
  return begin + ahead;
}

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
    for (char* const block : *blocks) munmap(block, block_bytes_);
    blocks->clear();
  }
}

}  // namespace troupe::nn

// Pages of memory whose contents are no longer needed, kept for other addresses
// of the process: they move there without a copy (mremap), and the system need
// not clear new ones. Blocks of 2 MiB move as fast as single pages.
//
//   PagePool pool;
//   if (pool.Keep(block)) {
//     pool.Take(another);    // has the pages now, and their stale contents
//   }
//
// Addresses stay valid: a block whose pages were kept reads as zeros, and gets
// new pages when it is written. Blocks begin at multiples of kBlockBytes, in
// anonymous memory that is private to the process.
//
// Cost: a call of the system a block. Not thread-safe; nothing may use a block
// while it loses or gets pages.

#ifndef NN_ARENA_PAGE_POOL_H_
#define NN_ARENA_PAGE_POOL_H_

#include <cstddef>
#include <vector>

namespace troupe::nn {

class PagePool {
 public:
  static constexpr std::size_t kBlockBytes = std::size_t{2} << 20;

  PagePool() = default;
  ~PagePool() { Clear(); }
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // Moves the pages of a block to the pool. Returns false, with no effect, if
  // the system cannot (Linux before 5.7).
  bool Keep(char* block);
  // Moves pages of the pool to a block, in place of its own. Returns false,
  // with no effect, if the pool is empty, or the system cannot.
  bool Take(char* block);
  // Gives all pages back to the system.
  void Clear();

  // Returns the bytes of pages in the pool.
  std::size_t bytes() const { return full_.size() * kBlockBytes; }

 private:
  // Addresses reserved by the pool, with pages and without.
  std::vector<char*> full_, empty_;
};

}  // namespace troupe::nn

#endif  // NN_ARENA_PAGE_POOL_H_

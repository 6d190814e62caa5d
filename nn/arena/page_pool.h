// Pages of memory whose contents are no longer needed, kept for other addresses
// of the process: they move there without a copy (mremap), and the system need
// not clear new ones. Blocks of 2 MiB move as fast as single pages, smaller
// ones page by page.
//
//   PagePool pool;
//   if (pool.Keep(block)) {
//     pool.Take(another);    // has the pages now, and their stale contents
//   }
//
// Addresses stay valid: a block whose pages were kept reads as zeros, and gets
// new pages when it is written. Blocks begin at multiples of their length, in
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

  // `block_bytes` is a power of two, at least a page.
  explicit PagePool(std::size_t block_bytes = kBlockBytes)
      : block_bytes_(block_bytes) {}
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

  std::size_t block_bytes() const { return block_bytes_; }
  // Returns the bytes of pages in the pool.
  std::size_t bytes() const { return full_.size() * block_bytes_; }

 private:
  // Moves the pages of `from` to `to`. The addresses of both stay mapped.
  bool MovePages(char* from, char* to) const;
  // Returns addresses for one block, without pages; null if there are none.
  char* ReserveBlock() const;

  const std::size_t block_bytes_;
  // Addresses reserved by the pool, with pages and without.
  std::vector<char*> full_, empty_;
};

}  // namespace troupe::nn

#endif  // NN_ARENA_PAGE_POOL_H_

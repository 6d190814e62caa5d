// Files of every kind that DecodeImage() reads, with the pixels that Pillow
// gives; golden/make_images.py makes them.
//
//   for (const GoldenImage& golden : ReadGoldenImages()) ...

#ifndef TESTS_DATA_IMAGES_GOLDEN_IMAGES_H_
#define TESTS_DATA_IMAGES_GOLDEN_IMAGES_H_

#include <string>
#include <vector>

#include "data/images/decode.h"
#include "tests/data/test_util.h"

namespace troupe::data {

struct GoldenImage {
  std::string name;  // its format, a colon, and what is special about it
  Bytes file;
  Image image;
};

std::vector<GoldenImage> ReadGoldenImages();

// Returns other pictures, of random sizes, that a Python with Pillow makes now
// ($TROUPE_PYTHON, else python3). Empty: there is none.
std::vector<GoldenImage> MakeGoldenImages();

// Returns the file of a golden image of the tree.
Bytes GoldenFileOf(const std::string& name);

}  // namespace troupe::data

#endif  // TESTS_DATA_IMAGES_GOLDEN_IMAGES_H_

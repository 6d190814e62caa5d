#include "data/synthetic/glyph_strokes.h"

#include "base/check.h"

namespace troupe::data {
namespace {

constexpr StrokeKind kLines = StrokeKind::kLines;
constexpr StrokeKind kCurve = StrokeKind::kCurve;
constexpr StrokeKind kLoop = StrokeKind::kLoop;

// Named k<digit><part>: k4Angle is the angle of an open 4.
constexpr Point k0Ring[] = {{0.50f, 0.03f}, {0.20f, 0.20f}, {0.12f, 0.50f},
                            {0.20f, 0.80f}, {0.50f, 0.97f}, {0.80f, 0.80f},
                            {0.88f, 0.50f}, {0.80f, 0.20f}};
constexpr Point k0Slash[] = {{0.70f, 0.25f}, {0.30f, 0.75f}};
constexpr Point k1Flag[] = {{0.25f, 0.25f}, {0.55f, 0.04f}, {0.55f, 0.96f}};
constexpr Point k1Base[] = {{0.25f, 0.96f}, {0.82f, 0.96f}};
constexpr Point k2Hook[] = {{0.15f, 0.26f}, {0.28f, 0.08f}, {0.55f, 0.03f},
                            {0.80f, 0.16f}, {0.80f, 0.38f}, {0.50f, 0.66f},
                            {0.13f, 0.95f}};
constexpr Point k2Base[] = {{0.13f, 0.95f}, {0.88f, 0.95f}};
constexpr Point k3Top[] = {{0.17f, 0.15f},
                           {0.45f, 0.03f},
                           {0.76f, 0.13f},
                           {0.74f, 0.37f},
                           {0.42f, 0.48f}};
constexpr Point k3Bottom[] = {{0.42f, 0.48f},
                              {0.78f, 0.58f},
                              {0.82f, 0.82f},
                              {0.50f, 0.97f},
                              {0.14f, 0.85f}};
constexpr Point k3Roof[] = {{0.17f, 0.05f}, {0.80f, 0.05f}, {0.42f, 0.45f}};
constexpr Point k4Angle[] = {{0.30f, 0.05f}, {0.15f, 0.58f}, {0.90f, 0.58f}};
constexpr Point k4Stem[] = {{0.70f, 0.30f}, {0.70f, 0.97f}};
constexpr Point k4Roof[] = {
    {0.90f, 0.68f}, {0.10f, 0.68f}, {0.66f, 0.04f}, {0.66f, 0.97f}};
constexpr Point k5Flag[] = {{0.82f, 0.05f}, {0.28f, 0.05f}, {0.22f, 0.45f}};
constexpr Point k5Belly[] = {{0.22f, 0.45f}, {0.50f, 0.37f}, {0.80f, 0.50f},
                             {0.83f, 0.75f}, {0.55f, 0.96f}, {0.15f, 0.86f}};
constexpr Point k6Curl[] = {{0.74f, 0.06f}, {0.42f, 0.20f}, {0.20f, 0.50f},
                            {0.20f, 0.80f}, {0.48f, 0.97f}, {0.78f, 0.86f},
                            {0.82f, 0.65f}, {0.55f, 0.49f}, {0.22f, 0.64f}};
constexpr Point k7Angle[] = {{0.13f, 0.06f}, {0.86f, 0.06f}, {0.40f, 0.96f}};
constexpr Point k7Bar[] = {{0.35f, 0.50f}, {0.80f, 0.50f}};
constexpr Point k8Top[] = {
    {0.50f, 0.03f}, {0.24f, 0.25f}, {0.50f, 0.47f}, {0.76f, 0.25f}};
constexpr Point k8Bottom[] = {
    {0.50f, 0.47f}, {0.16f, 0.73f}, {0.50f, 0.97f}, {0.84f, 0.73f}};
constexpr Point k9Curl[] = {{0.80f, 0.35f}, {0.50f, 0.51f}, {0.20f, 0.35f},
                            {0.22f, 0.14f}, {0.50f, 0.03f}, {0.80f, 0.18f},
                            {0.80f, 0.50f}, {0.60f, 0.80f}, {0.28f, 0.95f}};
constexpr Point k9Ring[] = {
    {0.50f, 0.03f}, {0.20f, 0.28f}, {0.50f, 0.53f}, {0.80f, 0.28f}};
constexpr Point k9Stem[] = {{0.80f, 0.20f}, {0.78f, 0.97f}};

constexpr Stroke k0A[] = {{kLoop, k0Ring}};
constexpr Stroke k0B[] = {{kLoop, k0Ring}, {kLines, k0Slash}};
constexpr Stroke k1A[] = {{kLines, k1Flag}};
constexpr Stroke k1B[] = {{kLines, k1Flag}, {kLines, k1Base}};
constexpr Stroke k2A[] = {{kCurve, k2Hook}, {kLines, k2Base}};
constexpr Stroke k3A[] = {{kCurve, k3Top}, {kCurve, k3Bottom}};
constexpr Stroke k3B[] = {{kLines, k3Roof}, {kCurve, k3Bottom}};
constexpr Stroke k4A[] = {{kLines, k4Angle}, {kLines, k4Stem}};
constexpr Stroke k4B[] = {{kLines, k4Roof}};
constexpr Stroke k5A[] = {{kLines, k5Flag}, {kCurve, k5Belly}};
constexpr Stroke k6A[] = {{kCurve, k6Curl}};
constexpr Stroke k7A[] = {{kLines, k7Angle}};
constexpr Stroke k7B[] = {{kLines, k7Angle}, {kLines, k7Bar}};
constexpr Stroke k8A[] = {{kLoop, k8Top}, {kLoop, k8Bottom}};
constexpr Stroke k9A[] = {{kCurve, k9Curl}};
constexpr Stroke k9B[] = {{kLoop, k9Ring}, {kLines, k9Stem}};

constexpr absl::Span<const Stroke> kGlyphs[kGlyphDigits][kGlyphVariants] = {
    {k0A, k0B}, {k1A, k1B}, {k2A, k2A}, {k3A, k3B}, {k4A, k4B},
    {k5A, k5A}, {k6A, k6A}, {k7A, k7B}, {k8A, k8A}, {k9A, k9B}};

}  // namespace

absl::Span<const Stroke> GlyphStrokes(int digit, int variant) {
  TROUPE_CHECK(0 <= digit && digit < kGlyphDigits && 0 <= variant &&
                   variant < kGlyphVariants,
               "a glyph is one of the ten digits");
  return kGlyphs[digit][variant];
}

}  // namespace troupe::data

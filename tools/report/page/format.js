// Formats numbers for readers.

// Returns a time, given in microseconds, in a suitable unit.
function formatTime(micros) {
  const size = Math.abs(micros);
  if (size >= 1e6) return trimmed(micros / 1e6) + ' s';
  if (size >= 1e3) return trimmed(micros / 1e3) + ' ms';
  return trimmed(micros) + ' µs';
}

// Returns a number with three significant digits.
function trimmed(value) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 100) return String(Math.round(value));
  return String(Number(value.toPrecision(3)));
}

function formatShare(part) {
  return (100 * part).toFixed(1) + '\u00a0%';
}

function formatBytes(bytes) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  while (Math.abs(bytes) >= 1024 && at + 1 < units.length) {
    bytes /= 1024;
    ++at;
  }
  return trimmed(bytes) + ' ' + units[at];
}

function formatNumber(value) {
  if (value === null || value === undefined) return 'not finite';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) {
    return value.toExponential(2).replace('e+', 'e');
  }
  if (size >= 1000) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(4)));
}

// Returns the unit of an axis: [name, its size in microseconds or bytes].
function timeUnit(span) {
  return span >= 2e6 ? ['s', 1e6] : span >= 2e3 ? ['ms', 1e3] : ['µs', 1];
}

function byteUnit(most) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  while (most >= 2 * Math.pow(1024, at + 1) && at + 1 < units.length) ++at;
  return [units[at], Math.pow(1024, at)];
}

// Returns round values in a unit, with their texts.
function ticksOf(min, max, count, [name, size]) {
  return ticksBetween(min / size, max / size, count).map(
      (tick) => [tick * size, trimmed(tick) + ' ' + name]);
}

// Returns about `count` round values from `min` to `max`.
function ticksBetween(min, max, count) {
  const span = max - min;
  if (!(span > 0)) return [min];
  const rough = span / count;
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step =
      [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(min / step); i * step <= max + span * 1e-9; ++i) {
    ticks.push(i * step);
  }
  return ticks;
}

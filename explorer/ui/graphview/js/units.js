// Numbers for people, as units.py writes them.

const UNIT_STEPS = {
  bytes: ["B", "kB", "MB", "GB", "TB"],
  ns: ["ns", "µs", "ms", "s"],
  count: ["", "k", "M", "G", "T"],
};

/** A value with its unit; "unknown" for NaN. */
export function formatValue(value, unit) {
  if (!Number.isFinite(value)) return "unknown";
  if (unit === "ratio") return `${trimNumber(value * 100)} %`;
  const steps = UNIT_STEPS[unit];
  if (!steps) return trimNumber(value);
  let size = Math.abs(value);
  let step = 0;
  while (size >= 999.5 && step < steps.length - 1) {
    size /= 1000;
    step += 1;
  }
  return `${value < 0 ? "-" : ""}${trimNumber(size)} ${steps[step]}`.trim();
}

function trimNumber(value) {
  const size = Math.abs(value);
  const digits = size >= 99.5 || Number.isInteger(value) ? 0 : size >= 9.95 ? 1 : 2;
  const text = value.toFixed(digits);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

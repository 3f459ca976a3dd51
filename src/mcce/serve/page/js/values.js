/** Values of features as numbers that sliders can stand on; dates count in days. */

const DAY = 86_400_000;

/** Whether a feature has an axis: a number or a date with known ends, unless it has words for its values. */
export const isMeasured = (feature) =>
  feature.kind === "numeric" && !feature.levels && feature.low !== null && feature.low !== undefined && position(feature, feature.low) !== null;

/** Where a value stands on the axis of its feature, or null. */
export function position(feature, value) {
  if (typeof value === "number") return value;
  if (value === null || value === undefined || feature.type !== "date") return null;
  const time = Date.parse(`${String(value).slice(0, 10)}T00:00:00Z`);
  return Number.isNaN(time) ? null : time / DAY;
}

/** The value at a position. */
export const valueAt = (feature, at) =>
  feature.type === "date" ? new Date(Math.round(at) * DAY).toISOString().slice(0, 10) : tidy(at);

// Sliders add steps up; 0.1 + 0.2 should read 0.3.
const tidy = (at) => Number(at.toPrecision(12));

/** A number as readers see it, such as 25 for 0.25 in percent, and back. */
export const scaled = (feature, value) => (feature.scale === 1 ? value : tidy(value * feature.scale));
export const unscaled = (feature, value) => (feature.scale === 1 ? value : tidy(value / feature.scale));

/** Ends of the axis, wide enough for some values, and its step. */
export function axis(feature, ...values) {
  const places = values.map((value) => position(feature, value)).filter((at) => at !== null);
  const low = Math.min(position(feature, feature.low), ...places);
  const high = Math.max(position(feature, feature.high), ...places);
  return { low, high, step: feature.type === "date" ? 1 : feature.step || stepFor(high - low, feature.type) };
}

function stepFor(width, type) {
  if (type === "integer" || !(width > 0)) return 1;
  return 10 ** Math.floor(Math.log10(width / 200));
}

export const sameCell = (a, b) => (a ?? null) === (b ?? null);

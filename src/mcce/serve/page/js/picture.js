/** Pictures: how common values are among accepted people, where a change leads, and scores. */

import { svg } from "./dom.js";
import { axis, isMeasured, position } from "./values.js";

const WIDTH = 300;
const MAX_LEVELS = 24;

const COLUMN = 22;

const scale = (at, low, high) => (high > low ? (WIDTH * (at - low)) / (high - low) : WIDTH / 2);

/** Bars of accepted people; those between `from` and `to` stand out. */
function bars(feature, { low, high }, base, height, from = null, to = null) {
  const spans = isMeasured(feature) ? spansOf(feature, low, high) : [];
  return columns(spans.map((span) => ({ ...span, inside: from === null || (span.middle >= from && span.middle <= to) })), base, height);
}

/** Where bars begin and end. A whole number with a bar of its own has a column around it. */
function spansOf(feature, low, high) {
  const { edges, accepted } = feature.histogram ?? { edges: [], accepted: [] };
  const single = feature.type === "integer" && accepted.length === feature.high - feature.low + 1;
  return accepted.map((n, at) => {
    const middle = single ? feature.low + at : (edges[at] + edges[at + 1]) / 2;
    if (!single) return { n, middle, left: scale(edges[at], low, high) + 0.5, right: scale(edges[at + 1], low, high) - 0.5 };
    const half = Math.min(COLUMN, (0.8 * WIDTH) / (high - low || 1)) / 2;
    return { n, middle, left: scale(middle, low, high) - half, right: scale(middle, low, high) + half };
  });
}

function columns(spans, base, height) {
  const most = Math.max(1, ...spans.map((span) => span.n));
  return spans.filter((span) => span.n).map(({ n, left, right, inside }) => {
    const tall = Math.max(1.5, (height * n) / most);
    return svg("rect", { class: inside ? "bar" : "bar outside", x: left, y: base - tall, width: Math.max(1, right - left), height: tall, rx: 1 });
  });
}

/** Levels side by side: the place of each, and a column of accepted people. */
function levelTrack(feature) {
  const levels = feature.levels.map((level) => level.value);
  const step = WIDTH / levels.length;
  const half = Math.min(COLUMN, 0.7 * step) / 2;
  const place = (value) => (levels.includes(value) ? (levels.indexOf(value) + 0.5) * step : -12);
  const accepted = feature.histogram?.accepted ?? [];
  const spans = levels.map((level, at) => ({ n: accepted.length === levels.length ? accepted[at] : 0, left: place(level) - half, right: place(level) + half, inside: true }));
  return { place, bars: columns(spans, 38, 32) };
}

/** Whether a change can be drawn: numbers, dates, and levels that are not too many. */
export const canDraw = (feature) => isMeasured(feature) || (feature.levels?.length ?? Infinity) <= MAX_LEVELS;

/** The distribution that a slider stands on. */
export const distribution = (feature, ends, from = null, to = null) =>
  svg("svg", { class: "distribution", viewBox: `0 0 ${WIDTH} 44`, preserveAspectRatio: "none", "aria-hidden": "true" },
    bars(feature, ends, 44, 42, from, to));

function measuredTrack(feature, before, after) {
  const ends = axis(feature, before, after);
  const place = (value) => {
    const at = position(feature, value);
    return at === null ? -12 : scale(at, ends.low, ends.high);
  };
  return { place, bars: bars(feature, ends, 38, 32) };
}

/** A change: the value now, the value of the plan, other values that would do, accepted people. */
export function dumbbell(feature, before, after, range, label) {
  const track = isMeasured(feature) ? measuredTrack(feature, before, after) : levelTrack(feature);
  const { place } = track;
  const [start, end] = [place(before), place(after)];
  const reach = range && isMeasured(feature) && range.low !== null && range.high !== null
    ? svg("line", { class: "reach", x1: place(range.low), x2: place(range.high), y1: 38, y2: 38 }) : null;
  return svg("svg", { class: "dumbbell", viewBox: `-16 0 ${WIDTH + 32} 50`, role: "img", "aria-label": label },
    track.bars,
    svg("line", { class: "base", x1: 0, x2: WIDTH, y1: 38, y2: 38 }),
    reach,
    svg("line", { class: "way", x1: start, x2: end, y1: 38, y2: 38 }),
    svg("circle", { class: "before", cx: start, cy: 38, r: 5.5 }),
    svg("circle", { class: "after", cx: end, cy: 38, r: 6.5 }));
}

/** A score beside the wanted ones, `schema.desired`; nothing where labels are wanted. */
export function gauge({ score, desired }, wanted, label) {
  if (wanted.labels || typeof score !== "number") return null;
  const { low, high } = gaugeEnds(score, wanted);
  const at = (value) => Math.min(WIDTH, Math.max(0, scale(value, low, high)));
  const from = wanted.low === null ? 0 : at(wanted.low);
  const to = wanted.high === null ? WIDTH : at(wanted.high);
  const marker = svg("circle", { class: desired ? "marker yes" : "marker no", cx: at(score), cy: 12, r: 8 });
  return svg("svg", { class: "gauge", viewBox: `0 0 ${WIDTH} 24`, role: "img", "aria-label": label },
    svg("rect", { class: "track", x: 0, y: 8, width: WIDTH, height: 8, rx: 4 }),
    svg("rect", { class: "wanted", x: from, y: 8, width: Math.max(2, to - from), height: 8, rx: 4 }),
    wanted.low === null || from <= 0 ? null : svg("line", { class: "threshold", x1: from, x2: from, y1: 1, y2: 23 }),
    wanted.high === null || to >= WIDTH ? null : svg("line", { class: "threshold", x1: to, x2: to, y1: 1, y2: 23 }),
    marker);
}

function gaugeEnds(score, { low, high }) {
  const known = [score, low, high].filter((one) => typeof one === "number" && Number.isFinite(one));
  const [least, most] = [Math.min(...known), Math.max(...known)];
  if (least >= 0 && most <= 1) return { low: 0, high: 1 };
  const room = (most - least || 1) / 4;
  return { low: least - room, high: most + room };
}

/** Fields over the distribution of accepted people, and pictures of scores. */

import { axis, cell, h, isMeasured, newId, position, say, scaled, score, state, svg, title, unitOf, unscaled, valueAt } from "./core.js";

const WIDTH = 300;

const COLUMN = 22;

const scale = (at, low, high) => (high > low ? (WIDTH * (at - low)) / (high - low) : WIDTH / 2);

/** The distribution that a slider stands on: accepted people, of whom those between two ends stand out. */
function distribution(feature, { low, high }, from = null, to = null) {
  const spans = isMeasured(feature) ? spansOf(feature, low, high) : [];
  const most = Math.max(1, ...spans.map((span) => span.n));
  const bars = spans.filter((span) => span.n).map(({ n, middle, left, right }) => {
    const tall = Math.max(1.5, (42 * n) / most);
    const inside = from === null || (middle >= from && middle <= to);
    return svg("rect", { class: inside ? "bar" : "bar outside", x: left, y: 44 - tall, width: Math.max(1, right - left), height: tall, rx: 1 });
  });
  return svg("svg", { class: "distribution", viewBox: `0 0 ${WIDTH} 44`, preserveAspectRatio: "none", "aria-hidden": "true" }, bars);
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

/** A score beside the wanted ones, and the way there from that of today; nothing where labels are wanted. */
export function gauge({ score: value, desired }, wanted, label, today = value) {
  if (wanted.labels || typeof value !== "number") return null;
  const { low, high } = scoreEnds([value, today], wanted);
  const at = (one) => Math.min(WIDTH, Math.max(0, scale(one, low, high)));
  const from = wanted.low === null ? 0 : at(wanted.low);
  const to = wanted.high === null ? WIDTH : at(wanted.high);
  const mark = (x) => svg("line", { class: "threshold", x1: x, x2: x, y1: 1, y2: 23 });
  return svg("svg", { class: "gauge", viewBox: `0 0 ${WIDTH} 24`, role: "img", "aria-label": label },
    svg("rect", { class: "track", x: 0, y: 8, width: WIDTH, height: 8, rx: 4 }),
    svg("rect", { class: "wanted", x: from, y: 8, width: Math.max(2, to - from), height: 8, rx: 4 }),
    wanted.low === null || from <= 0 ? null : mark(from),
    wanted.high === null || to >= WIDTH ? null : mark(to),
    today === value ? null : [
      svg("line", { class: "way", x1: at(today), x2: at(value), y1: 12, y2: 12 }),
      svg("circle", { class: "today", cx: at(today), cy: 12, r: 6 })],
    svg("circle", { class: desired ? "marker yes" : "marker no", cx: at(value), cy: 12, r: 8 }));
}

/** From where to where scores are drawn: 0 to 1, if they lie there. */
function scoreEnds(scores, { low, high }) {
  const known = [...scores, low, high].filter((one) => typeof one === "number" && Number.isFinite(one));
  const [least, most] = [Math.min(...known), Math.max(...known)];
  if (least >= 0 && most <= 1) return { low: 0, high: 1 };
  const room = (most - least || 1) / 4;
  return { low: least - room, high: most + room };
}

/** Values of a feature at which its curve is drawn: evenly spaced, or all of its levels. */
export function curveValues(feature, most, ...values) {
  if (!isMeasured(feature)) return feature.levels.slice(0, most).map((level) => level.value);
  const { low, high } = axis(feature, ...values);
  const step = (high - low) / (most - 1);
  const places = Array.from({ length: most }, (_, at) => low + at * step);
  const whole = feature.type === "integer" || feature.type === "date";
  return [...new Set(places.map((at) => valueAt(feature, whole ? Math.round(at) : at)))];
}

/** How the score follows one feature, everything else as it is: a curve, or a list of levels. */
export function curve(feature, values, scores, own) {
  const { desired } = state.schema;
  if (!isMeasured(feature)) {
    return h("dl", { class: "curve" }, values.map((value, at) => [h("dt", {}, cell(feature, value)), h("dd", {}, score(scores[at]))]).flat());
  }
  const places = values.map((value) => position(feature, value));
  const [first, last] = [places[0], places.at(-1)];
  const { low, high } = scoreEnds(scores, desired);
  const [x, y] = [(at) => scale(at, first, last), (value) => 80 - scale(value, low, high) * (80 / WIDTH)];
  const level = (value) => (value === null || value <= low || value >= high ? null : svg("line", { class: "threshold", x1: 0, x2: WIDTH, y1: y(value), y2: y(value) }));
  const [least, most] = [Math.min(...scores), Math.max(...scores)];
  const words = say("curve_of", { name: title(feature), least: score(least), most: score(most) });
  const ownAt = position(feature, own);
  return h("figure", { class: "curve" },
    svg("svg", { viewBox: `-4 -4 ${WIDTH + 8} 88`, role: "img", "aria-label": words },
      svg("line", { class: "base", x1: 0, x2: WIDTH, y1: 80, y2: 80 }), level(desired.low), level(desired.high),
      ownAt === null ? null : svg("line", { class: "own", x1: x(ownAt), x2: x(ownAt), y1: 0, y2: 80 }),
      svg("polyline", { class: "line", points: places.map((at, i) => `${x(at).toFixed(1)},${y(scores[i]).toFixed(1)}`).join(" ") })),
    h("p", { class: "ends", "aria-hidden": "true" }, h("span", {}, cell(feature, values[0])), h("span", {}, cell(feature, values.at(-1)))),
    h("figcaption", {}, words, " ", say("curve_reading")));
}

const boxType = (feature) => (feature.type === "date" ? "date" : "number");
const boxStep = (feature, step) => (feature.type === "number" || feature.scale !== 1 ? "any" : step);

const unit = (feature) => (unitOf(feature) ? h("span", { class: "unit" }, unitOf(feature)) : null);

/** What the box of a number shows at a position. */
const boxText = (feature, at) =>
  feature.type === "date" ? valueAt(feature, at) : String(scaled(feature, valueAt(feature, at)));

/** The box of one number; `onvalue` gets a position on the axis. */
function box(feature, at, step, label, onvalue) {
  const field = h("input", { type: boxType(feature), step: boxStep(feature, step), "aria-label": label,
    value: boxText(feature, at), class: "box" });
  field.addEventListener("input", () => {
    const typed = position(feature, boxType(feature) === "date" ? field.value : unscaled(feature, field.valueAsNumber));
    if (typed !== null && Number.isFinite(typed)) onvalue(typed);
  });
  return field;
}

const slider = (feature, { low, high, step }, at, label, oninput) =>
  h("input", { type: "range", min: low, max: high, step, value: at, "aria-label": label, oninput,
    "aria-valuetext": cell(feature, valueAt(feature, at)) });

/**
 * Acceptable values: two thumbs. `onchange` gets {low, high}; null is no limit.
 */
export function rangeField(feature, own, wanted, onchange) {
  const ends = axis(feature, own, wanted.low, wanted.high);
  const near = ends.step / 2;
  const now = { low: position(feature, wanted.low) ?? ends.low, high: position(feature, wanted.high) ?? ends.high };
  const name = title(feature);
  const picture = h("div", { class: "behind" });
  const thumbs = {}, boxes = {};
  const show = (except) => {
    picture.replaceChildren(distribution(feature, ends, now.low, now.high));
    for (const side of ["low", "high"]) {
      thumbs[side].value = now[side];
      thumbs[side].setAttribute("aria-valuetext", cell(feature, valueAt(feature, now[side])));
      if (boxes[side] !== except) boxes[side].value = boxText(feature, now[side]);
    }
  };
  const move = (side, at, except = null) => {
    const other = side === "low" ? now.high : now.low;
    now[side] = side === "low" ? Math.min(at, other) : Math.max(at, other);
    show(except);
    onchange({
      low: now.low <= ends.low + near ? null : valueAt(feature, now.low),
      high: now.high >= ends.high - near ? null : valueAt(feature, now.high),
    });
  };
  for (const side of ["low", "high"]) {
    const label = say(side === "low" ? "lowest" : "highest", { name });
    thumbs[side] = slider(feature, ends, now[side], label, () => move(side, Number(thumbs[side].value)));
    boxes[side] = box(feature, now[side], ends.step, label, (at) => move(side, at, boxes[side]));
  }
  show(null);
  return h("div", { class: "range" },
    h("div", { class: "two" }, picture, thumbs.low, thumbs.high),
    h("div", { class: "boxes" }, boxes.low, h("span", { "aria-hidden": "true" }, "\u2013"), boxes.high,
      unit(feature)));
}

/**
 * One value to try: a thumb, and a box for "not stated" if that occurs. `onchange` gets the value.
 * A range of values that would do as well stands out.
 */
export function valueField(feature, value, own, onchange, range = null) {
  const ends = axis(feature, value, own);
  const at = position(feature, value) ?? ends.low;
  const label = title(feature);
  const thumb = slider(feature, ends, at, label, () => move(Number(thumb.value), thumb));
  const field = box(feature, at, ends.step, label, (typed) => move(typed, field));
  const none = feature.missing
    ? h("input", { type: "checkbox", onchange: () => (none.checked ? clear() : move(Number(thumb.value), none)) }) : null;
  const share = (one) => (ends.high === ends.low ? null : (100 * (one - ends.low)) / (ends.high - ends.low));
  const mark = h("span", { class: "own", "aria-hidden": "true" });
  const left = position(feature, own) === null ? null : share(position(feature, own));
  if (left === null) mark.hidden = true;
  else mark.style.left = `${left}%`;
  const [low, high] = [range?.low, range?.high].map((one) => position(feature, one));
  function move(to, from) {
    thumb.value = to;
    thumb.setAttribute("aria-valuetext", cell(feature, valueAt(feature, to)));
    if (from !== field) field.value = boxText(feature, to);
    if (none) none.checked = false;
    onchange(valueAt(feature, to));
  }
  function showNone() {
    field.value = "";
    thumb.setAttribute("aria-valuetext", say("not_stated"));
    if (none) none.checked = true;
  }
  function clear() {
    showNone();
    onchange(null);
  }
  if (value === null || value === undefined) showNone();
  return h("div", { class: "range" },
    h("div", { class: "two" }, h("div", { class: "behind" }, low === null || high === null ? distribution(feature, ends) : distribution(feature, ends, low, high)),
      h("div", { class: "marks" }, mark), thumb),
    h("div", { class: "boxes" }, field, unit(feature),
      none && h("label", { class: "tick" }, none, h("span", {}, say("not_stated")))));
}

/** A choice of levels, "not stated" among them if that occurs. */
export function levelField(feature, value, onchange, { id = newId("level"), empty = false, label = null } = {}) {
  const known = feature.levels ?? [{ value: true, label: "true" }, { value: false, label: "false" }];
  const options = known.map((level) => level.value);
  if (feature.missing || (value === null && !empty)) options.push(null);
  if (value !== null && value !== undefined && !options.includes(value)) options.unshift(value);
  const field = h("select", { id, "aria-label": label, onchange: () => onchange(options[Number(field.value)]) },
    empty ? h("option", { value: "" }, say("choose_one")) : null,
    options.map((level, at) => h("option", { value: String(at) }, cell(feature, level))));
  if (!empty) field.value = String(options.indexOf(value ?? null));
  else field.value = "";
  return field;
}

/** Acceptable values of a number that has words: from one level to another. `onchange` gets {low, high}. */
export function levelRange(feature, wanted, onchange) {
  const values = feature.levels.map((level) => level.value).sort((a, b) => a - b);
  const last = values.length - 1;
  const side = (chosen, key) => h("select", { "aria-label": say(key, { name: title(feature) }) },
    values.map((value, at) => h("option", { value: String(at), selected: value === chosen }, cell(feature, value))));
  const low = side(wanted.low ?? values[0], "lowest");
  const high = side(wanted.high ?? values[last], "highest");
  const gather = () => {
    const ends = [Number(low.value), Number(high.value)].sort((a, b) => a - b);
    onchange({ low: ends[0] === 0 ? null : values[ends[0]], high: ends[1] === last ? null : values[ends[1]] });
  };
  for (const one of [low, high]) one.addEventListener("change", gather);
  return h("div", { class: "field" }, low, high);
}

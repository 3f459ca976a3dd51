/** Sliders over the distribution of accepted people, each with boxes to type numbers in. */

import { h, newId } from "./dom.js";
import { distribution } from "./picture.js";
import { axis, position, scaled, unscaled, valueAt } from "./values.js";
import { cell, say, title, unitOf } from "./words.js";

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
export function rangeField(feature, own, wished, onchange) {
  const ends = axis(feature, own, wished.low, wished.high);
  const near = ends.step / 2;
  const now = { low: position(feature, wished.low) ?? ends.low, high: position(feature, wished.high) ?? ends.high };
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

/** One value to try: a thumb, and a box for "not stated" if that occurs. `onchange` gets the value. */
export function valueField(feature, value, own, onchange) {
  const ends = axis(feature, value, own);
  const at = position(feature, value) ?? ends.low;
  const label = title(feature);
  const thumb = slider(feature, ends, at, label, () => move(Number(thumb.value), thumb));
  const field = box(feature, at, ends.step, label, (typed) => move(typed, field));
  const none = feature.missing
    ? h("input", { type: "checkbox", onchange: () => (none.checked ? clear() : move(Number(thumb.value), none)) }) : null;
  const mark = h("span", { class: "own", "aria-hidden": "true" });
  const own_at = position(feature, own);
  if (own_at === null || ends.high === ends.low) mark.hidden = true;
  else mark.style.left = `${(100 * (own_at - ends.low)) / (ends.high - ends.low)}%`;
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
    h("div", { class: "two" }, h("div", { class: "behind" }, distribution(feature, ends)), h("div", { class: "marks" }, mark), thumb),
    h("div", { class: "boxes" }, field, unit(feature),
      none && h("label", { class: "tick" }, none, h("span", {}, say("not_stated")))));
}

/** A choice of levels, "not stated" among them if that occurs. */
export function levelField(feature, value, onchange, { id = newId("level"), empty = false, label = null } = {}) {
  const known = feature.levels ?? [{ value: true, label: "true" }, { value: false, label: "false" }];
  const options = known.map((level) => level.value);
  if (feature.missing || value === null) options.push(null);
  if (value !== null && value !== undefined && !options.includes(value)) options.unshift(value);
  const field = h("select", { id, "aria-label": label, onchange: () => onchange(options[Number(field.value)]) },
    empty ? h("option", { value: "" }, say("choose_one")) : null,
    options.map((level, at) => h("option", { value: String(at) }, cell(feature, level))));
  if (!empty) field.value = String(options.indexOf(value ?? null));
  else field.value = "";
  return field;
}

/** Acceptable values of a number that has words: from one level to another. `onchange` gets {low, high}. */
export function levelRange(feature, wished, onchange) {
  const values = feature.levels.map((level) => level.value).sort((a, b) => a - b);
  const last = values.length - 1;
  const side = (chosen, key) => h("select", { "aria-label": say(key, { name: title(feature) }) },
    values.map((value, at) => h("option", { value: String(at), selected: value === chosen }, cell(feature, value))));
  const low = side(wished.low ?? values[0], "lowest");
  const high = side(wished.high ?? values[last], "highest");
  const gather = () => {
    const ends = [Number(low.value), Number(high.value)].sort((a, b) => a - b);
    onchange({ low: ends[0] === 0 ? null : values[ends[0]], high: ends[1] === last ? null : values[ends[1]] });
  };
  for (const one of [low, high]) one.addEventListener("change", gather);
  return h("div", { class: "field" }, low, high);
}

/** The panel of wishes: for every feature whether it may change, how hard that is, and to what. */

import { button, choices, fill, h, newId } from "./dom.js";
import { levelRange, rangeField } from "./sliders.js";
import { canChange, features, on, state } from "./state.js";
import { MIDDLE, WEIGHTS, forgetWishes, rules, wish, wishMost, wishOf } from "./wishes.js";
import { capital, cell, number, say, title } from "./words.js";

const MAX_CHANGES = 4;

export function wishPanel() {
  const { shown } = state;
  const list = h("ul", { class: "wishes" });
  const most = h("div", {});
  const foot = h("p", { class: "held" });
  const reset = button("", forgetWishes, { class: "quiet" });
  const body = h("div", { class: "panel-body", id: "wishes" }, h("p", { class: "hint" }, say("wishes_hint")), most, list, foot);
  const fold = button("", () => unfold(fold.getAttribute("aria-expanded") !== "true"),
    { class: "fold", "aria-controls": "wishes", "aria-expanded": "false" });
  const panel = h("section", { class: "card panel", "aria-labelledby": "h-wishes" },
    h("div", { class: "panel-head" }, h("h2", { id: "h-wishes" }, say("h_wishes")), reset, fold), body);
  let rows = [];
  const unfold = (wanted) => {
    shown.unfolded = wanted;
    fold.setAttribute("aria-expanded", String(wanted));
    fold.textContent = say(wanted ? "hide" : "show");
    panel.classList.toggle("unfolded", wanted);
  };
  const tell = () => {
    const n = rules().length;
    reset.textContent = say("reset", { n: number(n) });
    reset.hidden = n === 0;
    for (const row of rows) row.refresh();
  };
  const draw = () => {
    fill(most, mostField());
    rows = features().filter(canChange).map((feature) => wishRow(feature, shown.open));
    fill(list, rows.map((row) => row.element));
    const held = features().filter((feature) => !canChange(feature)).map(title);
    foot.textContent = held.length ? say("held", { names: held.join(" · ") }) : "";
    tell();
  };
  unfold(shown.unfolded);
  draw();
  on("wishes", tell);
  on("lifted", draw);
  return panel;
}

function mostField() {
  const options = [[null, say("any_number")]];
  for (let n = 1; n <= MAX_CHANGES; n += 1) options.push([n, number(n)]);
  return choices(say("at_most_changes"), options, state.most, wishMost);
}

/** The row of one feature; its details are made when it is opened for the first time. */
function wishRow(feature, open) {
  const id = newId("wish");
  const tags = h("span", { class: "tags" });
  const body = h("div", { class: "wish-body", id, hidden: true });
  const toggle = h("button", { type: "button", class: "wish-name", "aria-controls": id, "aria-expanded": "false",
    onclick: () => unfold(body.hidden) },
    h("span", { class: "name" }, title(feature)),
    h("span", { class: "now" }, cell(feature, state.person.values[feature.name])), tags);
  const may = h("input", { type: "checkbox", role: "switch", checked: wishOf(feature.name).may,
    "aria-label": say("may_change", { name: title(feature) }),
    onchange: () => wish(feature.name, { may: may.checked }) });
  const unfold = (wanted) => {
    if (wanted && !body.childElementCount) fill(body, details(feature));
    body.hidden = !wanted;
    toggle.setAttribute("aria-expanded", String(wanted));
    open[wanted ? "add" : "delete"](feature.name);
  };
  const element = h("li", { class: "wish" },
    h("div", { class: "wish-head" }, toggle, h("label", { class: "switch", title: say("may_change_hint") }, may, h("span", {}))), body);
  const refresh = () => {
    const wished = wishOf(feature.name);
    may.checked = wished.may;
    element.classList.toggle("stays", !wished.may);
    body.inert = !wished.may;
    fill(tags, tagsOf(feature, wished).map((text) => h("span", { class: "tag" }, text)));
  };
  if (open.has(feature.name)) unfold(true);
  refresh();
  return { element, refresh };
}

function tagsOf(feature, { may, effort, low, high, levels, direction }) {
  if (!may) return [say("stays")];
  return [
    effort === MIDDLE ? null : say(`effort_${effort + 1}`),
    direction && say(direction),
    (low !== null || high !== null) && rangeText(feature, low, high),
    levels && say("n_values", { n: number(levels.length), all: number(feature.levels.length) }),
  ].filter(Boolean);
}

/** A range in words; null is no limit. */
export function rangeText(feature, low, high) {
  if (low === null) return say("at_most", { value: cell(feature, high) });
  if (high === null) return say("at_least", { value: cell(feature, low) });
  return say("from_to", { low: cell({ ...feature, unit: null }, low), high: cell(feature, high) });
}

function details(feature) {
  const wished = wishOf(feature.name);
  const own = state.person.values[feature.name];
  const change = (parts) => wish(feature.name, parts);
  const steps = WEIGHTS.map((_, at) => [at, say(`effort_${at + 1}`), capital(say(`effort_${at + 1}`))]);
  return [
    choices(say("how_hard"), steps, wished.effort, (effort) => change({ effort }), { look: "segments five" }),
    feature.kind === "numeric" || feature.ordered ? choices(say("direction"),
      [[null, say("either_way")], ["only_up", say("only_up")], ["only_down", say("only_down")]],
      wished.direction, (direction) => change({ direction })) : null,
    feature.kind === "numeric" ? h("div", { class: "field" }, h("p", { class: "legend" }, say("acceptable")),
      feature.levels ? levelRange(feature, wished, change) : rangeField(feature, own, wished, change)) : null,
    feature.levels && feature.kind === "categorical" ? levelBoxes(feature, own, wished.levels, change) : null,
  ];
}

/** Levels as check boxes; the person's own value needs none, since it may always stay. */
function levelBoxes(feature, own, allowed, change) {
  const boxes = feature.levels.filter((level) => level.value !== own).map((level) => {
    const box = h("input", { type: "checkbox", checked: !allowed || allowed.includes(level.value), onchange: () => gather() });
    return { level, box, label: h("label", { class: "tick" }, box, h("span", {}, cell(feature, level.value))) };
  });
  const gather = () => {
    const chosen = boxes.filter(({ box }) => box.checked).map(({ level }) => level.value);
    change({ levels: chosen.length === boxes.length ? null : chosen });
  };
  return h("fieldset", { class: "ticks" }, h("legend", {}, say("acceptable")),
    h("div", { class: "options" }, boxes.map(({ label }) => label)));
}

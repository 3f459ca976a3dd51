/** Plans that the reader keeps, side by side. */

import { announce, button, fill, h } from "./dom.js";
import { badge } from "./decision.js";
import { printPlan, receiptButton } from "./receipt.js";
import { sameRow } from "./session.js";
import { features, on, state, tell } from "./state.js";
import { sameCell } from "./values.js";
import { cell, number, percent, say, score, title } from "./words.js";

export const isKept = (row) => state.kept.some((one) => sameRow(one.row, row));

/** Keeps a plan: {name, row, changes, measures, rules, and text if there is one}. */
export function keep(plan) {
  if (!isKept(plan.row)) state.kept = [...state.kept, plan];
  tell("kept");
  announce(say("now_kept", { name: plan.name }));
}

export function unkeep(row) {
  state.kept = state.kept.filter((one) => !sameRow(one.row, row));
  tell("kept");
}

export function keptView() {
  const view = h("section", { class: "card kept", "aria-labelledby": "h-kept" });
  const draw = () => fill(view, h("h2", { id: "h-kept" }, say("h_kept")),
    state.kept.length ? comparison() : h("p", { class: "hint" }, say("nothing_kept")));
  on("kept", draw);
  on("decision", draw);
  draw();
  return view;
}

function comparison() {
  const { values } = state.person;
  const changed = features().filter(({ name }) => state.kept.some((plan) => !sameCell(plan.row[name], values[name])));
  const row = (name, own, of, kind = null) => h("tr", { class: kind },
    h("th", { scope: "row" }, name), h("td", { class: "own" }, own),
    state.kept.map((plan) => h("td", {}, of(plan))));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": "h-kept" }, h("table", { class: "compare" },
    h("thead", {}, h("tr", {}, h("td", {}), h("th", { scope: "col" }, say("now_title")),
      state.kept.map((plan) => h("th", { scope: "col" }, plan.name)))),
    h("tbody", {},
      row(say("decision"), state.decision?.desired === undefined ? "\u2013" : badge(state.decision.desired), (plan) => badge(plan.desired ?? true)),
      row(say("score"), score(state.decision?.score), (plan) => score(plan.measures.score)),
      row(say("changes"), "\u2013", (plan) => number(plan.changes.length)),
      row(say("plausibility"), "\u2013", (plan) => percent(plan.measures.plausibility), "last"),
      changed.map((feature) => row(title(feature), cell(feature, values[feature.name]), (plan) => after(feature, plan.row[feature.name], values[feature.name]))),
      h("tr", { class: "actions" }, h("td", {}), h("td", {}), state.kept.map((plan) => h("td", {}, actions(plan)))))));
}

const after = (feature, value, own) =>
  sameCell(value, own)
    ? h("span", { class: "same" }, say("same"))
    : h("strong", {}, cell(feature, value));

const actions = (plan) => h("div", { class: "stack" },
  button(say("print"), () => printPlan(plan), { "aria-label": `${say("print")}: ${plan.name}` }),
  plan.desired === false ? null : receiptButton(plan),
  button(say("unkeep"), () => unkeep(plan.row), { class: "quiet", "aria-label": `${say("unkeep")}: ${plan.name}` }));

/** A plan to take away: on paper, or as a receipt that can be checked. */

import { postForFile } from "./api.js";
import { announce, byId, button, fill, h, save } from "./dom.js";
import { features, state } from "./state.js";
import { capital, cell, moment, percent, reason, say, score, title } from "./words.js";

/** The button that saves a receipt. */
export function receiptButton({ row, name, rules }) {
  const made = button(say("receipt"), async () => {
    made.disabled = true;
    try {
      const request = { person: state.person.values, answer: row, rules: rules.map((rule) => rule.entry) };
      save("receipt.json", await postForFile("receipts", request));
      announce(say("receipt_saved"));
      made.textContent = say("receipt_saved");
    } catch (failure) {
      announce(reason(failure));
      made.after(h("p", { class: "failure", role: "alert" }, reason(failure)));
    }
    made.disabled = false;
  }, { "aria-label": `${say("receipt")}: ${name}` });
  return made;
}

/** Prints a plan on a sheet of its own. */
export function printPlan(plan) {
  const sheet = byId("sheet");
  fill(sheet, sheetOf(plan));
  sheet.hidden = false;
  document.body.classList.add("sheet-only");
  addEventListener("afterprint", () => {
    document.body.classList.remove("sheet-only");
    sheet.hidden = true;
    sheet.replaceChildren();
  }, { once: true });
  print();
}

function sheetOf({ name, text, changes, measures, row }) {
  const { schema, person, decision } = state;
  const changed = new Set(changes.map((change) => change.feature));
  const fact = (label, value) => [h("dt", {}, label), h("dd", {}, value)];
  return [
    h("h1", {}, schema.title || say("title")),
    h("p", { class: "lead" }, `${person.name} \u00b7 ${name}`),
    text ? h("p", { class: "sentence" }, text) : null,
    h("table", {}, h("caption", {}, say("sheet_caption")),
      h("thead", {}, h("tr", {}, ["feature", "now_title", "then_title"].map((key) => h("th", { scope: "col" }, say(key))))),
      h("tbody", {}, features().map((feature) => h("tr", { class: changed.has(feature.name) ? "changed" : null },
        h("th", { scope: "row" }, title(feature)), h("td", {}, cell(feature, person.values[feature.name])),
        h("td", {}, changed.has(feature.name) ? cell(feature, row[feature.name]) : say("same")))))),
    h("dl", {},
      fact(say("score"), `${score(decision?.score)} \u2192 ${score(measures.score)}`),
      fact(say("plausibility"), percent(measures.plausibility)),
      fact(say("time"), capital(moment(new Date()))),
      fact(say("fingerprint"), schema.fingerprint),
      fact(say("seed"), schema.seed),
      fact(say("version"), `mcce ${schema.version}`)),
    h("p", { class: "caution" }, say("caution")),
  ];
}

/** Plans as cards: what would change, in words, numbers and small pictures. */

import { announce, button, fill, h, newId } from "./dom.js";
import { badge } from "./decision.js";
import { isKept, keep, unkeep } from "./kept.js";
import { nothingView } from "./nothing.js";
import { rangeText } from "./panel.js";
import { canDraw, dumbbell } from "./picture.js";
import { printPlan, receiptButton } from "./receipt.js";
import { ask } from "./session.js";
import { featureOf, on, state } from "./state.js";
import { cell, count, listed, percent, reason, say, score, title } from "./words.js";

const MAX_OTHERS = 4;

export function plansView(tryByHand) {
  const status = h("p", { class: "found", role: "status" });
  const list = h("div", { class: "plans" });
  const view = h("section", { class: "results", "aria-labelledby": "h-plans" },
    h("div", { class: "results-head" }, h("h2", { id: "h-plans" }, say("h_plans")), status), list, glossary());
  let cards = [];
  const wait = () => {
    view.classList.toggle("waiting", Boolean(state.found?.waiting));
    if (state.found?.waiting && !cards.length) status.textContent = say("searching");
  };
  const show = () => {
    wait();
    const { record, failure, stopped } = state.found;
    cards = failure ? [] : record.counterfactuals.map((plan) => planCard(plan, tryByHand));
    status.textContent = failure ? "" : foundText(record, stopped);
    announce(status.textContent);
    fill(list, failure ? failed(failure) : instead(record), cards.map((card) => card.element));
  };
  on("waiting", wait);
  on("found", show);
  on("lifts", () => fill(list, instead(state.found.record)));
  on("kept", () => cards.forEach((card) => card.showKept()));
  if (state.found?.record || state.found?.failure) show();
  else wait();
  return view;
}

function foundText(record, stopped) {
  if (!record.counterfactuals.length) return "";
  return count("n_plans", record.counterfactuals.length) + (stopped ? ` ${say("stopped")}` : "");
}

const failed = (failure) => h("div", { class: "card failed" },
  h("p", { class: "failure", role: "alert" }, reason(failure)), button(say("ask_again"), () => ask(0), { class: "primary" }));

/** What stands in place of plans. */
function instead(record) {
  if (record.status === "no answer") return nothingView(state.found);
  if (record.counterfactuals.length) return null;
  return h("div", { class: "card calm" }, h("h3", {}, say("h_already")), h("p", {}, say("already_accepted")));
}

function planCard(plan, tryByHand) {
  const id = newId("plan");
  const name = say("plan", { rank: plan.rank });
  Object.assign(plan, { name, rules: state.found.rules });
  const changes = plan.changes.map((change) => changeItem(change, plan.ranges.find((one) => one.feature === change.feature)));
  const keeper = button("", () => (isKept(plan.row) ? unkeep(plan.row) : keep(plan)), { class: "primary" });
  const element = h("article", { class: "card plan", "aria-labelledby": id },
    h("header", {}, h("h3", { id }, name), facts(plan)),
    h("p", { class: "sentence" }, plan.text),
    h("ul", { class: "changes" }, changes),
    h("footer", {}, keeper,
      button(say("try"), () => tryByHand(plan.row)),
      button(say("print"), () => printPlan(plan)),
      receiptButton(plan)));
  const showKept = () => {
    keeper.textContent = say(isKept(plan.row) ? "unkeep" : "keep");
    keeper.setAttribute("aria-pressed", String(isKept(plan.row)));
  };
  showKept();
  return { element, showKept };
}

function facts({ measures, changes }) {
  const { plausibility, no_reference_group: alone, margin_word: word, survival } = measures;
  return h("ul", { class: "facts" },
    h("li", { class: "n" }, count("n_changes", changes.length)),
    h("li", {}, badge(true), h("span", {}, say("score_of", { score: score(measures.score) }))),
    word ? h("li", { class: word === "narrow" ? "warn" : null }, say(`margin_${word}`)) : null,
    typeof survival === "number" ? h("li", {}, say("lasts", { share: percent(survival) })) : null,
    typeof plausibility === "number"
      ? h("li", {}, meter(plausibility), h("span", {}, say("plausibility_of", { share: percent(plausibility) }))) : null,
    alone ? h("li", { class: "warn" }, say("no_reference_group")) : null);
}

/** Five dots; the number beside them says the same. */
function meter(share) {
  const full = Math.max(1, Math.ceil(5 * share));
  return h("span", { class: "meter", "aria-hidden": "true" },
    [1, 2, 3, 4, 5].map((at) => h("i", { class: at <= full ? "full" : null })));
}

function changeItem(change, range) {
  const feature = featureOf(change.feature);
  const [before, after] = [cell(feature, change.before), cell(feature, change.after)];
  const label = say("picture_of", { name: title(feature), before, after });
  return h("li", {},
    h("div", { class: "step" },
      h("h4", {}, title(feature)),
      h("p", { class: "way" }, h("span", { class: "old" }, h("span", { class: "unseen" }, say("now")), " ", before),
        h("span", { class: "arrow", "aria-hidden": "true" }, "\u2192"),
        h("span", { class: "unseen" }, say("then")), h("strong", {}, after)),
      change.kind === "action" ? null : h("p", { class: "follows" }, say("follows")),
      h("p", { class: "also" }, range ? alsoText(feature, range) : "")),
    h("div", { class: "picture" }, canDraw(feature) ? dumbbell(feature, change.before, change.after, range ?? null, label) : null));
}

/** Other values that would do as well, in words. */
function alsoText(feature, { kind, low, high, low_open: lowOpen, high_open: highOpen, others }) {
  if (kind !== "numeric") {
    if (!others?.length) return say("only_this");
    const names = others.slice(0, MAX_OTHERS).map((level) => cell(feature, level));
    const more = others.length - names.length;
    return say("also", { values: more ? `${names.join(", ")}, ${count("n_more", more)}` : listed(names) });
  }
  if (low === null || high === null || low === high) return say("only_this");
  if (lowOpen && highOpen) return say("any_value");
  return say("would_do", { range: rangeText(feature, lowOpen ? null : low, highOpen ? null : high) });
}

function glossary() {
  const terms = ["score", "plausibility", "would_do_term", "picture"];
  return h("details", { class: "glossary" }, h("summary", {}, say("h_reading")),
    h("dl", {}, terms.map((key) => [h("dt", {}, say(key)), h("dd", {}, say(`about_${key}`))]).flat()),
    h("p", {}, say("caution")));
}

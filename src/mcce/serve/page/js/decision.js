/** The decision on a row: a word, its score, and where that stands. */

import { fill, h } from "./dom.js";
import { gauge } from "./picture.js";
import { state } from "./state.js";
import { number, reason, say, score } from "./words.js";

export const badge = (desired) =>
  h("span", { class: desired ? "badge yes" : "badge no" }, say(desired ? "accepted" : "declined_word"));

/** What a score must be: "at least 0.7". */
function needed() {
  const { low, high } = state.schema.desired;
  if (low !== null && high !== null && high < 1) return say("needed_between", { low: number(low), high: number(high) });
  if (low !== null) return say("needed_least", { value: number(low) });
  return high === null ? null : say("needed_most", { value: number(high) });
}

/** A score with its picture. */
function scoreView(decision) {
  const { score: value, desired } = decision;
  const words = say(desired ? "score_accepted" : "score_declined", { score: score(value) });
  return [
    h("p", { class: "score" }, h("span", { class: "label" }, say("score")), h("strong", {}, score(value)), badge(desired)),
    gauge(decision, state.schema.desired, words),
    needed() ? h("p", { class: "needed" }, needed()) : null,
  ];
}

/** Shows a decision in an element: a score, a failure, or that it is not known yet. */
export function showDecision(element, decision) {
  element.classList.toggle("waiting", decision === null);
  if (decision === null) return fill(element, h("p", { class: "score" }, h("span", { class: "label" }, say("score")), h("strong", {}, "\u2026")));
  if (decision.failure) return fill(element, h("p", { class: "failure", role: "alert" }, reason(decision.failure)));
  return fill(element, scoreView(decision));
}

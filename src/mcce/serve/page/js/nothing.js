/** When there is no plan: why, and the smallest thing to lift. */

import { button, h } from "./dom.js";
import { featureOf, state } from "./state.js";
import { forgetWishes, lift } from "./wishes.js";
import { count, number, say, title } from "./words.js";

const MAX_LIFTS = 3;

export function nothingView({ record, rules, lifts, stopped }) {
  const limiting = rules.filter((rule) => rule.part !== "effort");
  return h("div", { class: "card nothing" },
    h("h3", {}, say(stopped ? "h_stopped" : "h_nothing")),
    stopped ? h("p", {}, say("stopped_hint")) : null,
    h("p", { class: "letter" }, record.letter),
    lifts === null ? h("p", { class: "coming busy" }, say("looking_lift")) : liftsView(rules, lifts),
    limiting.length > 1 ? h("p", {}, button(say("lift_all"), forgetWishes)) : null,
    record.reason ? h("details", {}, h("summary", {}, say("technical")), h("p", { class: "technical" }, record.reason)) : null);
}

function liftsView(rules, lifts) {
  const helpful = lifts.filter((one) => one.answered);
  const own = helpful.filter((one) => one.rule !== null).slice(0, MAX_LIFTS);
  const others = helpful.filter((one) => one.rule === null).slice(0, MAX_LIFTS);
  if (own.length) return [h("h4", {}, say("h_lift")), h("ul", { class: "lifts" }, own.map((one) => liftItem(one, rules[one.rule])))];
  return [
    rules.length && !others.length ? h("p", {}, say("none_alone")) : null,
    others.length
      ? h("div", { class: "lifts" }, h("p", {}, say("not_yours")), h("ul", {}, others.map((one) => h("li", {}, one.lifted)))) : null,
  ];
}

function liftItem({ sparsity }, rule) {
  return h("li", {},
    h("span", {}, h("strong", {}, liftText(rule)), " ", sparsity === null ? null : h("span", { class: "muted" }, count("gives", sparsity))),
    button(say("lift"), () => lift(rule), { class: "primary", "aria-label": `${say("lift")}: ${liftText(rule)}` }));
}

function liftText({ feature, part }) {
  if (part === "most") return say("lift_most", { n: number(state.most) });
  return say(`lift_${part}`, { name: title(featureOf(feature)) });
}

/** "What if": values by hand, and the score that follows while they are dragged. */

import { Following, post } from "./api.js";
import { announce, button, fill, h } from "./dom.js";
import { showDecision } from "./decision.js";
import { keep } from "./kept.js";
import { levelField, valueField } from "./sliders.js";
import { canChange, features, on, state } from "./state.js";
import { isMeasured, sameCell } from "./values.js";
import { cell, count, parse, say, score, title } from "./words.js";

// Screen readers hear a score when it has rested for a while.
const REST = 700;

export function whatIfView() {
  let row = { ...state.person.values };
  let decision = null;
  let kept = 0;
  const result = h("div", { class: "decision" });
  const note = h("p", { class: "note" });
  const [sliders, selects] = [h("div", { class: "tries" }), h("div", { class: "tries" })];
  const back = button(say("back_to_now"), () => start(state.person.values), { class: "quiet" });
  const keeper = button(say("keep"), () => keepRow(), { class: "primary" });
  let resting = 0;
  // What shows the values of features that follow from others, by name.
  const followers = new Map();
  const following = new Following(
    async (values) => {
      const scored = await post("score", { people: [values], person: state.person.values });
      return { score: scored.scores[0], desired: scored.desired[0], row: scored.people?.[0] };
    },
    (found) => {
      decision = found;
      if (found.row) showFollowing(found.row);
      show();
      clearTimeout(resting);
      if (!found.failure) resting = setTimeout(() => announce(say(found.desired ? "score_accepted" : "score_declined", { score: score(found.score) })), REST);
    });
  const changed = () => features().filter(({ name }) => !sameCell(row[name], state.person.values[name]));
  const show = () => {
    showDecision(result, decision);
    const n = changed().length;
    note.textContent = n ? count("n_tried", n) : say("nothing_tried");
    back.hidden = n === 0;
    keeper.hidden = n === 0 || !decision || Boolean(decision.failure);
  };
  const showFollowing = (completed) => {
    for (const [name, shown] of followers) {
      row = { ...row, [name]: completed[name] };
      shown(completed[name]);
    }
    state.shown.tried = row;
  };
  const set = (feature, value) => {
    row = { ...row, [feature.name]: value };
    state.shown.tried = row;
    show();
    following.push(row);
  };
  const start = (values) => {
    row = { ...values };
    state.shown.tried = row;
    const [measured, others] = [[], []];
    followers.clear();
    for (const feature of features().filter(canChange)) {
      const [element, showValue] = tryField(feature, row[feature.name], set);
      if (feature.follows) followers.set(feature.name, showValue);
      (isMeasured(feature) ? measured : others).push(element);
    }
    fill(sliders, measured);
    fill(selects, others);
    decision = changed().length ? decision : state.decision;
    show();
    if (changed().length) following.push(row);
  };
  const keepRow = () => {
    kept += 1;
    const changes = changed().map(({ name, follows }) => ({ feature: name, before: state.person.values[name], after: row[name], kind: follows ? "consequence" : "action" }));
    keep({ name: say("own_plan", { n: kept }), row, changes, rules: [], desired: decision.desired, measures: { score: decision.score } });
  };
  on("decision", () => changed().length === 0 && start(state.person.values));
  const view = h("section", { class: "whatif", "aria-labelledby": "h-whatif" },
    h("div", { class: "card follow" },
      h("div", { class: "follow-words" }, h("h2", { id: "h-whatif" }, say("h_whatif")), note,
        h("div", { class: "actions" }, keeper, back)), result),
    sliders, selects);
  start(state.shown.tried ?? state.person.values);
  return Object.assign(view, { start });
}

/** A field to try values in, and what shows a value in it; what follows from others is shown only. */
function tryField(feature, value, set) {
  const own = state.person.values[feature.name];
  const was = h("span", { class: "was" });
  const element = h("div", { class: "card try", role: "group", "aria-label": title(feature) });
  const followed = h("p", { class: "followed" });
  const show = (now) => {
    const differs = !sameCell(now, own);
    element.classList.toggle("changed", differs);
    was.textContent = differs ? say("was", { value: cell(feature, own) }) : "";
    if (feature.follows) fill(followed, h("strong", {}, cell(feature, now)), " ", h("span", { class: "follows" }, say("follows")));
  };
  const change = (now) => {
    show(now);
    set(feature, now);
  };
  fill(element, h("p", { class: "try-name" }, h("span", {}, title(feature)), was),
    feature.follows ? followed : fieldFor(feature, value, own, change));
  show(value);
  return [element, show];
}

function fieldFor(feature, value, own, change) {
  if (isMeasured(feature)) return valueField(feature, value, own, change);
  if (feature.levels || feature.type === "boolean") return levelField(feature, value, change, { label: title(feature) });
  const field = h("input", { type: "text", "aria-label": title(feature), value: value ?? "", oninput: () => change(parse(feature, field.value)) });
  return field;
}

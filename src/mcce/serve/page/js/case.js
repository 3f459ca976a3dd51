/**
 * The case of one person: the decision, plans that can be moved by hand, and preferences.
 *
 * Always true: a preference that says nothing makes no rule; a card shows one row, and its title, score,
 * print and receipt are of that row.
 */

import {
  Following, Latest, announce, bare, button, byId, canChange, capital, cell, choices, count, currentLanguage, featureOf,
  features, fill, h, isMeasured, listed, moment, newId, nothingShown, number, on, parse, percent, post, postForFile,
  rangeText, reason, sameCell, save, say, score, state, tell, title,
} from "./core.js";
import { curve, curveValues, gauge, levelField, levelRange, rangeField, valueField } from "./fields.js";

/* The case: who it is, what the service says, and what of it survives a reload. */

const DELAY = 150;
const scoring = new Latest();
const searching = new Latest();

/** Takes up the case of a person: {row, name, values}; `kept` is what the history knows of it. */
export function take(person, { decision = null, remembered = null } = {}) {
  const { preferences = [], most = null } = remembered ?? {};
  Object.assign(state, { person, decision, preferences: new Map(preferences), most, found: null, kept: [], shown: nothingShown() });
  // The way back leads to the list, and not away from the page.
  if (!remembered) history.pushState({}, "", person.row === null ? "#case" : `#case/${person.row}`);
  remember();
  // The service searches while the page is drawn.
  if (decision === null) decide();
  ask(0);
  tell("person");
}

/** Notes what a reload of the page needs; none of it goes to the service. */
function remember() {
  const { person, preferences, most } = state;
  history.replaceState({ person, preferences: [...preferences], most }, "");
}

export function leave() {
  scoring.cancel();
  searching.cancel();
  Object.assign(state, { person: null, decision: null, found: null, kept: [] });
  tell("person");
}

async function decide() {
  const people = [state.person.values];
  try {
    const scored = await scoring.run((signal) => post("score", { people }, signal));
    if (!scored) return;
    state.decision = { score: scored.scores[0], desired: scored.desired[0] };
  } catch (failure) {
    state.decision = { failure };
  }
  tell("decision");
}

/** Looks for plans that keep the preferences; earlier searches are given up. */
export async function ask(delay = DELAY) {
  const wanted = rules();
  state.found = { ...state.found, waiting: true };
  tell("waiting");
  const show = (found) => {
    state.found = { waiting: false, rules: wanted, failure: null, lifts: null, ...found };
    tell("found");
  };
  try {
    await searching.run(async (signal) => {
      const { request, answer } = await search(wanted, signal);
      if (signal.aborted) return;
      const record = answer.people[0];
      show({ record, stopped: answer.stopped });
      if (record.status === "no answer") await findLifts(request, signal);
    }, delay);
  } catch (failure) {
    show({ record: null, failure });
  }
}

/** Searches without what is very hard, and with it if nothing else works. */
async function search(wanted, signal) {
  const askFor = async (made) => {
    const request = { people: [state.person.values], rules: made.map((rule) => rule.entry), language: currentLanguage() };
    return { request, answer: await post("explain", { ...request, details: true }, signal) };
  };
  const spared = wanted.map((rule) => (isVeryHard(rule) ? { ...rule, entry: frozen(rule.feature) } : rule));
  const found = await askFor(spared);
  const isVain = found.answer.people[0].status === "no answer" && spared.some((rule, at) => rule !== wanted[at]);
  return isVain ? askFor(wanted) : found;
}

/** Adds what could be lifted for a person without a plan. */
async function findLifts(request, signal) {
  const relaxed = await post("relax", { person: request.people[0], rules: request.rules }, signal).catch(() => null);
  if (signal.aborted) return;
  state.found = { ...state.found, lifts: relaxed?.lifts ?? [] };
  tell("lifts");
}

/** `edit` opens the form with this person's values, `other` lets the reader choose somebody else. */
export function caseView(edit, other) {
  const result = h("div", { class: "decision", id: "decision" });
  const showResult = () => showDecision(result, state.decision);
  on("decision", showResult);
  showResult();
  on("preferences", () => {
    remember();
    ask();
  });
  return h("div", { class: "case" }, h("section", { class: "card hero", "aria-labelledby": "h-person" },
    h("div", { class: "who" },
      h("p", { class: "kicker" }, say("decision_on")),
      h("h1", { id: "h-person", tabindex: -1 }, state.person.name),
      h("div", { class: "actions" }, button(say("other_person"), other), button(say("edit"), edit))),
    result, values()),
  h("div", { class: "columns" }, h("div", { class: "main" }, plansView(), keptView()), preferencePanel()));
}

/** All that is known of the person, folded away. */
const values = () =>
  h("details", { class: "values" }, h("summary", {}, say("all_values")),
    h("dl", {}, features().map((feature) => h("div", {}, h("dt", { title: feature.help }, title(feature)), h("dd", {}, cell(feature, state.person.values[feature.name]))))));

/* Decisions. */

export const badge = (desired) =>
  h("span", { class: desired ? "badge yes" : "badge no" }, state.schema.decision[desired ? "yes" : "no"]);

const scoreWords = ({ score: value, desired }) => say("score_is", { score: score(value), decision: state.schema.decision[desired ? "yes" : "no"] });

/** Shows a decision in an element: a score, a failure, or that it is not known yet. */
function showDecision(element, decision) {
  element.classList.toggle("waiting", decision === null);
  if (decision?.failure) return fill(element, h("p", { class: "failure", role: "alert" }, reason(decision.failure)));
  const label = h("span", { class: "label" }, say("score"));
  if (decision === null) return fill(element, h("p", { class: "score" }, label, h("strong", {}, "\u2026")));
  return fill(element,
    h("p", { class: "score" }, label, h("strong", {}, score(decision.score)), badge(decision.desired)),
    gauge(decision, state.schema.desired, scoreWords(decision)),
    h("p", { class: "needed" }, state.schema.decision.rule));
}

/* Plans as cards: what to do, how sure it is, and sliders to move. */

function plansView() {
  const status = h("p", { class: "found", role: "status" });
  const list = h("div", { class: "plans" });
  const held = h("p", { class: "held" });
  const view = h("section", { class: "results", "aria-labelledby": "h-plans" },
    h("div", { class: "results-head" }, h("h2", { id: "h-plans" }, say("h_plans")), status), list, held, glossary());
  let cards = [];
  const wait = () => {
    view.classList.toggle("waiting", Boolean(state.found?.waiting));
    if (state.found?.waiting && !cards.length) status.textContent = say("searching");
  };
  const show = () => {
    wait();
    for (const card of cards) card.close();
    const { record, failure, stopped } = state.found;
    cards = failure ? [] : [...record.counterfactuals, null].map(planCard);
    status.textContent = failure ? "" : foundText(record, stopped);
    announce(status.textContent);
    fill(list, failure ? failed(failure) : instead(record), cards.map((card) => card.element));
    const fixed = features().filter((feature) => !canChange(feature) || !preferenceOf(feature.name).may);
    held.textContent = fixed.length ? say("held", { names: fixed.map(title).join(", ") }) : "";
  };
  on("waiting", wait);
  on("found", show);
  on("lifts", () => fill(list, instead(state.found.record), cards.map((card) => card.element)));
  on("kept", () => cards.forEach((card) => card.refresh()));
  on("decision", () => cards.forEach((card) => card.refresh()));
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

const changesOf = (row) => features()
  .filter(({ name }) => !sameCell(row[name], state.person.values[name]))
  .map(({ name, follows }) => ({ feature: name, before: state.person.values[name], after: row[name], kind: follows ? "consequence" : "action" }));

/** A plan whose values can be moved; without a plan, values of the reader's own. */
function planCard(plan) {
  const own = state.person.values;
  const name = plan ? say("plan", { rank: plan.rank }) : say("own_card");
  const undo = say(plan ? "back_to_plan" : "undo");
  const id = newId("plan");
  let row, decision, moved, fields;
  const heading = h("h3", { id });
  const kicker = h("span", { class: "kicker" });
  const verdict = h("span", { class: "verdict" });
  const [sure, picture, list] = [h("p", { class: "sure" }), h("div", { class: "now" }), h("div", { class: "changes" })];
  const adder = h("select", { class: "adder", "aria-label": `${say("add_change")}: ${name}`, onchange: () => addField(adder.value) });
  const [keeper, back] = [button("", () => toggleKept(), { class: "primary" }), button(undo, () => start(), { "aria-label": `${undo}: ${name}` })];
  const [actions, more] = [h("footer", {}), h("div", {})];

  const following = new Following(
    async (values) => {
      const scored = await post("score", { people: [values], person: own });
      return { score: scored.scores[0], desired: scored.desired[0], row: scored.people?.[0] };
    },
    (found) => {
      decision = found;
      for (const field of found.row ? fields : []) {
        if (!field.feature.follows) continue;
        row = { ...row, [field.feature.name]: found.row[field.feature.name] };
        field.show(row[field.feature.name]);
      }
      refresh();
      if (!found.failure) announce(scoreWords(found));
    });
  /** What is kept, printed and saved: the plan itself, or what it was moved to. */
  const current = () => (moved || !plan
    ? { name: say("own_plan", { n: state.kept.filter((one) => one.own).length + 1 }), own: true, row, changes: changesOf(row), rules: [], desired: decision?.desired, measures: { score: decision?.score } }
    : Object.assign(plan, { name, rules: plan.rules ?? state.found.rules }));
  const toggleKept = () => (isKept(row) ? unkeep(row) : keep(current()));
  const refresh = () => {
    if (!plan && !moved) decision = state.decision;
    const shown = moved || !plan ? changesOf(row).filter((change) => change.kind === "action") : plan.changes.filter((change) => change.kind === "action");
    const said = shown.length ? shown : changesOf(row);
    fill(heading, said.length ? said.map((change) => phrase(change, moved ? null : plan)) : say("own_card_title"));
    kicker.textContent = [moved || !plan ? say(plan ? "moved" : "own_card") : name, said.length > 1 ? say("together") : null].filter(Boolean).join(" \u00b7 ");
    fill(verdict, decision && !decision.failure && (plan || moved) ? badge(decision.desired) : null);
    fill(sure, moved || !plan ? null : sureWords(plan));
    fill(picture, decision?.failure ? h("p", { class: "failure", role: "alert" }, reason(decision.failure))
      : decision ? gauge(decision, state.schema.desired, scoreWords(decision), state.decision?.score) : null,
    decision && !decision.failure ? h("p", { class: "score-line" }, scoreWords(decision)) : null);
    more.hidden = moved;
    back.hidden = !moved;
    const known = Boolean(decision) && !decision.failure && said.length > 0;
    keeper.textContent = say(isKept(row) ? "unkeep" : "keep");
    keeper.setAttribute("aria-pressed", String(isKept(row)));
    keeper.setAttribute("aria-label", `${keeper.textContent}: ${name}`);
    fill(actions, known ? [keeper, button(say("print"), () => printPlan(current()), { "aria-label": `${say("print")}: ${name}` }), decision.desired ? receiptButton(current, name) : null] : null, back);
    fill(adder, h("option", { value: "" }, say("add_change")), features().filter((feature) => canChange(feature) && !feature.follows && !fields.some((field) => field.feature === feature))
      .map((feature) => h("option", { value: feature.name }, title(feature))));
    adder.hidden = adder.childElementCount < 2;
  };
  const set = (feature, value) => {
    row = { ...row, [feature.name]: value };
    moved = true;
    if (!plan) state.shown.tried = row;
    for (const field of fields) if (field.feature !== feature) field.fold();
    refresh();
    following.push(row);
  };
  const newField = (feature) => cardField(feature, () => row, plan?.ranges.find((one) => one.feature === feature.name), set);
  const addField = (wanted) => {
    fields = [...fields, newField(featureOf(wanted))];
    list.append(fields.at(-1).element);
    refresh();
    fields.at(-1).element.querySelector("input, select")?.focus();
  };
  const start = (tried = null) => {
    row = { ...(tried ?? plan?.row ?? own) };
    [moved, decision] = [Boolean(tried), plan ? { score: plan.measures.score, desired: true } : null];
    const names = plan ? plan.changes.map((change) => change.feature) : changesOf(row).map((change) => change.feature);
    // What follows from other values is shown, so that nobody is surprised.
    fields = features().filter((feature) => names.includes(feature.name) || (feature.follows && canChange(feature))).map(newField);
    fill(list, fields.map((field) => field.element));
    if (!plan && !tried) state.shown.tried = null;
    refresh();
    if (tried) following.push(row);
  };
  if (plan) fill(more, figures(plan));
  start(plan ? null : state.shown.tried);
  const isOpen = plan ? !matchMedia("(max-width: 40rem)").matches : moved || !state.found.record.counterfactuals.length;
  const element = h("details", { class: plan ? "card plan" : "card plan own-card", open: isOpen },
    h("summary", {}, kicker, heading, verdict),
    h("div", { class: "plan-body", role: "group", "aria-labelledby": id }, sure, picture, list, h("div", { class: "tools" }, actions, adder), more));
  return { element, refresh, close: () => following.close() };
}

/** What a change asks for: "Borrow at most 6,900 DM", and beneath it "instead of 9,271". */
function phrase(change, plan) {
  const feature = featureOf(change.feature);
  const after = (plan && choiceText(plan, change)) ?? cell(feature, change.after);
  const told = feature.action?.replace("{after}", () => after) ?? feature.levels?.find((level) => sameCell(level.value, change.after))?.action;
  const asked = told ?? `${title(feature)}: ${after}`;
  const before = isMeasured(feature) && change.before !== null
    ? say("instead_of", { before: bare(feature, change.before) }) : say("was", { value: cell(feature, change.before) });
  return h("span", { class: "act" }, asked, h("small", {}, before));
}

/** "At most 6,900 DM", of the one number that a plan leaves a choice of; other values may have other consequences. */
function choiceText({ changes, ranges }, change) {
  const ranged = ranges.filter((one) => one.low !== null && one.low !== undefined && !featureOf(one.feature).levels);
  const [range] = ranged;
  if (ranged.length !== 1 || range.feature !== change.feature || changes.some((one) => one.kind !== "action")) return null;
  const [isLow, isHigh] = [sameCell(change.after, range.low), sameCell(change.after, range.high)];
  if (isLow === isHigh) return null;
  return rangeText(featureOf(change.feature), isHigh && range.low_open ? null : range.low, isLow && range.high_open ? null : range.high);
}

const sureWords = ({ measures, usual }) => [
  measures.margin_word ? h("span", { class: measures.margin_word === "narrow" ? "warn" : null }, `${say("how_sure")}: ${say(`sure_${measures.margin_word}`)}`) : null,
  usual === "unknown" ? null : h("span", { class: usual === "rare" ? "warn" : null }, `${say("how_usual")}: ${say(`usual_${usual}`)}`),
];

/** The sentence of a letter and the figures behind the words, on demand. */
function figures(plan) {
  const { plausibility, no_reference_group: alone, survival } = plan.measures;
  const fact = (term, value) => [h("dt", {}, term), h("dd", {}, value)];
  const others = plan.ranges.map((range) => [featureOf(range.feature), range]).map(([feature, range]) => fact(title(feature), alsoText(feature, range)));
  return h("details", { class: "figures" }, h("summary", {}, say("figures"), h("span", { class: "unseen" }, `: ${plan.name ?? say("plan", { rank: plan.rank })}`)),
    h("p", { class: "sentence" }, plan.text),
    h("dl", {},
      typeof plausibility === "number" ? fact(say("how_usual"), say("usual_share", { share: percent(plausibility) })) : null,
      others.flat()),
    typeof survival === "number" ? h("p", {}, say("lasts", { share: percent(survival) })) : null,
    alone ? h("p", { class: "warn" }, say("no_reference_group")) : null);
}

/** Other values that would do as well, in words. */
function alsoText(feature, { kind, low, high, low_open: lowOpen, high_open: highOpen, others }) {
  if (kind !== "numeric") return others?.length ? say("also", { values: listed(others.map((level) => cell(feature, level))) }) : say("only_this");
  if (low === null || high === null || low === high) return say("only_this");
  if (lowOpen && highOpen) return say("any_value");
  return say("also", { values: rangeText(feature, lowOpen ? null : low, highOpen ? null : high) });
}

/** A field of a card: its value, levels that would do as well, and the curve of the score. */
function cardField(feature, row, range, set) {
  const own = state.person.values[feature.name];
  const holder = h("div", {});
  const change = (value) => {
    mark(value);
    set(feature, value);
  };
  const draw = (value) => fill(holder, feature.follows
    ? h("p", { class: "followed" }, h("strong", {}, cell(feature, value)), " ", h("span", { class: "follows" }, say("follows")))
    : chips.length ? null : inputFor(feature, value, own, change, range));
  const chips = (range?.others?.length ? [row()[feature.name], ...range.others] : []).map((level) =>
    ({ level, chip: button(cell(feature, level), () => change(level), { class: "chip" }) }));
  const mark = (value) => chips.forEach(({ level, chip }) => chip.setAttribute("aria-pressed", String(sameCell(level, value))));
  const box = feature.follows || state.schema.desired.labels || !(isMeasured(feature) || feature.levels) ? null : curveBox(feature, row);
  draw(row()[feature.name]);
  mark(row()[feature.name]);
  const element = h("div", { class: "change", role: "group", "aria-label": title(feature) },
    h("p", { class: "change-name", title: feature.help }, h("span", {}, title(feature)), h("span", { class: "was" }, say("was", { value: cell(feature, own) }))),
    chips.length ? h("div", { class: "chips", role: "group", "aria-label": say("any_of") }, h("span", { class: "legend" }, say("any_of")), chips.map(({ chip }) => chip)) : null,
    holder, box);
  return { feature, element, show: draw, fold: () => box && (box.open = false) };
}

function inputFor(feature, value, own, change, range) {
  if (isMeasured(feature)) return valueField(feature, value, own, change, range);
  if (feature.levels || feature.type === "boolean") return levelField(feature, value, change, { label: title(feature) });
  const field = h("input", { type: "text", "aria-label": title(feature), value: value ?? "", oninput: () => change(parse(feature, field.value)) });
  return field;
}

// Rows that one curve asks for.
const CURVE = 20;

/** How the score follows one feature, all else as in the card; asked for when it is opened. */
function curveBox(feature, row) {
  const holder = h("div", {});
  const box = h("details", { class: "curve-box", ontoggle: () => box.open && draw() },
    h("summary", {}, say("curve"), h("span", { class: "unseen" }, `: ${title(feature)}`)), holder);
  const draw = async () => {
    const [now, own] = [row(), state.person.values];
    const values = curveValues(feature, Math.min(CURVE, state.schema.limits.people), now[feature.name], own[feature.name]);
    try {
      const { scores } = await post("score", { people: values.map((value) => ({ ...now, [feature.name]: value })), person: own });
      fill(holder, curve(feature, values, scores, own[feature.name]));
    } catch (failure) {
      fill(holder, h("p", { class: "failure", role: "alert" }, reason(failure)));
    }
  };
  return box;
}

function glossary() {
  const terms = ["score", "how_sure", "how_usual", "slider"];
  return h("details", { class: "glossary" }, h("summary", {}, say("h_reading")),
    h("dl", {}, terms.map((key) => [h("dt", {}, say(key)), h("dd", {}, say(`about_${key}`))]).flat()),
    h("p", {}, say("caution")));
}

/* When there is no plan: why, and the smallest thing to drop. */

const MAX_LIFTS = 3;

function nothingView({ record, rules: asked, lifts, stopped }) {
  const limiting = asked.filter((rule) => rule.part !== "effort");
  return h("div", { class: "card nothing" },
    h("h3", {}, say(stopped ? "h_stopped" : "h_nothing")),
    stopped ? h("p", {}, say("stopped_hint")) : null,
    lifts === null ? h("p", { class: "coming busy" }, say("looking_lift")) : liftsView(asked, lifts),
    limiting.length > 1 ? h("p", {}, button(say("lift_all"), forgetPreferences)) : null,
    h("p", { class: "letter" }, record.letter),
    record.reason ? h("details", {}, h("summary", {}, say("technical")), h("p", { class: "technical" }, record.reason)) : null);
}

function liftsView(asked, lifts) {
  const helpful = lifts.filter((one) => one.answered);
  const own = helpful.filter((one) => one.rule !== null).slice(0, MAX_LIFTS);
  const others = helpful.filter((one) => one.rule === null).slice(0, MAX_LIFTS);
  if (own.length) return [h("h4", {}, say("h_lift")), h("ul", { class: "lifts" }, own.map((one) => liftItem(one, asked[one.rule])))];
  return [
    asked.length && !others.length ? h("p", {}, say("none_alone")) : null,
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

/* Plans that the reader keeps, side by side. */

const sameRow = (a, b) => Object.keys(a).every((name) => (a[name] ?? null) === (b[name] ?? null));
const isKept = (row) => state.kept.some((one) => sameRow(one.row, row));

/** Keeps a plan: {name, row, changes, measures, rules, and text if there is one}. */
function keep(plan) {
  state.kept = [...state.kept, plan];
  tell("kept");
  announce(say("now_kept", { name: plan.name }));
}

function unkeep(row) {
  state.kept = state.kept.filter((one) => !sameRow(one.row, row));
  tell("kept");
}

function keptView() {
  const view = h("section", { class: "card kept", "aria-labelledby": "h-kept" });
  const draw = () => {
    view.hidden = !state.kept.length;
    fill(view, h("h2", { id: "h-kept" }, say("h_kept")), state.kept.length ? comparison() : null);
  };
  on("kept", draw);
  on("decision", draw);
  draw();
  return view;
}

function comparison() {
  const own = state.person.values;
  const changed = features().filter(({ name }) => state.kept.some((plan) => !sameCell(plan.row[name], own[name])));
  const row = (name, now, of, kind = null) => h("tr", { class: kind },
    h("th", { scope: "row" }, name), h("td", { class: "own" }, now),
    state.kept.map((plan) => h("td", {}, of(plan))));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": "h-kept" }, h("table", { class: "compare" },
    h("thead", {}, h("tr", {}, h("td", {}), h("th", { scope: "col" }, say("now_title")),
      state.kept.map((plan) => h("th", { scope: "col" }, plan.name)))),
    h("tbody", {},
      row(say("decision"), state.decision?.desired === undefined ? "\u2013" : badge(state.decision.desired), (plan) => badge(plan.desired ?? true)),
      row(say("score"), score(state.decision?.score), (plan) => score(plan.measures.score), "last"),
      changed.map((feature) => row(title(feature), cell(feature, own[feature.name]), (plan) => after(feature, plan.row[feature.name], own[feature.name]))),
      h("tr", { class: "actions" }, h("td", {}), h("td", {}), state.kept.map((plan) => h("td", {}, keptActions(plan)))))));
}

const after = (feature, value, own) =>
  sameCell(value, own)
    ? h("span", { class: "same" }, say("same"))
    : h("strong", {}, cell(feature, value));

const keptActions = (plan) => {
  const name = `${plan.name} (${say("h_kept")})`;
  return h("div", { class: "stack" },
    button(say("print"), () => printPlan(plan), { "aria-label": `${say("print")}: ${name}` }),
    plan.desired === false ? null : receiptButton(() => plan, name),
    button(say("unkeep"), () => unkeep(plan.row), { class: "quiet", "aria-label": `${say("unkeep")}: ${name}` }));
};

/** The button that saves a receipt of the row that a card shows when it is pressed. */
function receiptButton(current, name) {
  const made = button(say("receipt"), async () => {
    made.disabled = true;
    const { row, rules: asked } = current();
    try {
      const request = { person: state.person.values, answer: row, rules: asked.map((rule) => rule.entry) };
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
function printPlan(plan) {
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

function sheetOf({ name, text, changes, measures, row, usual }) {
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
      measures.margin_word ? fact(say("how_sure"), say(`sure_${measures.margin_word}`)) : null,
      usual ? fact(say("how_usual"), say(`usual_${usual}`)) : null,
      fact(say("time"), capital(moment(new Date()))),
      fact(say("fingerprint"), schema.fingerprint),
      fact(say("seed"), schema.seed),
      fact(say("version"), `mcce ${schema.version}`)),
    h("p", { class: "caution" }, say("caution")),
  ];
}

/* Preferences: which features may change, how hard that is, to which values. */

/**
 * Weights of the five steps from very easy to very hard; the middle one is the default. A change of
 * a number may be a hundredth of its range, a change of a level is the whole of it: steps that
 * differ by less than ten would often make no difference.
 */
const WEIGHTS = [0.01, 0.1, 1, 10, 100];
const MIDDLE = 2;
const VERY_HARD = WEIGHTS.length - 1;
const MAX_CHANGES = 4;
const NOTHING = { may: true, effort: MIDDLE, low: null, high: null, levels: null, direction: null };

const preferenceOf = (name) => ({ ...NOTHING, ...state.preferences.get(name) });

/** Changes a preference and lets everybody know. */
function prefer(name, parts) {
  state.preferences.set(name, { ...preferenceOf(name), ...parts });
  tell("preferences");
}

function preferMost(most) {
  state.most = most;
  tell("preferences");
}

function forgetPreferences() {
  state.preferences = new Map();
  state.most = null;
  tell("lifted");
  tell("preferences");
}

/** Takes back what a rule says; the panel is drawn anew. */
function lift({ feature, part }) {
  const without = part === "range" ? { low: null, high: null } : { [part]: NOTHING[part] };
  if (part === "most") state.most = null;
  else state.preferences.set(feature, { ...preferenceOf(feature), ...without });
  tell("lifted");
  tell("preferences");
}

/**
 * The rules that the preferences stand for: each with its entry for the service, and the feature and
 * part of the preference that it came from.
 */
function rules() {
  const made = features().filter(canChange).flatMap(({ name }) => rulesOf(name));
  if (state.most !== null) made.push({ feature: null, part: "most", entry: { max_changes: { n: state.most } } });
  return made;
}

const isVeryHard = ({ feature, part }) => part === "effort" && preferenceOf(feature).effort === VERY_HARD;
const frozen = (name) => ({ frozen: { features: [name] } });

function rulesOf(name) {
  const { may, effort, low, high, levels, direction } = preferenceOf(name);
  const rule = (part, builder, more) => ({ feature: name, part, entry: { [builder]: { feature: name, ...more } } });
  // Of a feature that stays as it is, nothing else matters.
  if (!may) return [{ feature: name, part: "may", entry: frozen(name) }];
  return [
    direction && rule("direction", direction, {}),
    (low !== null || high !== null) && rule("range", "between", { low, high }),
    levels && rule("levels", "levels", { allowed: levels }),
    effort !== MIDDLE && rule("effort", "weight", { weight: WEIGHTS[effort] }),
  ].filter(Boolean);
}

function preferencePanel() {
  const { shown } = state;
  const list = h("ul", { class: "preferences" });
  const most = h("div", {});
  const reset = button("", forgetPreferences, { class: "quiet" });
  const body = h("div", { class: "panel-body", id: "preferences" }, h("p", { class: "hint" }, say("preferences_hint")), most, list);
  const fold = button("", () => unfold(fold.getAttribute("aria-expanded") !== "true"),
    { class: "fold", "aria-controls": "preferences", "aria-expanded": "false" });
  const panel = h("section", { class: "card panel", "aria-labelledby": "h-preferences" },
    h("div", { class: "panel-head" }, h("h2", { id: "h-preferences" }, say("h_preferences")), reset, fold), body);
  let rows = [];
  const unfold = (wanted) => {
    shown.unfolded = wanted;
    fold.setAttribute("aria-expanded", String(wanted));
    fold.textContent = say(wanted ? "hide" : "show");
    panel.classList.toggle("unfolded", wanted);
  };
  const refresh = () => {
    const n = rules().length;
    reset.textContent = say("reset", { n: number(n) });
    reset.hidden = n === 0;
    for (const row of rows) row.refresh();
  };
  const draw = () => {
    fill(most, mostField());
    rows = features().filter(canChange).map((feature) => preferenceRow(feature, shown.open));
    fill(list, rows.map((row) => row.element));
    refresh();
  };
  unfold(shown.unfolded);
  draw();
  on("preferences", refresh);
  on("lifted", draw);
  return panel;
}

function mostField() {
  const options = [[null, say("any_number")]];
  for (let n = 1; n <= MAX_CHANGES; n += 1) options.push([n, number(n)]);
  return choices(say("at_most_changes"), options, state.most, preferMost);
}

/** The row of one feature; its details are made when it is opened for the first time. */
function preferenceRow(feature, open) {
  const id = newId("preference");
  const tags = h("span", { class: "tags" });
  const body = h("div", { class: "preference-body", id, hidden: true });
  const toggle = h("button", { type: "button", class: "preference-name", "aria-controls": id, "aria-expanded": "false",
    onclick: () => unfold(body.hidden) },
    h("span", { class: "name" }, title(feature)),
    h("span", { class: "now" }, cell(feature, state.person.values[feature.name])), tags);
  const may = h("input", { type: "checkbox", role: "switch", checked: preferenceOf(feature.name).may,
    "aria-label": say("may_change", { name: title(feature) }),
    onchange: () => prefer(feature.name, { may: may.checked }) });
  const unfold = (wanted) => {
    if (wanted && !body.childElementCount) fill(body, preferenceFields(feature));
    body.hidden = !wanted;
    toggle.setAttribute("aria-expanded", String(wanted));
    open[wanted ? "add" : "delete"](feature.name);
  };
  const element = h("li", { class: "preference" },
    h("div", { class: "preference-head" }, toggle, h("label", { class: "switch", title: say("may_change_hint") }, may, h("span", {}))), body);
  const refresh = () => {
    const wanted = preferenceOf(feature.name);
    may.checked = wanted.may;
    element.classList.toggle("stays", !wanted.may);
    body.inert = !wanted.may;
    fill(tags, tagsOf(feature, wanted).map((text) => h("span", { class: "tag" }, text)));
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

function preferenceFields(feature) {
  const wanted = preferenceOf(feature.name);
  const own = state.person.values[feature.name];
  const change = (parts) => prefer(feature.name, parts);
  const steps = WEIGHTS.map((_, at) => [at, say(`effort_${at + 1}`), capital(say(`effort_${at + 1}`))]);
  return [
    feature.help ? h("p", { class: "hint" }, feature.help) : null,
    choices(say("how_hard"), steps, wanted.effort, (effort) => change({ effort }), { look: "segments five" }),
    feature.kind === "numeric" || feature.ordered ? choices(say("direction"),
      [[null, say("either_way")], ["only_up", say("only_up")], ["only_down", say("only_down")]],
      wanted.direction, (direction) => change({ direction })) : null,
    feature.kind === "numeric" ? h("div", { class: "field" }, h("p", { class: "legend" }, say("acceptable")),
      feature.levels ? levelRange(feature, wanted, change) : rangeField(feature, own, wanted, change)) : null,
    feature.levels && feature.kind === "categorical" ? levelBoxes(feature, own, wanted.levels, change) : null,
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

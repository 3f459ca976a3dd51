/**
 * One person's case: score, plans, and what to lift if there are none.
 *
 * `state.found` is null before the first answer, otherwise {waiting, record, rules, stopped,
 * failure, lifts}. Plans come with their sentences and ranges, and are shown as they came; what could
 * be lifted follows where there are none.
 */

import { Latest, post } from "./api.js";
import { nothingShown, state, tell } from "./state.js";
import { rules, sparing } from "./wishes.js";
import { currentLanguage } from "./words.js";

const DELAY = 150;
const CASE = "case";
const scoring = new Latest();
const searching = new Latest();

/** Takes up the case of a person: {row, name, values}; the decision is asked for if it is not known. */
export function take(person, decision = null) {
  // The way back leads to the list, and not away from the page.
  if (history.state !== CASE) history.pushState(CASE, "");
  Object.assign(state, { person, decision, wishes: new Map(), most: null, found: null, kept: [], shown: nothingShown() });
  // The service searches while the page is drawn.
  if (decision === null) decide();
  ask(0);
  tell("person");
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

/** Looks for plans that keep the wishes; earlier searches are given up. */
export async function ask(delay = DELAY) {
  const wished = rules();
  state.found = { ...state.found, waiting: true };
  tell("waiting");
  const show = (found) => {
    state.found = { waiting: false, rules: wished, failure: null, lifts: null, ...found };
    tell("found");
  };
  try {
    await searching.run(async (signal) => {
      const { request, answer } = await search(wished, signal);
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
async function search(wished, signal) {
  const askFor = async (made) => {
    const request = { people: [state.person.values], rules: made.map((rule) => rule.entry), language: currentLanguage() };
    return { request, answer: await post("explain", { ...request, details: true }, signal) };
  };
  const spared = sparing(wished);
  const found = await askFor(spared);
  const isVain = found.answer.people[0].status === "no answer" && spared.some((rule, at) => rule !== wished[at]);
  return isVain ? askFor(wished) : found;
}

/** Adds what could be lifted for a person without a plan. */
async function findLifts(request, signal) {
  const relaxed = await post("relax", { person: request.people[0], rules: request.rules }, signal).catch(() => null);
  if (signal.aborted) return;
  state.found = { ...state.found, lifts: relaxed?.lifts ?? [] };
  tell("lifts");
}

export const sameRow = (a, b) => Object.keys(a).every((name) => (a[name] ?? null) === (b[name] ?? null));

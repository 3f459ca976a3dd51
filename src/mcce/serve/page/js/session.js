/**
 * One person's case: score, plans, and what to lift if there are none.
 *
 * `state.found` is null before the first answer, otherwise {waiting, record, rules, detailed,
 * stopped, failure, lifts}. Plans are shown as soon as they are found; their sentences and ranges,
 * which take longer, follow.
 */

import { Latest, post } from "./api.js";
import { nothingShown, state, tell } from "./state.js";
import { rules, sparing } from "./wishes.js";
import { sameCell } from "./values.js";
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
      const { request, quick } = await search(wished, signal);
      if (signal.aborted) return;
      const record = quick.people[0];
      show({ record, stopped: quick.stopped, detailed: false });
      await finish(request, record, signal);
    }, delay);
  } catch (failure) {
    show({ record: null, failure });
  }
}

/** Searches without what is very hard, and with it if nothing else works. */
async function search(wished, signal) {
  const askFor = async (made) => {
    const request = { people: [state.person.values], rules: made.map((rule) => rule.entry), language: currentLanguage() };
    return { request, quick: await post("explain", { ...request, details: false }, signal) };
  };
  const spared = sparing(wished);
  const found = await askFor(spared);
  const isVain = found.quick.people[0].status === "no answer" && spared.some((rule, at) => rule !== wished[at]);
  return isVain ? askFor(wished) : found;
}

/** Adds what takes longer: sentences and ranges, or what could be lifted. */
async function finish(request, record, signal) {
  // Without these the plans are as good as before; a page full of them need not speak of it.
  const detailed = await post("explain", { ...request, details: true }, signal).catch(() => null);
  if (signal.aborted) return;
  if (detailed) addDetails(record, detailed.people[0]);
  state.found = { ...state.found, detailed: true };
  tell("details");
  if (record.status !== "no answer") return;
  const relaxed = await post("relax", { person: request.people[0], rules: request.rules }, signal).catch(() => null);
  if (signal.aborted) return;
  state.found = { ...state.found, lifts: relaxed?.lifts ?? [] };
  tell("details");
}

function addDetails(record, detailed) {
  record.letter = detailed.letter;
  for (const plan of record.counterfactuals) {
    const same = detailed.counterfactuals.find((one) => sameRow(one.row, plan.row));
    if (!same) continue;
    Object.assign(plan, { text: same.text, ranges: same.ranges, robustness: same.robustness });
    if (same.rounded) round(plan, same.rounded);
  }
}

/** The plan in round numbers, as its sentence has it. */
function round(plan, { row, score }) {
  const changes = plan.changes.map((change) => ({ ...change, after: row[change.feature] }));
  Object.assign(plan, { row, measures: { ...plan.measures, score },
    changes: changes.filter(({ before, after }) => !sameCell(before, after)) });
}

export const sameRow = (a, b) => Object.keys(a).every((name) => (a[name] ?? null) === (b[name] ?? null));

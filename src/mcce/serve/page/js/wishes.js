/**
 * What the reader wishes: which features may change, how hard that is, to which values.
 *
 * Always true: a wish that says nothing makes no rule, so that a page without wishes asks for what
 * the explainer was fitted for.
 */

import { state, tell, features, canChange } from "./state.js";

/**
 * Weights of the five steps from very easy to very hard; the middle one is the default. A change of
 * a number may be a hundredth of its range, a change of a level is the whole of it: steps that
 * differ by less than ten would often make no difference.
 */
export const WEIGHTS = [0.01, 0.1, 1, 10, 100];
export const MIDDLE = 2;
const VERY_HARD = WEIGHTS.length - 1;

const NOTHING = { may: true, effort: MIDDLE, low: null, high: null, levels: null, direction: null };

export const wishOf = (name) => ({ ...NOTHING, ...state.wishes.get(name) });

/** Changes a wish and lets everybody know. */
export function wish(name, parts) {
  state.wishes.set(name, { ...wishOf(name), ...parts });
  tell("wishes");
}

export function wishMost(most) {
  state.most = most;
  tell("wishes");
}

export function forgetWishes() {
  state.wishes = new Map();
  state.most = null;
  tell("lifted");
  tell("wishes");
}

/** Takes back what a rule says; the panel is drawn anew. */
export function lift({ feature, part }) {
  const without = part === "range" ? { low: null, high: null } : { [part]: NOTHING[part] };
  if (part === "most") state.most = null;
  else state.wishes.set(feature, { ...wishOf(feature), ...without });
  tell("lifted");
  tell("wishes");
}

/**
 * The rules that the wishes stand for: each with its entry for the service, and the feature and
 * part of the wish that it came from.
 */
export function rules() {
  const made = features().filter(canChange).flatMap(({ name }) => rulesOf(name));
  if (state.most !== null) made.push({ feature: null, part: "most", entry: { max_changes: { n: state.most } } });
  return made;
}

/** The rules with what is very hard left as it is: it should change only if nothing else works. */
export const sparing = (made) => made.map((rule) => (isVeryHard(rule) ? { ...rule, entry: frozen(rule.feature) } : rule));

const isVeryHard = ({ feature, part }) => part === "effort" && wishOf(feature).effort === VERY_HARD;
const frozen = (name) => ({ frozen: { features: [name] } });

function rulesOf(name) {
  const { may, effort, low, high, levels, direction } = wishOf(name);
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

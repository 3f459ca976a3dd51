/**
 * What the reader wishes: which features may change, how hard that is, to which values.
 *
 * Always true: a wish that says nothing makes no rule, so that a page without wishes asks for what
 * the explainer was fitted for.
 */

import { state, tell, features, canChange } from "./state.js";

/** Weights of the five steps from very easy to very hard; the middle one is the default. */
export const WEIGHTS = [0.1, 0.3, 1, 3, 10];
export const MIDDLE = 2;

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

function rulesOf(name) {
  const { may, effort, low, high, levels, direction } = wishOf(name);
  const rule = (part, builder, more) => ({ feature: name, part, entry: { [builder]: { feature: name, ...more } } });
  // Of a feature that stays as it is, nothing else matters.
  if (!may) return [{ feature: name, part: "may", entry: { frozen: { features: [name] } } }];
  return [
    direction && rule("direction", direction, {}),
    (low !== null || high !== null) && rule("range", "between", { low, high }),
    levels && rule("levels", "levels", { allowed: levels }),
    effort !== MIDDLE && rule("effort", "weight", { weight: WEIGHTS[effort] }),
  ].filter(Boolean);
}

/** What the page knows, and who wants to hear of changes. */

export const state = {
  schema: null,
  // Row (null if typed in), name and values by feature.
  person: null,
  // Score and whether it is desired, or null until they are known.
  decision: null,
  // What may change: by feature, see wishes.js; and at most how many changes (null: any number).
  wishes: new Map(),
  most: null,
  // What the service answered last, see session.js.
  found: null,
  // Plans of this person that the reader keeps, see kept.js.
  kept: [],
  // What the reader has open: a tab, the panel of wishes on a phone, rows of it, and a row tried by hand.
  shown: null,
};

export const nothingShown = () => ({ tab: "plans", unfolded: false, open: new Set(), tried: null });

const listeners = new Map();

/** Calls a function whenever a topic changes. */
export function on(topic, listener) {
  listeners.set(topic, [...(listeners.get(topic) ?? []), listener]);
}

export function tell(topic) {
  for (const listener of listeners.get(topic) ?? []) listener();
}

/** Forgets who listened; the page is drawn anew. */
export const forgetListeners = () => listeners.clear();

export const features = () => state.schema.features;
export const featureOf = (name) => features().find((one) => one.name === name);

/** Whether a feature can change at all; immutable ones and those that a rule freezes cannot. */
export const canChange = (feature) => !feature.immutable && !feature.frozen;

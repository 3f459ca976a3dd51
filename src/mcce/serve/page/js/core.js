/**
 * What all parts of the page share: elements, calls of the service, words, values and the state.
 *
 * Always true: what comes from data becomes text or the value of an attribute, never markup; an answer
 * that came too late, because a newer call was made in the meantime, is dropped.
 */

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes, listeners (onclick: function) and children; null is left out. */
export const h = (tag, attributes = {}, ...children) =>
  dress(document.createElement(tag), attributes, children);

/** The same for pictures. */
export const svg = (tag, attributes = {}, ...children) =>
  dress(document.createElementNS(SVG, tag), attributes, children);

function dress(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Replaces what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

let counted = 0;
/** An id that no other element has. */
export const newId = (stem) => `${stem}-${(counted += 1)}`;

/** Lets screen readers say something; the same words are said again if they come again. */
export function announce(text) {
  const said = byId("said");
  said.textContent = said.textContent === text ? `${text}\u00a0` : text;
}

export const button = (text, onclick, attributes = {}) =>
  h("button", { type: "button", onclick, ...attributes }, text);

/**
 * A row of choices of which one holds, as radio buttons.
 * `options` is a list of [value, text, hint]; `onchange` gets the value.
 */
export function choices(legend, options, chosen, onchange, { look = "segments", unseen = false } = {}) {
  const name = newId("choice");
  const one = ([value, text, hint]) =>
    h("label", { title: hint },
      h("input", { type: "radio", name, value: String(value), checked: value === chosen,
        onchange: () => onchange(value) }),
      h("span", {}, text));
  return h("fieldset", { class: look },
    h("legend", { class: unseen ? "unseen" : null }, legend),
    h("div", { class: "options" }, options.map(one)));
}

/** Tabs by the keyboard as readers of screens expect them: arrows, Home and End. */
export function tabs(label, entries, chosen, onchoose) {
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": label });
  const keys = { ArrowRight: 1, ArrowLeft: -1 };
  const move = (event, at) => {
    const last = entries.length - 1;
    const to = event.key === "Home" ? 0 : event.key === "End" ? last : at + (keys[event.key] ?? NaN);
    if (!(to >= 0 && to <= last)) return;
    event.preventDefault();
    onchoose(entries[to].key);
    list.children[to].focus();
  };
  entries.forEach(({ key, text, panel }, at) => list.append(
    h("button", { type: "button", role: "tab", id: `tab-${key}`, "aria-controls": panel,
      "aria-selected": String(key === chosen), tabindex: key === chosen ? 0 : -1,
      onclick: () => onchoose(key), onkeydown: (event) => move(event, at) }, text)));
  list.select = (wanted) => entries.forEach(({ key }, at) => {
    list.children[at].setAttribute("aria-selected", String(key === wanted));
    list.children[at].tabIndex = key === wanted ? 0 : -1;
  });
  return list;
}

/** Gives the reader a file. */
export function save(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = h("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

const TOKEN = "mcce.token";
let token = sessionStorage.getItem(TOKEN);
let askForToken = null;

/** What went wrong: a status (0: no connection), and details of the contract. */
export class Failure extends Error {
  constructor(status, details, wait = null) {
    super(details.map((one) => one.msg).join(" ") || String(status));
    this.status = status;
    this.details = details;
    this.wait = wait;
  }

  /** Messages of one field, by the last part of their place. */
  of(field) {
    return this.details.filter((one) => String(one.loc?.at(-1)) === field).map((one) => one.msg);
  }
}

/** `ask` is called when a token is missing or wrong; it resolves to a new one. */
export function onToken(ask) {
  askForToken = ask;
}

export const get = (path, signal) => call(path, { signal });

export const post = (path, body, signal, read = readJson) =>
  call(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  }, read);

/** The file that a call makes, byte for byte: a browser that read its JSON would round long numbers. */
export const postForFile = (path, body) => post(path, body, undefined, readFile);

export const upload = (path, form) => call(path, { method: "POST", body: form });

export const remove = (path) => call(path, { method: "DELETE" });

export const download = (path) => call(path, {}, readFile);

async function call(path, options, read = readJson) {
  const used = token;
  const headers = { ...options.headers };
  if (used) headers.Authorization = `Bearer ${used}`;
  const response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "same-origin" })
    .catch((error) => {
      throw error.name === "AbortError" ? error : new Failure(0, []);
    });
  if (response.status === 401) {
    await renew(used);
    return call(path, options, read);
  }
  if (!response.ok) throw await failure(response);
  return read(response);
}

const readJson = (response) => (response.status === 204 ? null : response.json());
const readFile = (response) => response.blob();

async function failure(response) {
  const content = await response.json().catch(() => null);
  const details = Array.isArray(content?.detail) ? content.detail : [];
  return new Failure(response.status, details, response.headers.get("Retry-After"));
}

let asking = null;
/** One question at a time, however many calls wait for the token. */
async function renew(used) {
  if (used !== token) return;
  asking ??= askForToken(Boolean(used)).finally(() => (asking = null));
  token = await asking;
  sessionStorage.setItem(TOKEN, token);
}

/** Runs only what was asked last: earlier calls are cancelled, and their answers dropped. */
export class Latest {
  constructor(delay = 0) {
    this.delay = delay;
    this.control = null;
  }

  cancel() {
    this.control?.abort();
    this.control = null;
  }

  /** What `work(signal)` gives, or undefined if something newer was asked. */
  async run(work, delay = this.delay) {
    this.cancel();
    const control = (this.control = new AbortController());
    if (delay) await new Promise((resolve) => setTimeout(resolve, delay));
    if (control.signal.aborted) return undefined;
    try {
      const result = await work(control.signal);
      return control.signal.aborted ? undefined : result;
    } catch (error) {
      if (control.signal.aborted) return undefined;
      throw error;
    }
  }
}

/** Works on the newest of many requests, one at a time: what follows a drag never falls behind. */
export class Following {
  constructor(work, onresult) {
    Object.assign(this, { work, onresult, next: null, busy: false, closed: false });
  }

  /** Asks for something; what waits is replaced. */
  async push(request) {
    this.next = { request };
    if (this.busy) return;
    this.busy = true;
    while (this.next && !this.closed) {
      const { request: newest } = this.next;
      this.next = null;
      const result = await this.work(newest).catch((failure) => ({ failure }));
      if (!this.closed && !this.next) this.onresult(result, newest);
    }
    this.busy = false;
  }

  close() {
    this.closed = true;
  }
}

const LANGUAGE = "mcce.language";
let words = {};
let language = "en";

export const chosenLanguage = () => localStorage.getItem(LANGUAGE);
export const currentLanguage = () => language;

/** Loads the words of a language. */
export async function speak(code) {
  words = await get(`messages/${encodeURIComponent(code)}`);
  language = code;
  document.documentElement.lang = code;
}

export const remember = (code) => localStorage.setItem(LANGUAGE, code);

/** A sentence with its placeholders replaced. */
export const say = (key, values = {}) =>
  (words[key] ?? key).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

/** A sentence about a number of things: the form of one, or of several. */
export const count = (key, n) => say(n === 1 ? `${key}_one` : key, { n: number(n) });

export const capital = (text) => text.charAt(0).toLocaleUpperCase(language) + text.slice(1);

const formats = new Map();
function format(options) {
  const key = `${language} ${JSON.stringify(options)}`;
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(language, options));
  return formats.get(key);
}

/** A number as it is, up to a number of decimal places. */
export const number = (value, places = 6, useGrouping = true) =>
  format({ maximumFractionDigits: places, useGrouping }).format(value).replace("-", "\u2212");

const decimalPoint = () => format({}).formatToParts(0.5).find((part) => part.type === "decimal").value;

/** A number to go on typing from: every digit, without groups. */
export const editable = (feature, value) => String(scaled(feature, value)).replace(".", decimalPoint());

/** What the reader typed as a cell: null if empty, the text itself if it is none. */
export function parse(feature, text) {
  const given = text.trim();
  if (given === "") return null;
  if (feature.type !== "integer" && feature.type !== "number") return given;
  const value = numberOf(given);
  return Number.isFinite(value) ? unscaled(feature, value) : given;
}

/** A number as it is written in this language: 1,200.5 or 1.200,5. A stray comma or point is a decimal one. */
function numberOf(text) {
  const close = text.replace(/[\s'\u2019]/g, "").replace("\u2212", "-");
  const group = decimalPoint() === "," ? "." : ",";
  const isGrouped = new RegExp(`^-?[1-9]\\d{0,2}([${group}]\\d{3})+([${decimalPoint()}]\\d*)?$`).test(close);
  return Number((isGrouped ? close.replaceAll(group, "") : close).replace(",", "."));
}

/** A score: three places tell it from the threshold beside it. */
export const score = (value) =>
  typeof value === "number"
    ? Math.abs(value) >= 100 ? number(value, 0) : format({ minimumFractionDigits: 3, maximumFractionDigits: 3 }).format(value).replace("-", "\u2212")
    : value === null || value === undefined ? "\u2013" : String(value);

export const percent = (share) =>
  typeof share === "number" ? `${number(Math.round(100 * share))}\u00a0%` : "\u2013";

/** The name of a feature, with a capital letter. */
export const title = (feature) => capital(feature.label || feature.name);

/** A cell in words: with its unit, the label of its level, or "not stated". */
export function cell(feature, value) {
  if (value === null || value === undefined) return say("not_stated");
  const level = feature.levels?.find((one) => one.value === value);
  if (level) return typeof level.value === "boolean" ? yesOrNo(level) : String(level.label);
  if (typeof value === "boolean") return say(value ? "yes" : "no");
  if (typeof value === "number") return withUnit(feature, value);
  return feature.type === "date" ? day(value) : String(value);
}

const yesOrNo = (level) =>
  String(level.label).toLowerCase() === String(level.value) ? say(level.value ? "yes" : "no") : level.label;

// Units are templates, such as "{number} months".
function withUnit(feature, value) {
  const shown = scaled(feature, value);
  const unit = feature.unit && shown === 1 ? feature.unit_one : feature.unit;
  return (unit ?? "{number}").replace("{number}", () => number(shown, 6, feature.grouping));
}

/** A number without its unit, beside one that has it. */
export const bare = (feature, value) => cell({ ...feature, unit: null }, value);

/** A range in words; null is no limit. */
export function rangeText(feature, low, high) {
  if (low === null) return say("at_most", { value: cell(feature, high) });
  if (high === null) return say("at_least", { value: cell(feature, low) });
  return say("from_to", { low: bare(feature, low), high: cell(feature, high) });
}

/** What stands after a number that is typed in a box. */
export const unitOf = (feature) => (feature.unit ?? "").replace("{number}", "").trim();

function day(value) {
  const date = new Date(`${String(value).slice(0, 10)}T00:00:00Z`);
  return Number.isNaN(date.getTime())
    ? String(value)
    : new Intl.DateTimeFormat(language, { dateStyle: "medium", timeZone: "UTC" }).format(date);
}

/** Texts in a row: a, b and c. */
export const listed = (texts) => new Intl.ListFormat(language, { type: "conjunction" }).format(texts);

export const moment = (date) =>
  new Intl.DateTimeFormat(language, { dateStyle: "long", timeStyle: "short" }).format(date);

/** Why a call failed, for the reader. */
export function reason(failure) {
  const known = { 0: "offline", 413: "too_large", 429: "busy", 502: "predictor_failed", 503: "not_ready", 504: "predictor_slow" };
  const sentence = say(`failed_${known[failure.status] ?? "otherwise"}`);
  return failure.message && failure.status ? `${sentence} ${failure.message}` : sentence;
}

const DAY = 86_400_000;

/** Whether a feature has an axis: a number or a date with known ends, unless it has words for its values. */
export const isMeasured = (feature) =>
  feature.kind === "numeric" && !feature.levels && feature.low !== null && feature.low !== undefined && position(feature, feature.low) !== null;

/** Where a value stands on the axis of its feature, or null. */
export function position(feature, value) {
  if (typeof value === "number") return value;
  if (value === null || value === undefined || feature.type !== "date") return null;
  const time = Date.parse(`${String(value).slice(0, 10)}T00:00:00Z`);
  return Number.isNaN(time) ? null : time / DAY;
}

/** The value at a position. */
export const valueAt = (feature, at) =>
  feature.type === "date" ? new Date(Math.round(at) * DAY).toISOString().slice(0, 10) : tidy(at);

// Sliders add steps up; 0.1 + 0.2 should read 0.3.
const tidy = (at) => Number(at.toPrecision(12));

/** A number as readers see it, such as 25 for 0.25 in percent, and back. */
export const scaled = (feature, value) => (feature.scale === 1 ? value : tidy(value * feature.scale));
export const unscaled = (feature, value) => (feature.scale === 1 ? value : tidy(value / feature.scale));

/** Ends of the axis, wide enough for some values, and its step. */
export function axis(feature, ...values) {
  const places = values.map((value) => position(feature, value)).filter((at) => at !== null);
  const low = Math.min(position(feature, feature.low), ...places);
  const high = Math.max(position(feature, feature.high), ...places);
  return { low, high, step: feature.type === "date" ? 1 : feature.step || stepFor(high - low, feature.type) };
}

function stepFor(width, type) {
  if (type === "integer" || !(width > 0)) return 1;
  return 10 ** Math.floor(Math.log10(width / 200));
}

export const sameCell = (a, b) => (a ?? null) === (b ?? null);

/** What the page knows. */
export const state = {
  schema: null,
  // Row (null if typed in), name and values by feature.
  person: null,
  // Score and whether it is desired, or null until they are known.
  decision: null,
  // What may change: by feature; and at most how many changes (null: any number).
  preferences: new Map(),
  most: null,
  // What the service answered last: {waiting, record, rules, stopped, failure, lifts}.
  found: null,
  // Plans of this person that the reader keeps.
  kept: [],
  // What the reader has open: the preferences on a phone, rows of them, and a row tried by hand.
  shown: null,
};

export const nothingShown = () => ({ unfolded: false, open: new Set(), tried: null });

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

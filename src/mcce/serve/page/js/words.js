/**
 * Words and numbers in the language of the reader.
 *
 * Sentences come from the message files of the service. What is inserted is never read as a template.
 */

import { get } from "./api.js";
import { scaled, unscaled } from "./values.js";

const KEY = "mcce.language";
let words = {};
let language = "en";

export const chosenLanguage = () => localStorage.getItem(KEY);
export const currentLanguage = () => language;

/** Loads the words of a language. */
export async function speak(code) {
  words = await get(`messages/${encodeURIComponent(code)}`);
  language = code;
  document.documentElement.lang = code;
}

export const remember = (code) => localStorage.setItem(KEY, code);

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
const withUnit = (feature, value) => (feature.unit ?? "{number}").replace("{number}", () => number(scaled(feature, value), 6, feature.grouping));

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

/** A person typed in: a form made from the schema, with errors beside their fields. */

import { Failure, post } from "./api.js";
import { button, fill, h, newId } from "./dom.js";
import { levelField } from "./sliders.js";
import { features } from "./state.js";
import { cell, editable, parse, reason, say, title, unitOf } from "./words.js";

const TYPES = { date: "date", integer: "text", number: "text" };
const MAX_OPTIONS = 200;

/** `onperson` gets the person once the service has accepted every cell. */
export function personForm(start, onperson) {
  const name = h("input", { type: "text", id: "person-name", value: start?.name ?? "", autocomplete: "off", placeholder: say("somebody") });
  const problem = h("div", {});
  const fields = features().map((feature) => formField(feature, start?.values));
  const submit = h("button", { type: "submit", class: "primary" }, say("show_decision"));
  const send = async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(fields.map((field) => [field.feature.name, field.read()]));
    fill(problem);
    const empty = fields.filter((field) => field.show(isEmpty(field.feature, values) ? [say("fill_in")] : []));
    if (empty.length) return showProblem(empty, problem);
    submit.disabled = true;
    try {
      await post("score", { people: [values] });
      onperson({ row: null, name: name.value.trim() || say("somebody"), values });
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      showErrors(failure, fields, problem);
    } finally {
      submit.disabled = false;
    }
  };
  return h("form", { class: "person-form", novalidate: true, onsubmit: send },
    h("div", { class: "field" }, h("label", { for: "person-name" }, say("name")), name),
    h("div", { class: "grid" }, fields.map((field) => field.element)),
    problem,
    h("p", { class: "actions" }, submit, button(say("clear"), () => fields.forEach((field) => field.clear()), { class: "quiet" })));
}

const isEmpty = (feature, values) => values[feature.name] === null && !feature.missing;

function showErrors(failure, fields, problem) {
  const wrong = fields.filter((field) => field.show(failure.of(field.feature.name)));
  if (wrong.length) showProblem(wrong, problem);
  else fill(problem, h("p", { class: "failure", role: "alert" }, reason(failure)));
}

function showProblem(wrong, problem) {
  fill(problem, h("p", { class: "failure", role: "alert" }, say("check_fields", { n: String(wrong.length) })));
  wrong[0].focus();
}

function formField(feature, values) {
  const id = newId("field");
  const error = h("p", { class: "error", id: `${id}-error` });
  const chosen = feature.levels ? feature.levels.length <= MAX_OPTIONS : feature.type === "boolean";
  const control = chosen ? levelControl(feature, values, id) : textControl(feature, values, id);
  const show = (messages) => {
    error.textContent = messages.join(" ");
    control.input.setAttribute("aria-invalid", String(messages.length > 0));
    return messages.length > 0;
  };
  control.input.setAttribute("aria-describedby", `${id}-error`);
  const unit = unitOf(feature);
  const element = h("div", { class: "field" },
    h("label", { for: id }, title(feature), unit && !chosen ? h("span", { class: "unit" }, ` (${unit})`) : null), control.input, control.list, error);
  return { feature, element, show, read: control.read, focus: () => control.input.focus(), clear: () => { control.clear(); show([]); } };
}

function levelControl(feature, values, id) {
  let value = values ? values[feature.name] ?? null : null;
  const input = levelField(feature, value, (now) => (value = now), { id, empty: !values });
  return { input, read: () => value, clear: () => { value = null; input.value = ""; } };
}

function textControl(feature, values, id) {
  const numeric = feature.type === "integer" || feature.type === "number";
  const own = values?.[feature.name];
  const hint = feature.low === null || feature.low === undefined ? null
    : say("from_to", { low: cell({ ...feature, unit: null }, feature.low), high: cell({ ...feature, unit: null }, feature.high) });
  const list = feature.levels ? h("datalist", { id: `${id}-list` }, feature.levels.map((level) => h("option", { value: level.value }))) : null;
  const input = h("input", { type: TYPES[feature.type] ?? "text", id, autocomplete: "off", placeholder: hint,
    inputmode: numeric ? "decimal" : null, list: list ? list.id : null, value: numeric && typeof own === "number" ? editable(feature, own) : String(own ?? "") });
  return { input, list, read: () => parse(feature, input.value), clear: () => (input.value = "") };
}

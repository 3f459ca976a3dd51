/** The page: loads words and schema, draws what was chosen; the list of people, the form, many people at once. */

import {
  Failure, Latest, announce, bare, button, byId, capital, cell, chosenLanguage, count, currentLanguage, download, editable,
  features, fill, forgetListeners, get, h, newId, number, on, onToken, parse, percent, post, reason, remember, remove,
  save, say, score, speak, state, tabs, title, unitOf, upload,
} from "./core.js";
import { ask, badge, caseView, leave, take } from "./case.js";
import { levelField } from "./fields.js";

const NAMES = { de: "Deutsch", en: "English", nb: "Norsk" };
let place = "one";
let typing = null;

async function start() {
  onToken(askForToken);
  const browsers = navigator.languages.map((code) => code.slice(0, 2).replace("no", "nb"));
  await speak([chosenLanguage(), ...browsers, "en"].find((code) => code in NAMES));
  await load();
  const { languages } = state.schema;
  const wanted = [currentLanguage(), ...browsers, languages[0]].find((code) => languages.includes(code));
  if (wanted !== currentLanguage()) await speakAs(wanted);
  await open();
  draw();
}

/** Opens the case that the address names, or that the reader had open. */
async function open() {
  const remembered = history.state?.person ? history.state : null;
  const [, row] = /^#case\/(\d+)$/.exec(location.hash) ?? [];
  if (!remembered && row === undefined) return;
  const person = remembered?.person ?? await personOf(row).catch(() => null);
  if (person) take(person, { remembered: remembered ?? {} });
}

async function personOf(row) {
  const { name, person } = await get(`people/${row}`);
  return { row: Number(row), name, values: person };
}

const load = async () => (state.schema = await get(`schema?language=${encodeURIComponent(currentLanguage())}`));

async function speakAs(code) {
  await speak(code);
  await load();
}

async function changeLanguage(code) {
  remember(code);
  await speakAs(code);
  draw();
  if (state.person) ask(0);
  byId("language").focus();
}

/** Draws everything anew; what the reader chose is in the state. */
function draw() {
  forgetListeners();
  document.title = state.schema.title || say("title");
  on("person", () => {
    draw();
    scrollTo({ top: 0 });
    byId(state.person ? "h-person" : "h-choose").focus();
  });
  const view = place === "one" ? oneView() : manyView();
  fill(byId("app"), header(), h("main", { id: "main", tabindex: -1 }, view), footer());
}

function header() {
  const go = (to) => (event) => {
    event.preventDefault();
    place = to;
    draw();
    byId("main").focus();
  };
  const link = (to, text) => h("a", { href: `#${to}`, onclick: go(to), "aria-current": place === to ? "page" : null }, text);
  const language = h("select", { id: "language", "aria-label": say("language"), onchange: () => changeLanguage(language.value).catch(fail) },
    state.schema.languages.map((code) => h("option", { value: code, lang: code }, NAMES[code] ?? code)));
  language.value = currentLanguage();
  language.hidden = state.schema.languages.length < 2;
  return h("header", { class: "top" }, h("div", { class: "top-in" },
    h("a", { class: "skip", href: "#main" }, say("skip")),
    h("p", { class: "brand" }, h("span", { class: "dot", "aria-hidden": "true" }), state.schema.title || say("title")),
    h("nav", { "aria-label": say("views") }, link("one", say("one_person")), link("many", say("many_people"))), language));
}

const footer = () => h("footer", { class: "bottom" }, h("p", {}, say("made_by", { version: state.schema.version, fingerprint: String(state.schema.fingerprint).slice(0, 12) })));

function oneView() {
  if (!state.person) return chooseView();
  return caseView(() => { typing = state.person; back(); }, back);
}

/** Back to the list; a reload stays there. */
function back() {
  history.pushState({}, "", location.pathname);
  leave();
}

function chooseView() {
  const list = state.schema.people ? peopleList(choose) : null;
  const form = personForm(typing, (person) => { typing = null; take(person); });
  const heading = h("div", { class: "intro" }, h("h1", { id: "h-choose", tabindex: -1 }, say("h_choose")), h("p", { class: "lead" }, say("lead")));
  if (!list) return h("div", { class: "choose" }, heading, h("section", { class: "card", "aria-labelledby": "h-choose" }, form));
  const panels = { list, form };
  const entries = ["list", "form"].map((key) => ({ key, text: say(`tab_${key}`), panel: `panel-${key}` }));
  const show = (wanted) => {
    bar.select(wanted);
    for (const key of Object.keys(panels)) holders[key].hidden = key !== wanted;
  };
  const bar = tabs(say("h_choose"), entries, "list", show);
  const holders = Object.fromEntries(entries.map(({ key, panel }) =>
    [key, h("div", { class: "card", role: "tabpanel", id: panel, "aria-labelledby": `tab-${key}` }, panels[key])]));
  show(typing ? "form" : "list");
  return h("div", { class: "choose" }, heading, bar, Object.values(holders));
}

async function choose({ row, score: value, desired }) {
  try {
    take(await personOf(row), { decision: { score: value, desired } });
  } catch (failure) {
    announce(reason(failure));
  }
}

function fail(failure) {
  fill(byId("app"), h("main", { class: "gate" }, h("p", { class: "card failure", role: "alert" }, reason(failure))));
}

addEventListener("popstate", () => {
  place = "one";
  if (history.state?.person || location.hash.startsWith("#case/")) open();
  else if (state.person) leave();
});
start().catch(fail);

const ROW = 56;
const BLOCK = 50;
const MARGIN = 6;

function peopleList(onchoose) {
  const found = h("p", { class: "found", role: "status" });
  const space = h("div", { class: "space", role: "presentation" });
  const list = h("div", { class: "people", role: "listbox", id: "people", tabindex: 0, "aria-label": say("people") }, space);
  const search = h("input", { type: "search", id: "search", autocomplete: "off", spellcheck: "false", role: "combobox",
    "aria-controls": "people", "aria-expanded": "true", "aria-autocomplete": "list", placeholder: say("search_hint") });
  const searching = new Latest(120);
  let blocks = new Map(), n = 0, active = 0, query = "";

  const load = async (block) => {
    if (blocks.has(block)) return;
    blocks.set(block, null);
    const [asked, kept] = [query, blocks];
    try {
      const answer = await fetchBlock(asked, block);
      kept.set(block, answer.people);
      if (kept === blocks) draw();
    } catch (failure) {
      kept.delete(block);
      found.textContent = reason(failure);
    }
  };
  const at = (place) => blocks.get(Math.floor(place / BLOCK))?.[place % BLOCK] ?? null;
  const draw = () => {
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - MARGIN);
    const last = Math.min(n, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + MARGIN);
    const places = Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i);
    space.style.height = `${n * ROW}px`;
    for (const block of new Set(places.map((place) => Math.floor(place / BLOCK)))) load(block);
    fill(space, places.map((place) => option(at(place), place)));
    for (const control of [search, list]) {
      if (n) control.setAttribute("aria-activedescendant", `person-${active}`);
      else control.removeAttribute("aria-activedescendant");
    }
  };
  const option = (person, place) => {
    const row = h("div", { class: place === active ? "person active" : "person", role: "option", id: `person-${place}`,
      "aria-selected": String(place === active), "aria-setsize": n, "aria-posinset": place + 1,
      onclick: () => person && onchoose(person) },
      person ? [h("span", { class: "who" }, person.name), h("span", { class: "of" }, score(person.score)), badge(person.desired)]
        : h("span", { class: "who coming" }, "\u2026"));
    row.style.top = `${place * ROW}px`;
    return row;
  };
  const look = async (delay) => {
    query = search.value.trim();
    try {
      const answer = await searching.run((signal) => fetchBlock(query, 0, signal), delay);
      if (!answer) return;
      [blocks, n, active] = [new Map([[0, answer.people]]), answer.n_found, 0];
      list.scrollTop = 0;
      found.textContent = n === answer.n_people ? count("n_people", n) : say("n_found", { n: number(n), all: number(answer.n_people) });
      announce(found.textContent);
      draw();
    } catch (failure) {
      found.textContent = reason(failure);
    }
  };
  const move = (to) => {
    active = Math.min(n - 1, Math.max(0, to));
    if (active * ROW < list.scrollTop) list.scrollTop = active * ROW;
    else if ((active + 1) * ROW > list.scrollTop + list.clientHeight) list.scrollTop = (active + 1) * ROW - list.clientHeight;
    draw();
  };
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
  const press = (event) => {
    if (event.key in steps) {
      event.preventDefault();
      move(active + steps[event.key]);
    } else if (event.key === "Enter" && at(active)) {
      event.preventDefault();
      onchoose(at(active));
    }
  };
  search.addEventListener("keydown", press);
  list.addEventListener("keydown", press);
  search.addEventListener("input", () => look());
  list.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(draw).observe(list);
  look(0);
  return h("div", { class: "chooser" },
    h("div", { class: "field" }, h("label", { for: "search" }, say("search")), search), found, list);
}

const fetchBlock = (query, block, signal) =>
  get(`people?query=${encodeURIComponent(query)}&offset=${block * BLOCK}&limit=${BLOCK}`, signal);

const TYPES = { date: "date", integer: "text", number: "text" };
const MAX_OPTIONS = 200;

/** `onperson` gets the person once the service has accepted every cell. */
function personForm(start, onperson) {
  const name = h("input", { type: "text", id: "person-name", value: start?.name ?? "", autocomplete: "off", placeholder: say("somebody") });
  const problem = h("div", {});
  const fields = features().map((feature) => formField(feature, start?.values));
  const submit = h("button", { type: "submit", class: "primary" }, say("show_decision"));
  const send = async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(fields.map((field) => [field.feature.name, field.read()]));
    fill(problem);
    const wrong = fields.filter((field) => field.show(faultsOf(field.feature, values[field.feature.name])));
    if (wrong.length) return showProblem(wrong, problem);
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

/** What no person can have here; the service would refuse it too. */
function faultsOf(feature, value) {
  if (value === null) return feature.missing ? [] : [say("fill_in")];
  if (feature.type !== "integer" && feature.type !== "number") return [];
  if (typeof value !== "number" || (feature.type === "integer" && !Number.isInteger(value))) return [say(`need_${feature.type}`, { value: String(value) })];
  const [least, most] = feature.ends ?? [-Infinity, Infinity];
  if (value < least) return [say("need_least", { value: cell(feature, least) })];
  return value > most ? [say("need_most", { value: cell(feature, most) })] : [];
}

/** What is possible, but not in the training data: plans for such people are less sure. */
function unusual(feature, value) {
  if (typeof value !== "number" || typeof feature.low !== "number" || faultsOf(feature, value).length) return "";
  return value < feature.low || value > feature.high ? say("unusual", { low: bare(feature, feature.low), high: cell(feature, feature.high) }) : "";
}

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
  const note = h("p", { class: "hint", id: `${id}-note` }, feature.help);
  const noting = () => {
    const text = unusual(feature, control.read());
    note.textContent = text || (feature.help ?? "");
    note.classList.toggle("soft", Boolean(text));
  };
  control.input.addEventListener("input", noting);
  const show = (messages) => {
    error.textContent = messages.join(" ");
    control.input.setAttribute("aria-invalid", String(messages.length > 0));
    return messages.length > 0;
  };
  control.input.setAttribute("aria-describedby", `${id}-error ${id}-note`);
  if (values) noting();
  const unit = unitOf(feature);
  const element = h("div", { class: "field" },
    h("label", { for: id }, title(feature), unit && !chosen ? h("span", { class: "unit" }, ` (${unit})`) : null), control.input, control.list, error, note);
  return { feature, element, show, read: control.read, focus: () => control.input.focus(), clear: () => { control.clear(); show([]); noting(); } };
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
    : say("from_to", { low: bare(feature, feature.low), high: bare(feature, feature.high) });
  const list = feature.levels ? h("datalist", { id: `${id}-list` }, feature.levels.map((level) => h("option", { value: level.value }))) : null;
  const input = h("input", { type: TYPES[feature.type] ?? "text", id, autocomplete: "off", placeholder: hint,
    inputmode: numeric ? "decimal" : null, list: list ? list.id : null, value: numeric && typeof own === "number" ? editable(feature, own) : String(own ?? "") });
  return { input, list, read: () => parse(feature, input.value), clear: () => (input.value = "") };
}

const PAUSE = 700;
const ENDED = new Set(["done", "failed", "cancelled"]);
// Files that were sent, the newest first; they stay when the reader looks at something else.
let sent = [];

function manyView() {
  const file = h("input", { type: "file", id: "file", accept: ".csv,.parquet,.arrow,.jsonl", onchange: () => file.files.length && send(file.files[0]) });
  const problem = h("div", {});
  const jobs = h("ul", { class: "jobs" });
  const options = { search: searchField(), n_counterfactuals: answersField() };
  const list = () => fill(jobs, sent.map((job) => job.draw()));
  const zone = h("div", { class: "zone" },
    h("p", {}, h("label", { for: "file", class: "button primary" }, say("choose_file")), file),
    h("p", { class: "hint" }, say("drop_hint")));
  const send = async (chosen) => {
    fill(problem);
    const form = new FormData();
    form.append("language", currentLanguage());
    for (const [name, field] of Object.entries(options)) form.append(name, field.value);
    form.append("file", chosen);
    try {
      const { id } = await upload("jobs", form);
      const job = jobItem(id, chosen.name, () => {
        sent = sent.filter((other) => other !== job);
        job.element.remove();
        announce(say("job_removed", { name: chosen.name }));
        byId("file")?.focus();
      });
      sent = [job, ...sent];
      list();
      job.watch();
    } catch (failure) {
      fill(problem, h("p", { class: "failure", role: "alert" }, reason(failure)));
    }
    file.value = "";
  };
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files.length) send(event.dataTransfer.files[0]);
  });
  list();
  return h("section", { class: "card many", "aria-labelledby": "h-many" },
    h("h1", { id: "h-many" }, say("h_many")), h("p", { class: "lead" }, say("many_hint")),
    h("div", { class: "grid" }, optionField("search_used", options.search), optionField("n_answers", options.n_counterfactuals)),
    zone, problem, jobs);
}

/** Options of an upload; an empty one is what the explainer was made with. */
const searchField = () => selection("many-search", state.schema.searches.map((name) => [name, say(`search_${name}`)]));

const answersField = () => selection("many-answers",
  Array.from({ length: state.schema.limits.answers }, (_, at) => [at + 1, number(at + 1)]));

const selection = (id, entries) => h("select", { id }, h("option", { value: "" }, say("as_set_up")),
  entries.map(([value, text]) => h("option", { value }, text)));

const optionField = (key, field) => h("div", { class: "field" }, h("label", { for: field.id }, say(key)), field);

/** An upload that was sent; `onRemoved` is called once the service has forgotten it. */
function jobItem(id, name, onRemoved) {
  const bar = h("progress", { max: 1, value: 0 });
  const status = h("p", { class: "job-state" });
  const [results, actions] = [h("div", {}), h("p", { class: "actions" })];
  const element = h("li", { class: "job" }, h("h2", {}, name), bar, status, results, actions);
  let last, ended;
  const update = () => {
    const { state: stage, done, total, error } = last;
    bar.hidden = ended;
    if (total) bar.value = done / total;
    else bar.removeAttribute("value");
    status.textContent = stateText(stage, done, total, error);
    status.classList.toggle("failure", stage === "failed");
  };
  // In the language of the page, which may have changed.
  const draw = () => {
    update();
    bar.setAttribute("aria-label", say("progress_of", { name }));
    fill(results, ended && last.summary ? summaryView(last.summary) : null);
    fill(actions, ended ? [...last.files.map((file) => fileButton(id, file)), removeButton(id, name, onRemoved)] : stopButton(id, show));
    return element;
  };
  const show = (found) => {
    if (ended) return;
    [last, ended] = [found, ENDED.has(found.state)];
    update();
    if (!ended) return;
    draw();
    announce(`${name}: ${status.textContent}`);
  };
  const watch = async () => {
    while (!ended) {
      try {
        show(await get(`jobs/${id}`));
      } catch (failure) {
        if (failure.status !== 429 && failure.status !== 0) show({ state: "failed", error: reason(failure), files: [] });
      }
      if (!ended) await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  };
  show({ state: "waiting", done: 0, total: null });
  return { element, draw, watch };
}

/** How many people got what, and the first who got nothing, each with the reason. */
function summaryView({ counts, without }) {
  const n = (status) => counts[status] ?? 0;
  const lines = [["n_answered", "answered"], ["n_already", "already desired"], ["n_without", "no answer"]];
  const missing = n("no answer");
  return [
    h("ul", { class: "counts" }, lines.filter(([, status]) => n(status)).map(([key, status]) => h("li", {}, count(key, n(status))))),
    missing ? h("details", {}, h("summary", {}, say("h_without")),
      h("ul", {}, without.map(({ row, name, reason_kind: kind }) => h("li", {}, h("strong", {}, name === null ? say("row", { n: number(row) }) : String(name)), ": ", say(`why_${kind}`)))),
      missing > without.length ? h("p", { class: "hint" }, say("more_in_report", { n: number(missing - without.length) })) : null) : null,
  ];
}

function stopButton(id, show) {
  const made = button(say("stop"), async () => {
    made.disabled = true;
    await remove(`jobs/${id}`).catch(() => null);
    show({ state: "cancelled", files: [] });
  }, { class: "quiet" });
  return made;
}

function removeButton(id, name, onRemoved) {
  const made = button(say("remove_job"), async () => {
    made.disabled = true;
    try {
      await remove(`jobs/${id}`);
    } catch (failure) {
      // One that is not there any more is what the reader wants.
      if (failure.status !== 404) {
        made.after(h("span", { class: "failure", role: "alert" }, reason(failure)));
        made.disabled = false;
        return;
      }
    }
    onRemoved();
  }, { class: "quiet", "aria-label": `${say("remove_job")}: ${name}` });
  return made;
}

function stateText(stage, done, total, error) {
  if (stage === "failed") return error || say("job_failed");
  if (stage === "running" && !total) return say("job_counting", { done: number(done) });
  if (stage === "running") return say("job_running", { done: number(done), total: number(total), share: percent(done / total) });
  return say(`job_${stage}`);
}

function fileButton(id, name) {
  const made = button(say("save_file", { name }), async () => {
    made.disabled = true;
    try {
      save(name, await download(`jobs/${id}/${encodeURIComponent(name)}`));
    } catch (failure) {
      made.after(h("span", { class: "failure", role: "alert" }, reason(failure)));
    }
    made.disabled = false;
  }, { class: "primary" });
  return made;
}

/** Asks until something is typed; `wrong` says that the last one was refused. */
function askForToken(wrong) {
  const [app, gate] = [byId("app"), byId("gate")];
  return new Promise((resolve) => {
    const field = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
    const send = (event) => {
      event.preventDefault();
      if (!field.value.trim()) return;
      fill(gate).hidden = true;
      app.hidden = false;
      resolve(field.value.trim());
    };
    app.hidden = true;
    fill(gate, h("main", { class: "gate" }, h("form", { class: "card", onsubmit: send },
      h("h1", {}, say("h_token")),
      h("p", {}, say("token_hint")),
      h("div", { class: "field" }, h("label", { for: "token" }, say("token")), field),
      wrong ? h("p", { class: "failure", role: "alert" }, say("token_wrong")) : null,
      h("button", { type: "submit", class: "primary" }, say("go_on"))))).hidden = false;
    field.focus();
  });
}

/** The page: loads words and schema, and draws what was chosen. */

import { get, onToken } from "./api.js";
import { caseView } from "./case.js";
import { announce, byId, fill, h, tabs } from "./dom.js";
import { personForm } from "./form.js";
import { manyView } from "./many.js";
import { peopleList } from "./people.js";
import { ask, leave, take } from "./session.js";
import { forgetListeners, on, state } from "./state.js";
import { askForToken } from "./token.js";
import { chosenLanguage, currentLanguage, reason, remember, say, speak } from "./words.js";

const NAMES = { de: "Deutsch", en: "English", nb: "Norsk" };
let place = "one";
let typing = null;

async function start() {
  onToken(askForToken);
  const browsers = navigator.languages.map((code) => code.slice(0, 2).replace("no", "nb"));
  await speak([chosenLanguage(), ...browsers, "en"].find((code) => code in NAMES));
  await load();
  // A language without words for features would show the names of columns.
  const { labelled } = state.schema;
  const wished = chosenLanguage() ?? browsers.find((code) => labelled.includes(code)) ?? labelled[0] ?? currentLanguage();
  if (wished !== currentLanguage()) await speakAs(wished);
  draw();
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
  return h("header", { class: "top" }, h("div", { class: "top-in" },
    h("a", { class: "skip", href: "#main" }, say("skip")),
    h("p", { class: "brand" }, h("span", { class: "dot", "aria-hidden": "true" }), state.schema.title || say("title")),
    h("nav", { "aria-label": say("views") }, link("one", say("one_person")), link("many", say("many_people"))), language));
}

const footer = () => h("footer", { class: "bottom" }, h("p", {}, say("made_by", { version: state.schema.version, fingerprint: String(state.schema.fingerprint).slice(0, 12) })));

function oneView() {
  if (state.person) return caseView(() => edit(state.person));
  return chooseView();
}

function edit(person) {
  typing = person;
  leave();
}

function chooseView() {
  const list = state.schema.people ? peopleList(choose) : null;
  const form = personForm(typing, (person) => { typing = null; take(person); });
  const heading = h("div", { class: "intro" }, h("h1", { id: "h-choose", tabindex: -1 }, say("h_choose")), h("p", { class: "lead" }, say("lead")));
  if (!list) return h("div", { class: "choose" }, heading, h("section", { class: "card", "aria-labelledby": "h-choose" }, form));
  const panels = { list, form };
  const entries = ["list", "form"].map((key) => ({ key, text: say(`tab_${key}`), panel: `panel-${key}` }));
  const open = (wanted) => {
    bar.select(wanted);
    for (const key of Object.keys(panels)) holders[key].hidden = key !== wanted;
  };
  const bar = tabs(say("h_choose"), entries, "list", open);
  const holders = Object.fromEntries(entries.map(({ key, panel }) =>
    [key, h("div", { class: "card", role: "tabpanel", id: panel, "aria-labelledby": `tab-${key}` }, panels[key])]));
  open(typing ? "form" : "list");
  return h("div", { class: "choose" }, heading, bar, Object.values(holders));
}

async function choose({ row, name, score, desired }) {
  try {
    const { person } = await get(`people/${row}`);
    take({ row, name, values: person }, { score, desired });
  } catch (failure) {
    announce(reason(failure));
  }
}

function fail(failure) {
  fill(byId("app"), h("main", { class: "gate" }, h("p", { class: "card failure", role: "alert" }, reason(failure))));
}

addEventListener("popstate", () => {
  if (!state.person) return;
  place = "one";
  leave();
});
start().catch(fail);

/**
 * The list of people, ten thousand or more: only the rows in sight are in the page.
 *
 * Search box and list are one control, a combobox: arrows move through the list, Enter chooses.
 */

import { Latest, get } from "./api.js";
import { announce, fill, h } from "./dom.js";
import { badge } from "./decision.js";
import { count, number, reason, say, score } from "./words.js";

const ROW = 56;
const BLOCK = 50;
const MARGIN = 6;

export function peopleList(onchoose) {
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

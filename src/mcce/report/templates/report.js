"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const people = [...document.querySelectorAll("article.person")];
  const texts = new Map();
  const search = byId("search"), status = byId("status"), size = byId("size");
  let page = 0, matching = people;

  const flat = (text) => text.toLowerCase().replace(/\s+/g, " ").trim();
  const text = (person) => {
    if (!texts.has(person)) texts.set(person, flat(person.textContent));
    return texts.get(person);
  };
  const fill = (element, values) => {
    element.textContent = element.dataset.text.replace(/#\w+/g, (name) => values[name]);
  };
  const nPages = () => Math.max(1, Math.ceil(matching.length / Number(size.value)));

  const show = () => {
    page = Math.min(Math.max(page, 0), nPages() - 1);
    const n = Number(size.value);
    const visible = new Set(matching.slice(page * n, (page + 1) * n));
    for (const person of people) person.hidden = !visible.has(person);
    fill(byId("found"), { "#n": String(matching.length), "#all": String(people.length) });
    fill(byId("page"), { "#page": String(page + 1), "#last": String(nPages()) });
    byId("previous").disabled = page === 0;
    byId("next").disabled = page >= nPages() - 1;
    byId("pages").hidden = nPages() === 1;
    byId("nobody").hidden = matching.length > 0;
  };
  const filter = () => {
    const wanted = flat(search.value);
    matching = people.filter((person) =>
      (!status.value || person.dataset.status === status.value) &&
      (!wanted || text(person).includes(wanted)));
    page = 0;
    show();
  };
  const turn = (by) => {
    page += by;
    show();
    byId("people").scrollIntoView();
  };
  const follow = () => {
    const person = people.find((one) => `#${one.id}` === location.hash);
    if (!person) return;
    if (!matching.includes(person)) {
      search.value = status.value = "";
      filter();
    }
    page = Math.floor(matching.indexOf(person) / Number(size.value));
    show();
    person.scrollIntoView();
  };

  // Paper shows everybody who matches.
  addEventListener("beforeprint", () => {
    for (const person of people) person.hidden = !matching.includes(person);
  });
  addEventListener("afterprint", show);

  byId("tools").hidden = false;
  byId("tools").addEventListener("submit", (event) => event.preventDefault());
  search.addEventListener("input", filter);
  status.addEventListener("change", filter);
  size.addEventListener("change", filter);
  byId("previous").addEventListener("click", () => turn(-1));
  byId("next").addEventListener("click", () => turn(1));
  addEventListener("hashchange", follow);
  filter();
  follow();
})();

/**
 * Elements of the page.
 *
 * Always true: what comes from data becomes text or the value of an attribute, never markup.
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

// Elements and tables.
const at = id => document.getElementById(id);
// Data from a crawl is only ever set as text, never as markup.
const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};
const show = (id, ...children) => at(id)?.replaceChildren(...children);
const none = text => make("p", { class: "none" }, text);
const soft = (...children) => make("p", { class: "soft" }, ...children);
const count = n => n == null ? "none" : Math.round(n).toLocaleString("en");
const short = n => n == null ? "none" : n === 0 ? "0" : n >= 1e3 && n < 1e15 ? count(n) : n >= 1e-3 ? n.toPrecision(3) : n.toExponential(2);
const many = (n, one, more = `${one}s`) => `${count(n)} ${n === 1 ? one : more}`;
const time = text => text ? text.replace("T", " ").replace("Z", "") : "unknown";
const span = s => s < 120 ? `${Math.round(s)} s` : s < 7200 ? `${Math.round(s / 60)} min` : s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} days`;

// Views are addresses behind `#`, so that they can be linked to and gone back to.
const to = (view, parameters) => `#/${view}?${new URLSearchParams(parameters)}`;
const isUrl = url => /^https?:\/\//i.test(url);
const hostOf = url => {
  try { return isUrl(url) ? new URL(url).hostname : ""; } catch { return ""; }
};
// A page's URL, host and path apart.
const page = url => {
  const cut = isUrl(url) ? (url + "/").indexOf("/", url.indexOf("//") + 2) : 0;
  const [host, path] = [url.slice(0, cut), url.slice(cut)];
  return make("a", { class: "u", href: to("page", { url }), title: url },
    ...(host ? [make("span", { class: path ? "h" : "h alone" }, host)] : []), ...(path ? [make("span", { class: "p" }, path)] : []));
};
const site = host => make("a", { class: "u", href: to("host", { name: host }), title: host }, make("span", { class: "p" }, host));
// Heads are [text, class of the column]; columns of class `wide` are left out on narrow screens.
const table = (heads, rows) => make("table", {},
  make("thead", {}, make("tr", {}, ...heads.map(([text, kind]) => make("th", kind ? { class: kind, scope: "col" } : { scope: "col" }, text)))),
  make("tbody", {}, ...rows.map(cells => make("tr", {}, ...cells.map((cell, i) => {
    const kind = heads[i][1];
    return make("td", kind ? { class: kind } : {}, cell ?? "");
  })))));
const facts = rows => {
  const made = table([["", ""], ["", "n"]], rows);
  made.tHead.remove();
  return made;
};
const pages = (list, empty) => list.length ? table([["rank", "n"], ["importance", "n"], ["crawled", "n wide"], ["page", "url"]],
  list.map(found => [count(found.rank), short(found.importance), ["gone", "failed"].includes(found.state) ? found.state : count(found.visits), page(found.url)])) : none(empty);
const section = (title, note, id, ...children) => make("section", {}, make("h2", {}, title, " ", make("small", { id: `${id}-note` }, note)), make("div", { id }, ...children));
const two = (...sections) => make("div", { class: "two" }, ...sections);
const get = async path => {
  const answer = await fetch(path, { cache: "no-store" });
  const value = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(value.error), { status: answer.status });
  return value;
};
// Shows what is made once it is there, unless another view is shown by then.
const tell = async (id, make) => {
  const view = at("view");
  let made;
  try { made = await make(); } catch (error) { made = none(error.message); }
  if (at("view") === view) show(id, made);
};
